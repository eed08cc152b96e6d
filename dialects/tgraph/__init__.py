"""`tgraph`: tensor programs with explicit state and devices.

base.py         what all operations share: the two forms, the rules, the syntax
partial.py      types that are known in part, and what follows for the rest
elements.py     which numbers the elements of a type are
widening.py     arithmetic on f8, f4, i4 and the like, by wider elements
elementwise.py  add, exponential, select, ...
terms.py        arithmetic on values, whatever computes or writes them
formulas.py     what elementwise operations compute, by simpler ones
shaping.py      constants, reshape, broadcast, transpose, slice, pad, device_copy
bodies.py       sort, and reductions by any function of single elements
random.py       random bits
spectral.py     Fourier transforms
matrices.py     factorizations of matrices, and triangular systems
reducing.py     reduce, dot_general, convolution, pooling windows
indexing.py     gather, scatter, dynamic slices
differentiation.py   the gradient of a program
structure.py    variables' read and assign, fusion, while, if
signature.py    inputs and results in the caller's order
reference/      what each operation means, in plain NumPy
fusing.py       what a fusion may hold so that nothing in it is stored
rewrites.py     what `canonicalize` does to each operation: canonicalization.py,
                folding.py, index_batching.py, narrowing.py, unused.py
"""

from xdsl.ir import Dialect

from ..sizes.dims import DimsAttr
from . import rewrites as rewrites  # fills in REWRITES
from .base import VariableType
from .bodies import BODY_OPS
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
