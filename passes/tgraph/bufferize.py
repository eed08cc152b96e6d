"""`tgraph-bufferize`: converts tensors to memrefs with explicit allocation and
deallocation.

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

 * Variables become arguments with the attribute `tgraph.variable`. Results become
   additional, write-only arguments at the end, with `tgraph.result = N`.
 * Each result or assigned value is computed directly into its destination.
 * An operation reuses the buffer of an operand that it may overwrite
   (`TensorOp.overwritable`) and that has no later reader.
 * Reshape, transpose, slice, broadcast, and reverse are views, unless no strides can
   express the result. Each view is a single `memref.reinterpret_cast` of its buffer.
 * A product that is transposed and then returned, reshaped or overwritten is computed
   in that order, if nothing else reads it (`analysis/orders.py`).
 * A variable is read in place. Contents that are still needed when it is overwritten
   are copied just before.
 * Each value that a loop carries has one buffer, which the body updates like a
   variable. Loops and branches become `scf.while` and `scf.if`
   (bufferization/blocks.py).
 * Destination-style operations of other dialects (linalg's, and all with the traits of
   `dialects/memory.py`) become the same operations on memrefs. Scalars stay.
 * Constants become `memref.global`s if they are small or their elements differ. Other
   constants are filled in where they are needed.

Needs: level 1, with devices for all tensors (`tgraph-place-devices`) or for none, a
single block, and symbolic sizes that follow from the sizes of the arguments. The
function computes the sizes at its start.
Leaves: level 2: memref IR. Every alloc has one dealloc in its block, after its last
use. Operations keep their attributes; copies and deallocs inherit the stream of the
operation that they belong to.
Does not: share memory between buffers; plan-memory does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    UnitAttr,
    i32,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ...analysis.functions import (
    argument_attributes,
    is_tensor,
    result_attributes,
    set_argument_attributes,
    set_result_attributes,
    tensor_functions,
)
from ...analysis.sizes import SizeWriter
from ...analysis.storage import TensorBuffer, storage_of
from ...dialects.diagnostics import LocatedError
from ...dialects.sizes.dims import DIMS, DimsAttr
from ...dialects.tgraph.base import (
    LARGEST_SIZE,
    NAME,
    RESULT,
    VARIABLE,
    AnyTensor,
    VariableType,
    bare,
    device_of,
    is_static,
    shape_of,
    tensor_type_of,
)
from ...frontends.builder import name_hint
from .bufferization.blocks import BlockWriter, contiguous
from .bufferization.constants import Constants


@dataclass(frozen=True)
class TGraphBufferize(ModulePass):
    """Converts tensors to memrefs with explicit allocation."""

    name = "tgraph-bufferize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        constants = Constants(op)
        for func, block in list(tensor_functions(op, with_scalars=True)):
            _check_ready(func)
            _Function(func, block, constants).run()


def _check_ready(func: FuncOp) -> None:
    tensors = list(_tensors(func))
    is_placed = any(device_of(type) is not None for _, type in tensors)
    for op, type in tensors:
        if DYNAMIC_INDEX in shape_of(type):
            raise LocatedError(f"{op.name}: {type} has an unknown size", op)
        elements = prod(filter(None, type.get_shape())) if is_static(type) else 0
        if elements > LARGEST_SIZE:
            raise LocatedError(
                f"{op.name}: {type} has sizes whose product is {elements}, "
                f"expected at most {LARGEST_SIZE}",
                op,
            )
        if is_placed and device_of(type) is None:
            raise LocatedError(
                f"{op.name}: {type} has no device; run tgraph-place-devices first",
                op,
            )


def _tensors(func: FuncOp) -> Iterator[tuple[Operation, AnyTensor]]:
    """Yields each operation of `func` with the types of the tensors that it defines, as
    results or as arguments of its blocks."""
    for op in func.walk():
        arguments = [a for r in op.regions for b in r.blocks for a in b.args]
        for value in (*arguments, *op.results):
            if is_tensor(value.type):
                yield op, tensor_type_of(value.type)


class _Function:
    """Builds the memref form of one function: this class rewrites the signature,
    `BlockWriter` the block."""

    def __init__(self, func: FuncOp, block: Block, constants: Constants):
        self.func = func
        self.old = block
        self.argument_attrs = argument_attributes(func)
        if not isinstance(block.last_op, ReturnOp):
            raise LocatedError("function does not end with func.return", func)
        self.end = block.last_op
        self.sizes = SizeWriter()
        self.storage = storage_of(block)
        self.bases: dict[TensorBuffer, SSAValue] = {}
        self.body = BlockWriter(self.storage, constants, self.sizes, self.bases, {})

    def run(self) -> None:
        self._arguments()
        self._results()
        block = self.body.run()
        scalars = [v for v in self.end.operands if not is_tensor(v.type)]
        end = ReturnOp(*scalars)
        end.location = self.end.location
        block.add_op(end)
        assert block.first_op is not None
        block.insert_ops_before(self.sizes.ops, block.first_op)
        self.func.detach_region(0).drop_all_references()  # to scalars, which stay
        self.func.add_region(Region(block))
        self.func.properties["function_type"] = FunctionType.from_lists(
            [argument.type for argument in block.args], [s.type for s in scalars]
        )
        set_argument_attributes(self.func, self.argument_attrs)

    def _arguments(self) -> None:
        for argument, attrs in zip(self.old.args, self.argument_attrs, strict=True):
            if not is_tensor(argument.type):
                self._scalar(argument)
                continue
            if isinstance(argument.type, VariableType):
                attrs[VARIABLE] = UnitAttr()
            buffer = self.storage.buffer_of(argument)
            self.sizes.give(self._argument(buffer, attrs), buffer.shape)

    def _scalar(self, argument: BlockArgument) -> None:
        block = self.body.new
        new = block.insert_arg(argument.type, len(block.args))
        argument.replace_all_uses_with(new)
        new.name_hint = argument.name_hint

    def _argument(self, buffer: TensorBuffer, attrs: dict[str, Attribute]) -> SSAValue:
        block = self.body.new
        argument = block.insert_arg(contiguous(buffer.type), len(block.args))
        argument.name_hint = buffer.name
        if isinstance(encoding := bare(buffer.type).encoding, DimsAttr):
            attrs[DIMS] = encoding
        self.bases[buffer] = argument
        return argument

    def _results(self) -> None:
        """Adds one argument for each tensor that the function returns."""
        taken = {
            index.value.data
            for attrs in self.argument_attrs
            if isinstance(index := attrs.get(RESULT), IntegerAttr)
        }
        buffers = iter(self.storage.results)
        kept: list[dict[str, Attribute]] = []
        number = 0
        for value, attrs in zip(
            self.end.operands, result_attributes(self.func), strict=True
        ):
            while number in taken:
                number += 1
            taken.add(number)
            if not is_tensor(value.type):
                kept.append(attrs)
                continue
            attrs = attrs | {RESULT: IntegerAttr(number, i32)}
            argument = self._argument(next(buffers), attrs)
            if isinstance(name := attrs.get(NAME), StringAttr):
                argument.name_hint = name_hint(name.data)
            self.argument_attrs.append(attrs)
        set_result_attributes(self.func, kept)
