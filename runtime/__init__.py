"""Runs planned programs. Their results agree with the reference interpreter's.

callable.py    CallableProgram: binds the caller's arrays, and runs the list of calls
executor.py    Executable: a CallableProgram made from IR
dynamic.py     DynamicExecutable: specializes a program to the sizes of each call
arguments.py   binds the caller's arrays to arguments, and returns results
passed_arrays.py  reads the objects that callers pass as arrays
rebinding.py   binds new arrays to read-only arguments, in native code
placing.py     binds arguments to memory at addresses that the caller gives
owned_results.py  returns large results without a copy
donation.py    which results may reuse the memory of which donated inputs
calls.py       calls, including loops, branches and scalar operations
saved/         saved programs
program/       lowers memref IR to memory and steps
backends/      kernels: NumPy, native code, oneDNN; MLIR's own tools
runnable.py    checks that programs name devices that can run them
devices/       runs steps in one thread, a thread per stream, or other processes
sanitizer.py   detects invalid memory accesses
profile.py     records runs for Chrome's trace viewer and Perfetto
measuring.py   how long a planned program takes on this machine
random_inputs.py  values to run a program on, where no one gives any
pool.py        a device's memory, and kernel scratch memory
prepacking.py  constants in the layouts of kernels
allocators/    allocators for memory without a planned offset
"""
