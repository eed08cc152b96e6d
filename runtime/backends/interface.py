"""What a backend is, and what the calls are that it gives.

A backend does not compute. It is given an operation and its arrays, and returns the
calls that compute: `(function, arguments)`, with all views, slices and constants made
ahead. What runs later allocates nothing that grows with the arrays (but for index
arrays, see numpy/indexing.py).

An output array may be the very memory of an input that the operation's `overwritable()`
lists, as seen through the same strides; no other overlap occurs.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.ir import Operation

from ...arrays import Array
from ..calls import Call
from ..pool import Scratch

Backend: TypeAlias = Callable[
    [Operation, Sequence[Array], Sequence[Array], Scratch], list[Call] | None
]
"""`(op, inputs, outs, scratch) -> calls`; None for what another backend has to do. Some
output has elements."""
