"""Contractions by oneDNN: matrix products and convolutions of f32, bf16, s8 and u8.

backend.py       the calls of a contraction, alone or with what follows it
library.py       the C library: where it is, its objects
primitives.py    its primitives on arrays
epilogue.py      elementwise operations that a primitive does on the way
dot.py, convolution.py   which primitive computes an operation

Needs the extra `fast` (llvmlite, too: calls are native code). Without it, with
`TENSORPLAN_NATIVE=0`, and for what only oneDNN's reference could compute, the NumPy
kernels do it.
"""
