"""The buffers that each memref may refer to, for plan-check.

A memref may be a buffer of an arena, a view of a buffer, or one of several buffers that
control flow chooses from. plan-check has to know which, to find the buffers whose bytes
an operation reads or writes:

    %a = memref.view %arena[%c0][] ...        // a buffer, number 0
    %b = memref.view %arena[%c64][] ...       // number 1
    %r = scf.if %p { yield %a } else { yield %b }
    %s = memref.subview %r ...                // `may_be` says: 0 or 1

This is a flow-insensitive points-to analysis of one function. Its graph has an edge
from each memref to those that it may be forwarded to, and the numbers propagate along
the edges until nothing changes. The result of an unknown operation on a memref may
refer to it, too. Shares no code with the planner; see plan_check.py.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from xdsl.dialects.builtin import MemRefType, UnrankedMemRefType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator, get_effects

from ..dialects.diagnostics import name_of
from ..dialects.memory import is_view
from ..dialects.tgraph.base import TensorOp
from .buffers import numbers_of

LOOPS = ("scf.for", "affine.for")

ONE_REGION_RUNS = (
    "scf.if",
    "scf.index_switch",
    "affine.if",
    "scf.execute_region",
    "memref.alloca_scope",
)
"""Operations that run exactly one of their regions, once."""

FORWARDING = (*LOOPS, *ONE_REGION_RUNS, "scf.while")
"""Operations whose results are what their regions yield."""


def may_be(
    numbers: Mapping[SSAValue, int], apart: Container[SSAValue] = ()
) -> dict[SSAValue, list[int]]:
    """The numbered memrefs to which each memref may refer, directly or as a view.

    Memrefs in `apart` count as separate memory, and are not followed.
    """
    order, links = _reached(numbers, apart)
    found: dict[SSAValue, int] = dict.fromkeys(order, 0)  # bits
    found |= {value: 1 << number for value, number in numbers.items()}
    changed = True
    while changed:
        changed = False
        for value in order:
            for target in links[value]:
                if new := found[value] & ~found[target]:
                    found[target] |= new
                    changed = True
    return {value: numbers_of(bits) for value, bits in found.items()}


def _reached(
    starts: Iterable[SSAValue], apart: Container[SSAValue]
) -> tuple[Sequence[SSAValue], Mapping[SSAValue, Sequence[SSAValue]]]:
    """The memrefs that `starts` may be forwarded to, in reverse postorder, and the
    direct targets of each."""
    links: dict[SSAValue, list[SSAValue]] = {}
    left: list[SSAValue] = []

    def enter(value: SSAValue) -> tuple[SSAValue, Iterator[SSAValue]]:
        links[value] = [
            target
            for use in value.uses
            for target in targets(use.operation, use.index)
            if target not in apart
        ]
        return value, iter(links[value])

    for start in starts:
        pending = [enter(start)] if start not in links else []
        while pending:
            value, rest = pending[-1]
            target = next((t for t in rest if t not in links), None)
            if target is not None:
                pending.append(enter(target))
            else:
                left.append(value)
                pending.pop()
    return left[::-1], links


def targets(op: Operation, index: int) -> Iterator[SSAValue]:
    """The memrefs to which operand `index` of `op` may be forwarded, also as a view."""
    if op.successors:
        for successor, passed in passed_on(op):
            if index in passed:
                yield successor.args[passed.index(index)]
        return
    name, outer = name_of(op), op.parent_op()
    if name == "scf.condition" and outer:
        yield outer.regions[1].block.args[index - 1]
        yield outer.results[index - 1]
    elif name == "scf.while":
        yield op.regions[0].block.args[index]
    elif is_return(op):
        return
    elif outer and op.has_trait(IsTerminator, value_if_unregistered=False):
        if name_of(outer) == "scf.while":
            yield outer.regions[0].block.args[index]
        elif index < len(outer.results):
            yield outer.results[index]
            if name_of(outer) in LOOPS:
                args = outer.regions[0].block.args
                yield args[len(args) - len(outer.results) + index]
    elif name in LOOPS:
        at = index - (len(op.operands) - len(op.results))
        args = op.regions[0].block.args
        yield args[len(args) - len(op.results) + at]
        yield op.results[at]
    else:
        arguments = (a for r in op.regions for block in r.blocks for a in block.args)
        yield from filter(is_memref, (*op.results, *arguments))


def is_return(op: Operation) -> bool:
    """Whether `op` returns from its function."""
    return name_of(op) in ("func.return", "llvm.return")


def only_forwards(op: Operation) -> bool:
    """Whether `op` only forwards its memref operands, or derives memrefs from them."""
    return (
        op.has_trait(IsTerminator, value_if_unregistered=False)
        or name_of(op) in (*LOOPS, "scf.while")
        or (
            any(map(is_memref, op.results))
            and (is_view(op) or get_effects(op) == set())
        )
    )


_MEMREF = MemRefType | UnrankedMemRefType  # made once, since that is slow


def is_memref(value: SSAValue) -> bool:
    return isinstance(value.type, _MEMREF)


def carried(loop: Operation) -> Sequence[SSAValue]:
    """The arguments of a loop's first region that each iteration passes to the next."""
    args = loop.regions[0].block.args
    return args[len(args) - len(initial(loop)) :]


def initial(loop: Operation) -> Sequence[SSAValue]:
    """The operands that are the values of `carried` in the first iteration."""
    if name_of(loop) == "scf.while":
        return loop.operands
    return loop.operands[len(loop.operands) - len(loop.results) :]


def yielded(region: Region) -> Sequence[SSAValue]:
    """The values that a region of a loop yields."""
    last = region.blocks[-1].last_op
    if last is None:
        return ()
    return last.operands[1:] if name_of(last) == "scf.condition" else last.operands


def passed_on(branch: Operation) -> Iterator[tuple[Block, range]]:
    """The successors of a branch, each with the indices of the operands it receives."""
    start = len(branch.operands) - sum(len(b.args) for b in branch.successors)
    for successor in branch.successors:  # their arguments are the last operands
        end = start + len(successor.args)
        yield successor, range(start, end)
        start = end


def memrefs_in(op: Operation) -> Iterator[SSAValue]:
    """The memrefs that `op`, the operations in it, and their blocks define."""
    for inner in chain((op,), operations_in(op)):
        arguments = (a for r in inner.regions for block in r.blocks for a in block.args)
        yield from filter(is_memref, chain(inner.results, arguments))


def operations_in(op: Operation) -> Iterator[Operation]:
    """The operations nested in `op`, in order, except those in the regions of tgraph's
    operations, which are on tensors at every level."""
    if isinstance(op, TensorOp):
        return
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield inner
                if inner.regions:
                    yield from operations_in(inner)
