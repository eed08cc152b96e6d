"""`specialize-sizes`: replaces symbolic sizes by numbers, at any level.

    func.func @main(%x: memref<?x8xf32> {tgraph.dims = #tgraph.dims<n>}) {
      %c0 = arith.constant 0 : index
      %n = memref.dim %x, %c0 : memref<?x8xf32>
      %0 = memref.alloc(%n) : memref<?x8xf32>
→ with `sizes="n=4"`
    func.func @main(%x: memref<4x8xf32>) {
      %0 = memref.alloc() : memref<4x8xf32>

Needs: a number for each name.
Leaves: static types, constant offsets in arenas, and no arithmetic on sizes. The
attributes `tgraph.dims`, `tgraph.requires`, `tgraph.bounds`, and `tgraph.hints` are
removed. The pass checks the constraints that a function places on its sizes.
Does not: revise decisions: the order, the fusions, and the devices stay the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    StridedLayoutAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...analysis.functions import argument_attributes, set_argument_attributes
from ...analysis.sizes import SizeReader
from ...checking.plan_check import check_plan
from ...dialects.diagnostics import LocatedError, name_of
from ...dialects.sizes.dims import BOUNDS, DIMS, HINTS, REQUIRES, DimsAttr, violated
from ...dialects.sizes.symbolic import Size, substitute
from ...dialects.tgraph.base import (
    LARGEST_SIZE,
    AnyMemRef,
    TensorOp,
    VariableType,
    ints,
    is_static,
    shape_of,
    tensor_type_of,
    with_shape,
)
from ...dialects.tgraph.shaping import ConstantOp, SizeOp
from ...dialects.tgraph.structure import FusionOp
from ..option_values import parse_values


@dataclass(frozen=True)
class SpecializeSizes(ModulePass):
    """Replaces symbolic sizes by numbers.

    sizes: the value of each name, such as "n=64,m=3".
    """

    name = "specialize-sizes"

    sizes: str

    def __post_init__(self) -> None:
        parse_values(self.sizes, "sizes")  # raises ValueError

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        specialize(op, parse_values(self.sizes, "sizes"))


def specialize(module: ModuleOp, values: Mapping[str, int]) -> None:
    """Makes all sizes in the module numbers, in place.

    Raises `LocatedError` for a name without a value, for values that a function does
    not allow, and for operations whose sizes do not follow.
    """
    for func in module.walk():
        if isinstance(func, FuncOp) and not func.is_declaration:
            _Specialization(func, values).run()


def specialized(module: ModuleOp, values: Mapping[str, int]) -> ModuleOp:
    """A copy of the module with these sizes, its plan checked again."""
    copy = module.clone()
    specialize(copy, values)
    check_plan(copy, unmarked=False)
    return copy


class _Specialization:
    def __init__(self, func: FuncOp, values: Mapping[str, int]):
        self.func = func
        self.values = values
        self.reader = SizeReader(func, values)

    def run(self) -> None:
        entry = self.func.body.blocks[0]
        for argument in list(entry.args):
            self._retype(argument, self.reader.shape(argument), self.func)
        for op in list(self.func.walk()):
            if op is not self.func:
                self._operation(op)
        self._fold()
        for name in (BOUNDS, HINTS):
            self.func.attributes.pop(name, None)
        required = self.func.attributes.pop(REQUIRES, None)
        if fault := violated(required, self.values):
            raise LocatedError(fault, self.func)
        self.func.update_function_type()
        attributes = argument_attributes(self.func)
        for attrs in attributes:
            attrs.pop(DIMS, None)
        set_argument_attributes(self.func, attributes)

    def _number(self, size: Size | None, at: Operation) -> int:
        found = None if size is None else substitute(size, self.values)
        if not isinstance(found, int):
            what = (
                "a size that cannot be derived from the sizes of the arguments"
                if size is None
                else f"size {size}, expected a number for each of its names"
            )
            raise LocatedError(f"{name_of(at)} has {what}", at)
        if found > LARGEST_SIZE:
            raise LocatedError(
                f"{name_of(at)} has a size of {found}, expected at most {LARGEST_SIZE}",
                at,
            )
        return found

    def _retype(
        self, value: SSAValue, shape: Sequence[Size | None], at: Operation
    ) -> None:
        """Gives a value the type with these sizes, or those that its type names."""
        type: Attribute = value.type
        if isinstance(type, VariableType | TensorType):
            tensor = tensor_type_of(value.type)
            if not isinstance(tensor.encoding, DimsAttr):
                return
            sizes = [self._number(size, at) for size in shape_of(tensor)]
            specialized = with_shape(tensor, sizes)
            new: Attribute = specialized
            if isinstance(type, VariableType):
                new = VariableType(specialized)
        elif isinstance(type, MemRefType) and not is_static(cast(AnyMemRef, type)):
            memref_type = cast(AnyMemRef, type)
            sizes = [self._number(size, at) for size in shape]
            new = MemRefType(
                memref_type.element_type,
                sizes,
                memref_type.layout,
                memref_type.memory_space,
            )
        else:
            return
        Rewriter.replace_value_with_new_type(value, new)

    def _operation(self, op: Operation) -> None:
        if isinstance(op, SizeOp):
            self._size(op)
            return
        if isinstance(op, memref.AllocOp | memref.ReinterpretCastOp | memref.ViewOp):
            self._memory(op)
            return
        filled: dict[str, Attribute] = {}
        for value in (*op.results, *(a for r in op.regions for a in _arguments(r))):
            is_memref = isinstance(value.type, MemRefType)
            self._retype(value, self.reader.shape(value) if is_memref else (), op)
        if isinstance(op, TensorOp) and DIMS in op.attributes:
            for name in op.SIZED:
                sizes = [self._number(size, op) for size in op.sizes_in(name)]
                filled[name] = ints(sizes)
            op.properties |= filled
            del op.attributes[DIMS]
        if isinstance(op, FusionOp):
            for argument, value in zip(op.body.block.args, op.inputs, strict=True):
                if argument.type != (type := tensor_type_of(value.type)):
                    Rewriter.replace_value_with_new_type(argument, type)

    def _size(self, op: SizeOp) -> None:
        type = tensor_type_of((*op.res, *op.outs)[0].type)
        number = IntegerAttr(
            self._number(op.size, op), cast(IndexType, type.element_type)
        )
        new = ConstantOp.create(
            operands=op.operands,
            result_types=[result.type for result in op.results],
            properties={
                "value": number,
                "operandSegmentSizes": op.properties["operandSegmentSizes"],
            },
            attributes=op.attributes,
        )
        _replace(op, new)

    def _memory(
        self, op: memref.AllocOp | memref.ReinterpretCastOp | memref.ViewOp
    ) -> None:
        type = cast(AnyMemRef, op.results[0].type)
        shape = [self._number(size, op) for size in self.reader.shape(op.results[0])]
        layout = type.layout
        new: Operation
        if isinstance(op, memref.ReinterpretCastOp):
            offsets, sizes, strides = (
                self._filled(static, operands, op)
                for static, operands in (
                    (op.static_offsets, op.offsets),
                    (op.static_sizes, op.sizes),
                    (op.static_strides, op.strides),
                )
            )
            if isinstance(layout, StridedLayoutAttr):
                layout = StridedLayoutAttr(strides, offsets[0])
            static = MemRefType(type.element_type, shape, layout, type.memory_space)
            new = memref.ReinterpretCastOp(
                op.source, (), (), (), offsets, sizes, strides, static
            )
        else:
            static = MemRefType(type.element_type, shape, layout, type.memory_space)
            if static == type and not (isinstance(op, memref.ViewOp)):
                return
            if isinstance(op, memref.ViewOp):
                new = memref.ViewOp(op.source, op.byte_shift, (), static)
            else:
                new = memref.AllocOp((), (), static, op.alignment)
        new.attributes |= op.attributes
        _replace(op, new)

    def _filled(
        self,
        static: DenseArrayBase[IntegerType],
        operands: Sequence[SSAValue],
        op: Operation,
    ) -> list[int]:
        given = iter(operands)
        return [
            self._number(self.reader.size(next(given)), op)
            if number == DYNAMIC_INDEX
            else number
            for number in static.get_values()
        ]

    def _fold(self) -> None:
        """Replaces what is left of sizes by constants."""
        for op in reversed(list(self.func.walk())):
            if not isinstance(op, memref.DimOp) and not op.name.startswith("arith."):
                continue
            if isinstance(op, arith.ConstantOp):
                if op.result.first_use is None:
                    Rewriter.erase_op(op)
                continue
            if not isinstance(op.results[0].type, IndexType):
                continue
            size = self.reader.size(op.results[0])
            if op.results[0].first_use is None:
                Rewriter.erase_op(op)
            elif isinstance(size, int):
                _replace(op, arith.ConstantOp(IntegerAttr(size, IndexType())))


def _arguments(region: Region) -> Sequence[SSAValue]:
    return [argument for block in region.blocks for argument in block.args]


def _replace(op: Operation, new: Operation) -> None:
    new.location = op.location
    Rewriter.replace_op(op, new)
