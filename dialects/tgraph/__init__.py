"""`tgraph`: tensor programs with explicit state and devices.

base.py         the base of all operations: their two forms, rules and syntax
partial.py      partially known types, and inference of the rest
elements.py     ranges and widths of element types
widening.py     arithmetic on f8, f4, i4 and the like, in wider types
elementwise.py  add, exponential, select, ...
terms.py        arithmetic on values, independent of what computes it
formulas.py     elementwise operations in terms of simpler ones
complex_formulas.py   functions of complex numbers in terms of their parts
shaping.py      constants, reshape, broadcast, transpose, slice, pad, device_copy
bodies.py       sort, and reductions by a region on single elements
random.py       random bits
spectral.py     Fourier transforms
callbacks.py    calls of Python functions, and their effects
matrices.py     matrix factorizations, and triangular solves
reducing.py     reduce, dot_general, convolution, pooling windows
windows.py      windows of convolutions and pooling, by dimension
indexing.py     gather, scatter, dynamic slices
differentiation.py   the gradient of a program
structure.py    read and assign of variables, fusion, while, if
signature.py    inputs and results in the caller's order
reference/      the meaning of each operation, in plain NumPy
fusing.py       the operations that a fusion may contain without storing them
bounds.py       the bounds of integers, from the operations that compute them
rewrites.py     the rewrites of `canonicalize`: canonicalization/,
                folding.py, index_batching.py, narrowing.py, unused.py
"""

from xdsl.ir import Dialect

from ..sizes.dims import DimsAttr
from . import rewrites as rewrites  # fills in REWRITES
from .base import VariableType
from .bodies import BODY_OPS
from .callbacks import CALLBACK_OPS
from .differentiation import DIFFERENTIATION_OPS
from .elementwise import ELEMENTWISE_OPS
from .indexing import INDEXING_OPS
from .matrices import MATRIX_OPS
from .random import RANDOM_OPS
from .reducing import REDUCING_OPS
from .shaping import SHAPING_OPS
from .spectral import SPECTRAL_OPS
from .structure import STRUCTURE_OPS

TGraph = Dialect(
    "tgraph",
    [
        *BODY_OPS,
        *CALLBACK_OPS,
        *DIFFERENTIATION_OPS,
        *ELEMENTWISE_OPS,
        *INDEXING_OPS,
        *MATRIX_OPS,
        *RANDOM_OPS,
        *REDUCING_OPS,
        *SHAPING_OPS,
        *SPECTRAL_OPS,
        *STRUCTURE_OPS,
    ],
    [DimsAttr, VariableType],
)
