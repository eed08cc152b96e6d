"""`tgraph-bufferize`: tensors become memrefs, each allocated, written and freed.

    func.func @f(%v: !tgraph.variable<tensor<4x8xf32, "cpu:0">>, ...)
                 -> tensor<8xf32, "cpu:0"> {
      %0 = tgraph.exponential %a : tensor<4x8xf32, "cpu:0">
      %1 = tgraph.transpose %0 {permutation = array<i64: 1, 0>} : ...
      %2 = tgraph.dot_general %1, %b ... -> tensor<8xf32, "cpu:0">
      func.return %2 : tensor<8xf32, "cpu:0">

    func.func @f(%v: memref<4x8xf32, "cpu:0"> {tgraph.variable}, ...,
                 %r: memref<8xf32, "cpu:0"> {tgraph.result = 0 : i32}) {
      %0 = memref.alloc() : memref<4x8xf32, "cpu:0">
      tgraph.exponential %a outs(%0) : memref<4x8xf32, "cpu:0">
      %1 = memref.reinterpret_cast %0 to ... : memref<8x4xf32, strided<[1, 8]>, "cpu:0">
      tgraph.dot_general %1, %b outs(%r) ...
      memref.dealloc %0 : memref<4x8xf32, "cpu:0">
      func.return

 * Variables become arguments with the attribute `tgraph.variable`; results become added
   last arguments, to be written only, with `tgraph.result = N`.
 * A result or assigned value is computed straight into its destination.
 * An operation takes over the buffer of an operand that it may overwrite
   (`TensorOp.overwritable`) and that nobody reads afterwards.
 * Reshape, transpose, slice, broadcast and reverse are views, unless no strides can say
   the result; each view is one `memref.reinterpret_cast` of its buffer.
 * A read variable is used in place. What of its contents is still needed when it is
   written is copied just before.
 * What a loop carries lies in one buffer each, which its body updates like a variable;
   loops and branches become `scf.while` and `scf.if` (bufferization/regions.py).
 * Constants that are small or not a single number are `memref.global`s; the others are
   filled in where they are needed.

Needs: level 1, placed (`tgraph-place-devices`), one block; symbolic sizes that follow
from those of the arguments, of which they are computed first of all.
Leaves: level 2: memref IR; every alloc has one dealloc in its block, behind its last
use. Operations keep their attributes; copies and deallocs have the stream of the
operation that they serve.
Does not: share memory between buffers; that is plan-memory's.
"""

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    UnitAttr,
    i32,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region
from xdsl.passes import ModulePass

from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.base import (
    LARGEST_SIZE,
    RESULT,
    VARIABLE,
    VariableType,
    bare,
    device_of,
    is_static,
    shape_of,
    tensor_type_of,
)
from tensorplan.dialects.tgraph.dims import DIMS, DimsAttr
from tensorplan.passes.bufferization.blocks import BlockBufferization
from tensorplan.passes.bufferization.buffers import Buffer, Constants, contiguous
from tensorplan.passes.functions import (
    argument_attributes,
    is_tensor,
    result_attributes,
    set_argument_attributes,
    set_result_attributes,
    tensor_functions,
)
from tensorplan.passes.index_sizes import SizeWriter


@dataclass(frozen=True)
class TGraphBufferize(ModulePass):
    """Turns tensors into memrefs with explicit allocation."""

    name = "tgraph-bufferize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        constants = Constants(op)
        for func, block in list(tensor_functions(op)):
            _check_ready(func)
            _Function(func, block, constants).run()


def _check_ready(func: FuncOp) -> None:
    for op in func.walk():
        arguments = [a for r in op.regions for b in r.blocks for a in b.args]
        for value in (*arguments, *op.results):
            if not is_tensor(value.type):
                continue
            type = tensor_type_of(value.type)
            if DYNAMIC_INDEX in shape_of(type):
                raise LocatedError(
                    f"{op.name}: {type} has a size that is not known", op
                )
            elements = prod(filter(None, type.get_shape())) if is_static(type) else 0
            if elements > LARGEST_SIZE:
                raise LocatedError(
                    f"{op.name}: {type} has sizes whose product is {elements}, "
                    f"expected at most {LARGEST_SIZE}",
                    op,
                )
            if device_of(type) is None:
                raise LocatedError(
                    f"{op.name}: {type} has no device; run tgraph-place-devices first",
                    op,
                )


class _Function:
    """Builds the memref form of one function: its signature; its block is rewritten by
    `BlockBufferization`."""

    def __init__(self, func: FuncOp, block: Block, constants: Constants):
        self.func = func
        self.old = block
        self.sizes = SizeWriter()
        self.body = BlockBufferization(block, constants, self.sizes)
        self.argument_attrs = argument_attributes(func)

    def run(self) -> None:
        self._arguments()
        block = self.body.run(self._results())
        end = ReturnOp()
        end.location = (self.old.last_op or self.func).location
        block.add_op(end)
        assert block.first_op is not None
        block.insert_ops_before(self.sizes.ops, block.first_op)
        self.func.detach_region(0)
        self.func.add_region(Region(block))
        self.func.properties["function_type"] = FunctionType.from_lists(
            [argument.type for argument in block.args], []
        )
        set_argument_attributes(self.func, self.argument_attrs)
        set_result_attributes(self.func, [])

    def _arguments(self) -> None:
        for argument, attrs in zip(self.old.args, self.argument_attrs, strict=True):
            if not is_tensor(argument.type):
                raise LocatedError(
                    f"argument {argument.index} has type {argument.type}, expected a "
                    "tensor or a variable",
                    self.func,
                )
            buffer = self._argument(argument.type, argument.name_hint, attrs)
            self.sizes.give(buffer.base, buffer.shape)
            if isinstance(argument.type, VariableType):
                attrs[VARIABLE] = UnitAttr()
                buffer.is_variable = True
                self.body.variables[argument] = buffer
            else:
                self.body.put(argument, buffer)

    def _argument(
        self, type: Attribute, name_hint: str | None, attrs: dict[str, Attribute]
    ) -> Buffer:
        block, tensor = self.body.new, tensor_type_of(type)
        argument = block.insert_arg(contiguous(tensor), len(block.args))
        argument.name_hint = name_hint
        if isinstance(bare(tensor).encoding, DimsAttr):
            attrs[DIMS] = bare(tensor).encoding
        return Buffer(argument, shape_of(tensor), owned=False)

    def _results(self) -> list[Buffer]:
        """One argument for each result."""
        terminator = self.old.last_op
        if not isinstance(terminator, ReturnOp):
            raise LocatedError("function does not end with func.return", self.func)
        taken = {
            index.value.data
            for attrs in self.argument_attrs
            if isinstance(index := attrs.get(RESULT), IntegerAttr)
        }
        buffers: list[Buffer] = []
        number = 0
        for value, attrs in zip(
            terminator.operands, result_attributes(self.func), strict=True
        ):
            while number in taken:
                number += 1
            taken.add(number)
            attrs = attrs | {RESULT: IntegerAttr(number, i32)}
            buffers.append(self._argument(value.type, None, attrs))
            self.argument_attrs.append(attrs)
        return buffers
