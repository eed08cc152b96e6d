"""Programs on a target with asynchronous copies, and the output of
plan-overlap-copies."""

from collections.abc import Iterator

from modules import parse, run
from spilled_programs import function_of
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from tensorplan.checking.plan_check import check_plan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.memory import dma_start
from tensorplan.dialects.target_memory import TARGET
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.plan.overlap_copies import PlanOverlapCopies


def on(text: str, capacity: int, bandwidth: float = 1, of: str = "true") -> ModuleOp:
    """A program on a target with `capacity` bytes in `fast`, and a slow memory."""
    copies = f'"bandwidth" = {bandwidth} : f64, "asynchronous" = {of}'
    target = parse(f"""module attributes {{
      {TARGET} = #dlti.target_system_spec<
        "fast" = #dlti.target_device_spec<"capacity" = {capacity},
          "copies" = #dlti.map<"slow" = #dlti.map<{copies}>>>,
        "slow" = #dlti.target_device_spec<"capacity" = 1048576,
          "copies" = #dlti.map<"fast" = #dlti.map<{copies}>>>>}} {{}}""")
    module = parse('!t = memref<64xf32, "fast">\n!s = memref<64xf32, "slow">\n' + text)
    module.attributes[TARGET] = target.attributes[TARGET]
    return module


def described(module: ModuleOp) -> list[str]:
    """Describes the operations of the function by the names of their operands."""
    found: list[str] = []
    for op in function_of(module).body.walk():
        if dma := dma_start(op):
            found.append(f"start {dma.source.name_hint} {dma.target.name_hint}")
        elif isinstance(op, memref.DmaWaitOp):
            dma = next(filter(None, (dma_start(use.operation) for use in op.tag.uses)))
            found.append(f"wait {dma.source.name_hint} {dma.target.name_hint}")
        elif isinstance(op, memref.AllocOp):
            found.append(f"alloc {op.memref.name_hint}")
        elif op.name in ("memref.copy", "linalg.exp", "memref.dealloc", "linalg.add"):
            names = (str(value.name_hint) for value in op.operands)
            found.append(" ".join((op.name.partition(".")[2], *names)))
    return found


def overlapped(module: ModuleOp) -> list[str]:
    result = run(module, PlanOverlapCopies())
    check_plan(run(result, PlanMemory()))
    return described(result)


def with_transfers_elsewhere(planned: ModuleOp) -> Iterator[ModuleOp]:
    """Copies of a plan with one start or wait moved to another place in its block."""
    for op in planned.walk():
        if not isinstance(op, memref.DmaStartOp | memref.DmaWaitOp):
            continue
        assert op.parent is not None
        for place in op.parent.ops:
            other = planned.clone()
            found = dict(zip(planned.walk(), other.walk(), strict=True))
            if place is not op and _is_defined(op, place):
                found[op].detach()
                Rewriter.insert_op(found[op], InsertPoint.before(found[place]))
                yield other


def _is_defined(op: Operation, place: Operation) -> bool:
    """Whether all operands of `op` are defined before `place`."""
    return all(
        not isinstance(value.owner, Operation)
        or value.owner.parent is not place.parent
        or value.owner.is_before_in_block(place)
        for value in op.operands
    )


def is_refused(planned: ModuleOp) -> bool:
    """Whether plan-check rejects the plan."""
    try:
        check_plan(planned)
    except LocatedError:
        return True
    return False
