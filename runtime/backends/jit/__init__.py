"""Makes LLVM IR functions of this process, by llvmlite, and calls them.

llvm.py      LLVM IR to machine code
externals.py   where the routines of LAPACK and BLAS are
signals.py   signals that wait while a call must not be interrupted
team.py      threads that run parts of calls
records.py   calls with their arrays; runs of calls as one call
slices.py    calls on slices that begin where numbers say
inlining.py  loops and branches of calls as one function
"""
