"""Calls of loop nests: the machine code of each is made once."""

import numpy as np

from ....dialects.dtypes import Array
from ...calls import Call
from ...pool import Scratch
from ..jit import llvm
from ..jit.records import ArrayRecord, parallel
from .elements import register_type
from .graphs import ElementGraph, ElementNode, NoLoopNest
from .loops import lower
from .nests import LoopNest, divided, nest_of

LARGEST = 1000
"""Nodes of a graph: from there on LLVM's time grows with the square of them."""

_functions: dict[object, llvm.Function | None] = {}
"""By `LoopNest.key()`; None for what is not supported."""


def nested(graph: ElementGraph, scratch: Scratch) -> list[Call]:
    """The call of a graph's loop nest, in parts if it is large.

    Raises `NoLoopNest` for what has no native form.
    """
    if 0 in graph.shape or len(graph.nodes) > LARGEST:
        raise NoLoopNest
    nests = divided(nest_of(graph), scratch.threads)
    return parallel([[_call(nest, scratch)] for nest in nests], scratch.threads)


def copy_of(out: Array, x: Array, scratch: Scratch) -> Call:
    """`np.copyto(out, x)`, for arrays of one type. `out` is not empty.

    Raises `NoLoopNest` for elements that have no native type.
    """
    if register_type(x.dtype) is None:
        raise NoLoopNest
    node = ElementNode(x.dtype, array=0)
    arrays = [np.broadcast_to(x, out.shape), out]
    graph = ElementGraph(out.shape, frozenset(), node, arrays, [node])
    (call,) = nested(graph, scratch)
    return call


def _call(nest: LoopNest, scratch: Scratch) -> Call:
    function = _function(nest)
    sizes = tuple(nest.sizes[nest.kept :])
    buffers = [scratch.take(sizes, node.dtype) for node in nest.saved]
    return ArrayRecord(function, [*nest.graph.arrays, *buffers]), ()


def _function(nest: LoopNest) -> llvm.Function:
    key = nest.key()
    if key not in _functions:
        try:
            _functions[key] = llvm.compiler().function(lower(nest))
        except NoLoopNest:
            _functions[key] = None
    function = _functions[key]
    if function is None:
        raise NoLoopNest
    return function
