"""A compiler for an accelerator: translates a network to commands with addresses.

python examples/npu_compiler.py

The compiler itself has a dialect, a way to write networks, and the commands. tensorplan
decides the order, which operations run in place, and all addresses.
"""

from collections.abc import Iterator

from xdsl import irdl
from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, memref, tensor
from xdsl.dialects.builtin import FunctionType, IntegerAttr, ModuleOp, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue
from xdsl.passes import PassPipeline
from xdsl.rewriter import InsertPoint

from tensorplan.dialects.memory import DestinationStyle, Elementwise
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.tgraph.bufferize import TGraphBufferize
from tensorplan.passes.tgraph.schedule import TGraphSchedule

BATCH = 16


class Command(irdl.IRDLOperation):
    """The last operand is the destination: a memref, or a tensor tied to the result."""

    args = irdl.var_operand_def()
    res = irdl.var_result_def()


@irdl.irdl_op_definition
class DenseOp(Command):
    name = "npu.dense"
    traits = irdl.traits_def(DestinationStyle())


@irdl.irdl_op_definition
class ReluOp(Command):
    name = "npu.relu"
    traits = irdl.traits_def(Elementwise())


@irdl.irdl_op_definition
class AddOp(Command):
    name = "npu.add"
    traits = irdl.traits_def(Elementwise())


class Network:
    """Builds a function on tensors, one operation after the other."""

    def __init__(self, *shapes: tuple[int, ...]):
        types = [TensorType(f32, shape) for shape in shapes]
        self.func = FuncOp("main", FunctionType.from_lists(types, types[:1]))
        self.build = Builder(InsertPoint.at_end(self.func.body.block))

    def op(self, kind: type[Command], *args: SSAValue, width: int) -> SSAValue:
        type = TensorType(f32, (BATCH, width))
        empty = self.build.insert(tensor.EmptyOp((), type))
        op = kind(operands=[[*args, empty.tensor]], result_types=[[type]])
        return self.build.insert(op).res[0]


def commands(func: FuncOp) -> Iterator[str]:
    """The planned function as text; a memref is a name or `@` and an arena offset."""
    names: dict[SSAValue, str] = {a: a.name_hint or "out" for a in func.args}
    for op in func.body.block.ops:
        match op:
            case arith.ConstantOp(value=IntegerAttr() as offset):
                names[op.result] = f"@{offset.value.data}"
            case memref.AllocOp():
                yield f"{op.memref.type.get_shape()[0]} bytes of scratchpad"
            case memref.ViewOp():
                names[op.results[0]] = names[op.byte_shift]
            case memref.CopyOp() | Command():
                *read, written = (names[value] for value in op.operands)
                yield f"{op.name.split('.')[1]:6}{', '.join(read)} -> {written}"
            case _:
                pass


if __name__ == "__main__":
    net = Network((BATCH, 32), (32, 256), (256, 32))
    x, up, down = net.func.args
    x.name_hint, up.name_hint, down.name_hint = "x", "up", "down"
    wide = [net.op(DenseOp, x, up, width=256) for _ in range(2)]
    wide = [net.op(ReluOp, value, width=256) for value in wide]
    first, second = (net.op(DenseOp, value, down, width=32) for value in wide)
    net.build.insert(ReturnOp(net.op(AddOp, first, second, width=32)))
    module = ModuleOp([net.func])
    passes = TGraphSchedule(), TGraphBufferize(), PlanMemory(alignment=64)
    PassPipeline(passes).apply(Context(), module)
    print("\n".join(commands(net.func)))
