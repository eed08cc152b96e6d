"""Removes unused results of operations with several results, and what they need.

    %i, %last, %rows = tgraph.while %c0, %x, %stack, %w ...  // %rows and %w are unused
 -> %i, %last = tgraph.while %c0, %x ...

A variable is unused, too, if it only affects its own next value.

    %u, %s, %v = tgraph.svd %x  // %u and %v are unused
 -> %s = tgraph.svd %x {wanted = array<i64: 1>}
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)

from ..compatibility import erase, replace
from .base import TensorOp, VariableType, ints
from .callbacks import has_side_effect
from .matrices import FactorizationOp
from .structure import AssignOp, IfOp, ReadOp, RegionOp, WhileOp, YieldOp, yielded

_Op = TypeVar("_Op", WhileOp, IfOp)


class DropUnusedOfLoop(RewritePattern):
    """Removes unused variables and inputs of a loop."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: WhileOp, rewriter: PatternRewriter) -> None:
        without_unused(op, rewriter)


class DropUnusedOfBranches(RewritePattern):
    """Removes unused results and inputs of a conditional."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: IfOp, rewriter: PatternRewriter) -> None:
        results = [number for number, result in enumerate(op.res) if result.uses]
        if op.outs:
            return
        if len(results) < len(op.res):
            for region in op.regions:
                last, values = region.block.last_op, yielded(region)
                assert last is not None
                replace(rewriter, last, YieldOp(*(values[n] for n in results)))
        given = read_arguments(op)
        if len(results) < len(op.res) or len(given) < len(op.inputs) - 1:
            _keep_arguments(op, given, rewriter)
            inputs = [op.inputs[0], *(op.inputs[1 + number] for number in given)]
            types = [op.declared[number] for number in results]
            rebuilt(op, inputs, types, results, rewriter)


class DropUnusedFactors(RewritePattern):
    """Removes unused factors of a factorization. If there is another factorization of
    the same matrices, cse may merge both, so all factors are kept.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: FactorizationOp, rewriter: PatternRewriter) -> None:
        kept = [number for number, result in enumerate(op.res) if result.uses]
        if op.outs or not kept or len(kept) == len(op.res):
            return
        others = (use.operation for use in op.inputs[0].uses)
        if any(type(other) is type(op) and other is not op for other in others):
            return
        wanted = ints([op.numbers[number] for number in kept])
        new = type(op).create(
            operands=op.operands,
            result_types=[op.res[number].type for number in kept],
            properties={**op.properties, "wanted": wanted},
            attributes=op.attributes,
            location=op.location,
        )
        replaced: list[SSAValue | None] = [None] * len(op.res)
        for number, result in zip(kept, new.res, strict=True):
            replaced[number] = result
        replace(rewriter, op, new, replaced)


def without_unused(loop: WhileOp, rewriter: PatternRewriter | None = None) -> WhileOp:
    """The loop without unused variables and inputs; the loop itself if it has none."""
    rewriter = rewriter or PatternRewriter(loop)
    carried = _read_outside(loop)
    if len(carried) < len(loop.res):
        carried, needed = _needed(loop, carried)
        for op in reversed(list(loop.body.block.ops)):
            if op not in needed:
                erase(rewriter, op)
    given = [number for number in read_arguments(loop) if number >= len(loop.res)]
    kept = [*sorted(carried), *given]
    if len(kept) == len(loop.inputs):
        return loop
    _keep_arguments(loop, kept, rewriter)
    inputs = [loop.inputs[number] for number in kept]
    types = [loop.declared[number] for number in sorted(carried)]
    return rebuilt(loop, inputs, types, sorted(carried), rewriter)


def rebuilt(
    op: _Op,
    inputs: Sequence[SSAValue],
    types: Sequence[Attribute],
    results: Sequence[int],
    rewriter: PatternRewriter | None = None,
) -> _Op:
    """Replaces an operation by one with the same regions, but other inputs and results.
    The first new results replace the old ones with the numbers in `results`."""
    regions = [op.detach_region(region) for region in list(op.regions)]
    new = type(op)(inputs, result_types=types, regions=regions)
    new.attributes |= op.attributes
    new.location = op.location
    replaced: list[SSAValue | None] = [None] * len(op.res)
    for number, result in zip(results, new.res, strict=False):
        replaced[number] = result
    replace(rewriter or PatternRewriter(op), op, new, replaced)
    return new


def _read_outside(loop: WhileOp) -> AbstractSet[int]:
    """The numbers of the carried values that the condition or users of results read."""
    read = loop.condition.block.args
    return {n for n, result in enumerate(loop.res) if result.uses or read[n].uses}


def _needed(
    loop: WhileOp, read: AbstractSet[int]
) -> tuple[AbstractSet[int], AbstractSet[Operation]]:
    """The numbers of all carried values on which those in `read` depend, and the
    operations of the body that compute them."""
    body, carried = loop.body.block, set(read)
    needed: set[Operation] = set()
    while True:
        count = len(carried)
        for op in reversed(list(body.ops)):
            variables = _variables(op)
            writes = not isinstance(op, ReadOp) and not carried.isdisjoint(variables)
            if writes or _is_kept(op) or _is_read_by(op, needed):
                needed.add(op)
                carried |= variables
        if len(carried) == count:
            return carried, needed


def _variables(op: Operation) -> set[int]:
    """The numbers of the carried variables that an operation reads or writes."""
    return {
        value.index
        for value in op.operands
        if isinstance(value, BlockArgument) and isinstance(value.type, VariableType)
    }


def _is_kept(op: Operation) -> bool:
    """Whether an operation may do more than compute and assign."""
    return not isinstance(op, TensorOp | ReadOp | AssignOp) or has_side_effect(op)


def _is_read_by(op: Operation, readers: AbstractSet[Operation]) -> bool:
    return any(use.operation in readers for value in op.results for use in value.uses)


def read_arguments(op: RegionOp) -> list[int]:
    """The numbers of the arguments that any region uses."""
    arguments = zip(*(region.block.args for region in op.regions), strict=True)
    return [n for n, each in enumerate(arguments) if any(a.uses for a in each)]


def _keep_arguments(
    op: RegionOp, kept: Sequence[int], rewriter: PatternRewriter
) -> None:
    for region in op.regions:
        for argument in reversed(region.block.args):
            if argument.index not in kept:
                rewriter.erase_block_argument(argument)
