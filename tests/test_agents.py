"""Tests live ranges in programs that several agents run, with barriers between them."""

from modules import parse
from xdsl.dialects import func
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, traits_def

from tensorplan.analysis.allocations import find_allocations
from tensorplan.analysis.control_flow import ControlFlow
from tensorplan.analysis.liveness import for_all_agents, live_steps
from tensorplan.dialects.memory import Barrier
from tensorplan.planning.problem import Steps

M = "memref<4xf32>"


@irdl_op_definition
class BarrierOp(IRDLOperation):
    name = "npu.barrier"
    traits = traits_def(Barrier())


def live(text: str) -> list[list[Steps]]:
    """The live ranges of the buffers. Each call of @sync is a barrier."""
    module = parse(f"""
    func.func private @sync()
    func.func @main(%a: {M}, %c: i1, %d: i1) {{
      %x = memref.alloc() : {M}
      {text}
      func.return
    }}""")
    for op in list(module.walk()):
        if isinstance(op, func.CallOp):
            _replace(op)
    main = next(op for op in module.walk() if isinstance(op, FuncOp) and op.body.blocks)
    flow = ControlFlow(main)
    uses = [a.uses for a in find_allocations(main, flow)]
    return for_all_agents(flow, live_steps(flow, uses))


def _replace(op: Operation) -> None:
    assert op.parent is not None
    op.parent.insert_op_before(BarrierOp(), op)
    op.detach()
    op.erase()


def test_buffer_written_in_one_branch_is_live_in_the_other_until_the_barrier():
    ranges = live(f"""
      scf.if %c {{
        "memref.copy"(%a, %x) : ({M}, {M}) -> ()
      }} else {{
        %y = memref.alloc() : {M}
        "memref.copy"(%a, %y) : ({M}, {M}) -> ()
      }}
      func.call @sync() : () -> ()
      scf.if %d {{
        "memref.copy"(%x, %a) : ({M}, {M}) -> ()
      }}""")
    (x,), (y,) = ranges
    assert x[0] == y[0] == 0
    assert y[1] < x[1]


def test_barrier_in_a_region_does_not_divide_live_ranges():
    (x,), (y,) = live(f"""
      %y = memref.alloc() : {M}
      "memref.copy"(%a, %x) : ({M}, {M}) -> ()
      scf.if %c {{
        func.call @sync() : () -> ()
      }}
      "memref.copy"(%a, %y) : ({M}, {M}) -> ()""")
    assert x == y


def test_buffer_without_a_writer_is_live_from_its_allocation():
    ((x,),) = live(f"""
      func.call @sync() : () -> ()
      func.call @sync() : () -> ()
      "memref.copy"(%x, %a) : ({M}, {M}) -> ()""")
    assert x == (0, 5)
