"""Unrolls loops that exchange buffers, so that plan-spill can move these.

    %r, %s = scf.for %i = 0 to 7 step 1 iter_args(%p = %a, %q = %b) {
      linalg.exp ins(%p) outs(%q)
      scf.yield %q, %p
    }

    %t, %u = scf.for %i = 0 to 6 step 2 iter_args(%p = %a, %q = %b) {
      linalg.exp ins(%p) outs(%q)
      linalg.exp ins(%q) outs(%p)
      scf.yield %p, %q
    }
    linalg.exp ins(%t) outs(%u)              // %u is used instead of %r, %t of %s

After as many iterations as the exchange has steps, each buffer is where it was. A loop
over so many iterations forwards each buffer as itself, and `forwarded.unite` replaces
what it forwards by the buffer. The iterations that are left follow the loop.

Does not: change loops of unknown trip count, loops that forward other memory than their
buffers, or exchanges of more than `MOST` steps.
"""

from collections.abc import Sequence
from math import lcm
from typing import cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....analysis.loops import constant_range
from ....dialects.diagnostics import remark
from ....dialects.memory import is_memref
from ....dialects.tgraph.base import AnyMemRef

MOST = 4
"""The largest number of copies of a body. Buffers are exchanged in pairs, or in rings
of three, as time steps of a stencil are."""


def unroll(func: FuncOp, space: Attribute) -> bool:
    """Unrolls the loops that exchange buffers in the memory `space`. Returns whether
    there are any."""
    loops = [op for op in func.walk() if isinstance(op, scf.ForOp)]
    found = False
    for loop in reversed(loops):  # nested loops before those around them
        steps, counted = _steps(loop, space), constant_range(loop)
        if 1 < steps <= MOST and counted is not None and len(counted) >= steps:
            remark(f"the loop is unrolled by {steps}, since it exchanges buffers", loop)
            _unroll(loop, steps, counted)
            found = True
    return found


def _steps(loop: scf.ForOp, space: Attribute) -> int:
    """The number of iterations after which each buffer is where it was; 0 if the loop
    forwards other memory, or exchanges no buffers in `space`."""
    args: Sequence[SSAValue] = loop.body.block.args[1:]
    last = loop.body.block.last_op
    assert last is not None
    forwarded: dict[SSAValue, SSAValue] = {
        a: y for a, y in zip(args, last.operands, strict=True) if is_memref(a)
    }
    if forwarded.keys() != {*forwarded.values()}:
        return 0
    found = [1]
    for arg in forwarded:
        steps, value = 1, forwarded[arg]
        while value is not arg:
            steps, value = steps + 1, forwarded[value]
        found.append(steps)
    of_space = (cast(AnyMemRef, arg.type).memory_space == space for arg in forwarded)
    is_there = any(n > 1 and here for n, here in zip(found[1:], of_space, strict=True))
    return lcm(*found) if is_there else 0


def _unroll(loop: scf.ForOp, steps: int, counted: range) -> None:
    """Replaces a loop by one whose iterations compute `steps` of its iterations, and
    the iterations that are left."""
    rest = len(counted) % steps
    whole = counted[: len(counted) - rest]
    body, before = loop.body.block, InsertPoint.before(loop)
    block = Block(arg_types=[arg.type for arg in body.args])
    for new, old in zip(block.args, body.args, strict=True):
        new.name_hint = old.name_hint
    bounds = [_index(n, loop, before) for n in (whole.stop, counted.step * steps)]
    shifts = [_index(counted.step * n, loop, before) for n in range(1, steps)]
    carried: Sequence[SSAValue] = block.args[1:]
    for shift in (None, *shifts):
        at: SSAValue = block.args[0]
        if shift is not None:
            block.add_op(added := arith.AddiOp(at, shift))
            added.location = loop.location
            at = added.result
        copies, carried = _iteration(loop, at, carried)
        block.add_ops(copies)
    block.add_op(scf.YieldOp(*carried))
    made = scf.ForOp(loop.lb, bounds[0], bounds[1], loop.iter_args, block)
    made.location = loop.location
    Rewriter.insert_op(made, before)
    carried = made.results
    for number in counted[len(whole) :]:
        copies, carried = _iteration(loop, _index(number, loop, before), carried)
        for copy in copies:
            Rewriter.insert_op(copy, before)
    for new, old in zip(made.results, loop.results, strict=True):
        new.name_hint = old.name_hint
    Rewriter.replace_op(loop, [], carried)


def _iteration(
    loop: scf.ForOp, at: SSAValue, carried: Sequence[SSAValue]
) -> tuple[Sequence[Operation], Sequence[SSAValue]]:
    """A copy of an iteration, and the values that it yields."""
    body = loop.body.block
    mapped: dict[SSAValue, SSAValue] = dict(zip(body.args, (at, *carried), strict=True))
    *ops, last = body.ops
    copies = [op.clone(mapped) for op in ops]
    return copies, [mapped.get(value, value) for value in last.operands]


def _index(number: int, loop: scf.ForOp, point: InsertPoint) -> SSAValue:
    type = cast(IndexType | IntegerType, loop.lb.type)
    made = arith.ConstantOp(IntegerAttr(number, type))
    made.location = loop.location
    Rewriter.insert_op(made, point)
    return made.result
