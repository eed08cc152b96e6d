"""Contractions by oneDNN: matrix products and convolutions of f32 and bf16.

backend.py       the calls of a contraction, alone or with what follows it
library.py       the C library: where it is, its objects
primitives.py    its primitives on arrays
division.py      a primitive in parts, for threads
epilogue.py      elementwise operations that a primitive does on the way
dot.py, convolution.py   which primitive computes an operation

This backend needs the extra `fast`, including llvmlite, because its calls are native
code. Without it, with `TENSORPLAN_NATIVE=0`, and for contractions that only oneDNN's
reference implementation supports, the NumPy kernels compute.
"""
