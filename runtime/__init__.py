"""Runs programs: planned ones fast, and level 1 as the reference they must agree with.

callable.py    CallableProgram: binds the caller's arrays, runs the list of calls
executor.py    Executable: one that is made of IR
dynamic.py     DynamicExecutable: an Executable for the sizes of each call
arguments.py   the caller's arrays as the memory of arguments, results handed out
rebinding.py   new arrays for arguments that are only read, bound natively
handing_out.py large results that callers keep, without a copy
donation.py    which results may take the memory of which inputs
calls.py       what a call is; loops, branches and numbers as calls
saved/         programs in files
program/       memref IR to memory and steps
backends/      the calls that compute: NumPy, native code, oneDNN; MLIR's own tools
runnable.py    which devices there are
devices/       where steps run: one thread, one for each stream, other processes
sanitizer.py   finds unsound use of memory
profile.py     records runs for Chrome's trace viewer and Perfetto
pool.py        a device's memory; what kernels take while they run
prepacking.py  constants in the layouts that kernels want
allocators/    memory for what has no planned offset
"""
