"""NumPy as a backend: it has a kernel for every operation that runs."""

from collections.abc import Sequence

from xdsl.ir import Operation

from ....dialects.dtypes import Array
from ...calls import Call
from ...pool import Scratch
from . import (
    bodies,
    convolution,
    dot,
    elementwise,
    fusion,
    indexing,
    matrices,
    moving,
    random,
    reducing,
    spectral,
)
from .base import kernel_of

FAMILIES = (
    *(bodies, convolution, dot, elementwise, fusion, indexing, matrices),
    *(moving, random, reducing, spectral),
)
"""The modules of kernels, which they register on import."""


def calls_of(
    op: Operation, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
) -> list[Call]:
    """Raises `LocatedError` for operations, or element types, without a kernel."""
    return kernel_of(op)(op, inputs, outs, scratch)
