"""How control flow forwards memrefs: through views, selects, yields and branches.

%r = scf.if %c -> (memref<64xf32>) {
  scf.yield %a                         `moves`: %a may become %r
} else {
  scf.yield %b                         `sources_of`: %r may be %a or %b
}
"""

from collections.abc import Sequence
from itertools import chain

from xdsl.dialects import arith, cf, scf
from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue, Use

from ..dialects.diagnostics import name_of
from ..dialects.memory import is_buffer, is_view

CHOICES = ("scf.if", "scf.index_switch", "affine.if")
"""Operations of which at most one region runs, once."""

SCOPES = ("scf.execute_region", "memref.alloca_scope")
"""Operations whose region runs once."""

LOOPS = ("scf.for", "affine.for")
"""Operations whose region runs any number of times, in sequence."""

CONCURRENT = ("scf.parallel", "scf.forall", "affine.parallel")
"""Operations whose region may run several times in parallel; each is one step."""

WHILE = "scf.while"

CLONE = "bufferization.clone"
"""An operation that returns its operand, or a copy of it."""

_YIELDS = ("scf.yield", "affine.yield", "memref.alloca_scope.return")

_STRUCTURED = frozenset((*CHOICES, *SCOPES, *LOOPS, WHILE))

Branch = cf.BranchOp | cf.ConditionalBranchOp | cf.SwitchOp


def is_structured(op: Operation) -> bool:
    """Whether the operations in the regions of `op` are steps of their own."""
    return bool(op.regions) and name_of(op) in _STRUCTURED


def moves(use: Use) -> Sequence[SSAValue] | None:
    """The values that may be the used memref, or a view of it, because of this use.

    None if the operation does anything but forward the memref.
    """
    op, index = use.operation, use.index
    if is_buffer(op):
        return []
    if is_view(op):
        return [op.results[0]] if index == 0 else []
    if isinstance(op, arith.SelectOp):
        return [op.result]
    if isinstance(op, scf.ConditionOp) and isinstance(
        loop := op.parent_op(), scf.WhileOp
    ):
        return [loop.after_region.block.args[index - 1], loop.results[index - 1]]
    if isinstance(op, scf.WhileOp):
        return [op.before_region.block.args[index]]
    if op.successors:
        return _branch(op, index)
    name = name_of(op)
    if name in _YIELDS and (outer := op.parent_op()):
        return _yielded(outer, index)
    if name in LOOPS:
        return _carried(op, index - (len(op.operands) - len(op.results)))
    return None


def only_moves(op: Operation) -> bool:
    """Whether `moves` leads to all memrefs that an operation returns."""
    return isinstance(op, arith.SelectOp) or is_view(op) or name_of(op) in _STRUCTURED


def origins_of(value: SSAValue) -> list[SSAValue]:
    """The memrefs that `value` may be, or may be a view or clone of, and that no known
    control flow forwards: results of other operations, and arguments."""
    found = {value: None}
    pending, origins = [value], list[SSAValue]()
    for each in pending:  # grows during the loop
        sources = _sources_of(each)
        if sources is None:
            origins.append(each)
            continue
        new = dict.fromkeys(source for source in sources if source not in found)
        found |= new
        pending += new
    return origins


def _sources_of(value: SSAValue) -> Sequence[SSAValue] | None:
    """The values that may become `value`; None if these are not all known."""
    if not isinstance(value, OpResult):
        owner = value.owner
        assert isinstance(owner, Block)
        return _passed(owner, owner.args.index(value))
    op, index = value.op, value.index
    if is_view(op) or name_of(op) == CLONE:
        return [op.operands[0]]
    if isinstance(op, arith.SelectOp):
        return [op.lhs, op.rhs]
    if isinstance(op, scf.WhileOp):
        return [_last(op.before_region).operands[index + 1]]
    if name_of(op) not in _STRUCTURED:
        return None
    given = op.operands[len(op.operands) - len(op.results) :]
    first = [given[index]] if name_of(op) in LOOPS else []
    return first + [end.operands[index] for r in op.regions for end in _ends(r)]


def _passed(block: Block, index: int) -> Sequence[SSAValue] | None:
    """The values that argument `index` of a block may be."""
    around = block.parent_op()
    if block.prev_block is not None:
        branches = [before.last_op for before in dict.fromkeys(block.predecessors())]
        known = [op for op in branches if isinstance(op, Branch)]
        return (
            [v[index] for op in known for b, v in _targets(op) if b is block]
            if len(known) == len(branches)
            else None
        )
    if isinstance(around, scf.WhileOp):
        condition, last = map(_last, around.regions)
        if block is around.after_region.block:
            return [condition.operands[index + 1]]
        return [around.operands[index], last.operands[index]]
    if around is None or name_of(around) not in LOOPS:
        return None
    index -= len(block.args) - len(around.results)
    given = around.operands[len(around.operands) - len(around.results) :]
    return None if index < 0 else [given[index], _last(block.parent).operands[index]]


def _ends(region: Region) -> Sequence[Operation]:
    """The operations at which control leaves a region."""
    lasts = [block.last_op for block in region.blocks]
    return [op for op in lasts if op is not None and not op.successors]


def _last(region: Region | None) -> Operation:
    """The only operation at which control leaves the region of a loop."""
    assert region is not None
    (end,) = _ends(region)
    return end


def _yielded(outer: Operation, index: int) -> Sequence[SSAValue] | None:
    name = name_of(outer)
    if isinstance(outer, scf.WhileOp):
        return [outer.before_region.block.args[index]]
    if name in LOOPS:
        return _carried(outer, index)
    return [outer.results[index]] if name in _STRUCTURED else None


def _carried(loop: Operation, index: int) -> Sequence[SSAValue]:
    args = loop.regions[0].block.args
    return [args[len(args) - len(loop.results) + index], loop.results[index]]


def _targets(op: Branch) -> Sequence[tuple[Block, Sequence[SSAValue]]]:
    """The blocks to which a branch leads, each with the values that it passes. These
    are the last operands, in this order."""
    match op:
        case cf.BranchOp():
            return [(op.successor, op.arguments)]
        case cf.ConditionalBranchOp():
            return [
                (op.then_block, op.then_arguments),
                (op.else_block, op.else_arguments),
            ]
        case cf.SwitchOp():
            cases = zip(op.case_blocks, op.case_operand, strict=True)
            return [(op.default_block, op.default_operands), *cases]


def _branch(op: Operation, index: int) -> Sequence[SSAValue] | None:
    if not isinstance(op, Branch):
        return None
    targets = _targets(op)
    index -= len(op.operands) - sum(len(values) for _, values in targets)
    for block, values in targets:
        if index < len(values):
            return [block.args[index]]
        index -= len(values)
    raise AssertionError(op.name)


def pass_to(block: Block, op: Operation, values: Sequence[SSAValue]) -> None:
    """Makes the `cf` branch `op` forward `values` as the last arguments of `block`."""
    assert isinstance(op, Branch), op.name
    passed = [
        [*given, *(values if target is block else ())] for target, given in _targets(op)
    ]
    first = len(op.operands) - sum(len(given) for _, given in _targets(op))
    counts = [len(each) for each in passed]
    op.operands = [*op.operands[:first], *chain.from_iterable(passed)]
    if isinstance(op, cf.SwitchOp):
        default, *cases = counts
        op.properties["case_operand_segments"] = DenseArrayBase.from_list(i32, cases)
        counts = [default, sum(cases)]
    if not isinstance(op, cf.BranchOp):
        sizes = DenseArrayBase.from_list(i32, [1, *counts])
        op.properties["operandSegmentSizes"] = sizes
