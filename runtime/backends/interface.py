"""The interface of a backend, and of the calls that it returns.

A backend does not compute. It takes an operation and its arrays, and returns the calls
that compute: `(function, arguments)`, with all views, slices and constants prepared. A
call allocates nothing that grows with the arrays, except for index arrays (see
numpy/indexing.py).

An output array may be the memory of an input that the operation's `overwritable()`
lists, with the same strides. Arrays overlap in no other way.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.ir import Operation

from ...support.arrays import Array
from ..calls import Call
from ..pool import Scratch

Backend: TypeAlias = Callable[
    [Operation, Sequence[Array], Sequence[Array], Scratch], list[Call] | None
]
"""`(op, inputs, outs, scratch) -> calls`; None if another backend must compute `op`. At
least one output has elements.
"""
