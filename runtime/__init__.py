"""Runs programs. Their results agree with the reference interpreter's.

callable.py    CallableProgram: binds the caller's arrays, and runs the list of calls
executor.py    Executable: a CallableProgram from IR
dynamic.py     DynamicExecutable: an Executable for the sizes of each call
arguments.py   the caller's arrays as memory of arguments; returned results
rebinding.py   rebinds read-only arguments natively
placing.py     binds arguments to memory of which a caller knows the address
handing_out.py returns large results without a copy
donation.py    which results may use the memory of which inputs
calls.py       calls, including loops, branches and numbers
saved/         saved programs
program/       from memref IR to memory and steps
backends/      kernels: NumPy, native code, oneDNN; MLIR's own tools
runnable.py    the devices that can run programs
devices/       runs steps in one thread, a thread per stream, or other processes
sanitizer.py   detects invalid memory accesses
profile.py     records runs for Chrome's trace viewer and Perfetto
measuring.py   how long a planned program takes on this machine
random_inputs.py  values to run a program on, where no one gives any
pool.py        a device's memory, and kernel scratch memory
prepacking.py  constants in the layouts of kernels
allocators/    allocators for memory without a planned offset
"""
