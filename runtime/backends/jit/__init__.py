"""Compiles LLVM IR to functions of this process by llvmlite, and calls them.

llvm.py        compiles LLVM IR to machine code
externals.py   finds the routines of LAPACK and BLAS
signals.py     blocks signals while a call must not be interrupted
subnormals.py  whether a thread computes with subnormal numbers
team.py        threads that run parts of calls
records.py     calls with their arrays; sequences of calls as one call
slices.py      calls on slices that start at run-time indices
inlining.py    joins loops and branches of calls into one function
"""
