"""Memory effects of linalg's operations, for `dialects/memory.py`.

The effects follow from the declaration of a structured operation: its outputs, its
indexing maps, its iterators, and the payload in its region.

    linalg.generic {indexing_maps = [(d0) -> (d0), (d0) -> (d0)],
                    iterator_types = ["parallel"]} ins(%x) outs(%y) { ... }

This operation writes all of %y, reads it only if the payload uses its argument, and may
use the same memory for %x and %y.
"""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DenseArrayBase, IntegerType
from xdsl.ir import Attribute, Operation
from xdsl.ir.affine import AffineMap

from .diagnostics import name_of

_ELEMENTWISE = frozenset(
    f"linalg.{name}"
    for name in """
    abs add ceil copy div div_unsigned erf exp floor log map max min mul negf powf
    reciprocal round rsqrt select sqrt square sub tanh
    """.split()
)
"""Named operations with identity maps, which MLIR leaves out of the text."""


_POOLING = "linalg.pooling_"


def outputs(op: Operation) -> Sequence[int] | None:
    """The operand numbers of a structured operation's outputs; None for others.

    Without `operandSegmentSizes`, the last operand is the output.
    """
    name = name_of(op)
    if not name.startswith("linalg.") or name in ("linalg.yield", "linalg.index"):
        return None
    if not is_divided(op):
        return range(len(op.operands) - 1, len(op.operands))
    counts = segments_of(op)
    return range(counts[0], sum(counts[:2])) if counts else None


def is_divided(op: Operation) -> bool:
    """Whether an operation has `operandSegmentSizes`, valid or not."""
    return "operandSegmentSizes" in {**op.properties, **op.attributes}


def segments_of(op: Operation) -> Sequence[int]:
    """The number of operands in each segment; empty if the numbers do not cover all
    operands, as in a damaged file."""
    segments = {**op.attributes, **op.properties}.get("operandSegmentSizes")
    if not isinstance(segments, DenseArrayBase):
        return ()
    counts = [int(n) for n in cast(DenseArrayBase[IntegerType], segments).get_values()]
    is_right = min(counts, default=-1) >= 0 and sum(counts) == len(op.operands)
    return counts if is_right else ()


def overwritten(op: Operation) -> Sequence[int]:
    """The operand numbers of outputs that are written completely and not read."""
    maps = _maps(op)
    return [
        index
        for index in outputs(op) or ()
        if not reads_output(op, index)
        and (maps is None or _is_permutation(maps[index]))  # named: writes everything
    ]


def reads_output(op: Operation, index: int) -> bool:
    """Whether the payload uses the previous contents of the output."""
    block = op.regions[0].first_block if op.regions else None
    return block is None or index >= len(block.args) or bool(block.args[index].uses)


def computes_with(op: Operation, index: int) -> bool:
    """Whether the payload computes with the elements of an operand, rather than only
    yielding them. A pooling uses only the shape of its window, whatever the payload."""
    if outputs(op) is None or (index == 1 and name_of(op).startswith(_POOLING)):
        return False
    block = op.regions[0].first_block if op.regions else None
    if block is None or index >= len(block.args):
        return False
    uses = block.args[index].uses
    return any(use.operation is not block.last_op for use in uses)


def elementwise_inputs(op: Operation) -> Sequence[int]:
    """The inputs that are read at the position where the first output is written."""
    written, maps = outputs(op), _maps(op)
    if written and name_of(op) in _ELEMENTWISE:
        return range(written[0])
    if not written or maps is None or not _is_parallel(op):
        return ()
    if not _is_permutation(maps[written[0]]):  # some elements are computed repeatedly
        return ()
    return [n for n in range(written[0]) if maps[n] == maps[written[0]]]


def _maps(op: Operation) -> Sequence[AffineMap] | None:
    """The indexing maps, one for each operand; None if the operation has none."""
    given = op.properties.get("indexing_maps") or _asked(op, "get_indexing_maps")
    if not isinstance(given, ArrayAttr):
        return None
    maps = cast(ArrayAttr[Attribute], given)
    found = [each.data for each in maps if isinstance(each, AffineMapAttr)]
    return found if len(found) == len(op.operands) == len(maps) else None


def _is_permutation(map: AffineMap) -> bool:
    """Whether `map` is a bijection between loop points and elements."""
    dims = [str(result) for result in map.results]
    return sorted(dims) == sorted(f"d{n}" for n in range(map.num_dims))


def _is_parallel(op: Operation) -> bool:
    given = op.properties.get("iterator_types") or _asked(op, "get_iterator_types")
    if not isinstance(given, ArrayAttr):
        return False
    return all("parallel" in str(each) for each in cast(ArrayAttr[Attribute], given))


def _asked(op: Operation, method: str) -> Attribute | None:
    """The result of a method of a named operation that xDSL defines; None otherwise."""
    ask = getattr(op, method, None)
    try:
        return ask() if ask else None
    except (NotImplementedError, AssertionError):  # xDSL 0.69: of ? and 64 elements
        return None
