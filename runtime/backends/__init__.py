"""Kernels that compute the operations of a program, by several backends.

dispatch.py      asks the backends in turn
interface.py     the interface of a backend, and of the calls that it returns
arrays.py        views of arrays, and copies where there is no view
contraction.py   a contraction, then elementwise operations on its result
matrix_views.py  the matrices that a contraction multiplies, where they lie
parts.py         divides work into parts that threads run concurrently
numpy/           kernels of every operation, in NumPy
native/          compiled kernels of elementwise operations, reductions and groups
onednn/          kernels of contractions and convolutions, by oneDNN
jit/             compiles LLVM IR to functions of this process, and calls them
mlir/            runs whole programs by mlir-opt and mlir-runner
"""
