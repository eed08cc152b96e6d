"""NumPy kernels that write into given memory, one for each family of operations.

base.py          calls, the registry, views
elementwise.py   elementwise operations, alone and in loops, tile by tile
forms.py         what NumPy has for them: ufuncs, and what takes several calls
fusion.py        groups of operations, without storing what is between them
rows.py          groups of rows, some at a time
contraction.py   a contraction and a loop behind it, block by block
moving.py        constants, copies and whatever only moves elements
dot.py, convolution.py   on matrix products
reducing.py      reduce, windows
reductions.py    along the rows and columns of matrices
indexing.py      gather, scatter, dynamic slices
bodies.py        sort, and reductions by any function of single elements
random.py        random bits
special.py       the error function
numbers.py       what arith and math operations compute
linalg.py        linalg operations
"""

# Each import registers its kernels.
from tensorplan.runtime.backends.numpy import (
    bodies,
    convolution,
    dot,
    elementwise,
    fusion,
    indexing,
    moving,
    random,
    reducing,
)
from tensorplan.runtime.backends.numpy.base import KERNELS, Call, compile_call

__all__ = [
    "KERNELS",
    "Call",
    "bodies",
    "compile_call",
    "convolution",
    "dot",
    "elementwise",
    "fusion",
    "indexing",
    "moving",
    "random",
    "reducing",
]
