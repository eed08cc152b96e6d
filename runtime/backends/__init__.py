"""What computes: kernels for the operations of a program.

numpy/    for every operation, in NumPy
native/   the same, compiled, for elementwise operations, reductions and groups
onednn/   the same for contractions and convolutions, by oneDNN
jit/      LLVM IR as functions of this process, and calls of these
mlir/     whole programs, by mlir-opt and mlir-runner
"""
