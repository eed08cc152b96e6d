"""Contractions by oneDNN: matrix products and convolutions of f32 and bf16.

backend.py       the calls of a contraction, alone or with an epilogue
library.py       loads the C library, and wraps its objects
primitives.py    calls of oneDNN's primitives on arrays
division.py      divides a primitive into parts for threads
epilogue.py      elementwise operations that a primitive fuses
dot.py, convolution.py   which primitive computes an operation

This backend needs the extra `fast`, including llvmlite, because its calls are native
code. Without it, with `TENSORPLAN_NATIVE=0`, and for contractions that only oneDNN's
reference implementation supports, the NumPy kernels compute.
"""
