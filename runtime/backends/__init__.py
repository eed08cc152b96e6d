"""Computes the operations of a program by the kernels of several backends.

dispatch.py     asks the backends in turn
interface.py    the interface of a backend, and of the calls that it returns
arrays.py       views of arrays, and copies where there is no view
contraction.py  a contraction, then elementwise operations on its result
parts.py        the parts of calls that threads run concurrently
numpy/          for every operation, in NumPy
native/         the same, compiled, for elementwise operations, reductions and groups
onednn/         the same for contractions and convolutions, by oneDNN
jit/            LLVM IR as functions of this process, and calls of these
mlir/           whole programs, by mlir-opt and mlir-runner
"""
