"""The conversion of one StableHLO operation to tgraph, and helpers for converters."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod
from typing import TypeAlias, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FixedBitwidthType,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    TupleType,
    UnregisteredAttr,
    UnregisteredOp,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from ...dialects.diagnostics import LocatedError, name_of
from ...dialects.sizes.dims import DIMS
from ...dialects.tgraph import shaping
from ...dialects.tgraph.base import (
    AnyTensor,
    TensorOp,
    ints,
    segments,
    shape_of,
    tensor_type_of,
    with_element,
    with_shape,
)
from ...dialects.tgraph.elements import is_complex, real_element
from ...dialects.tgraph.elementwise import ComplexOp, ElementwiseOp
from ...dialects.tgraph.partial import PartialTypes
from ...dialects.tgraph.structure import YieldOp
from ...dialects.tgraph.widening import widened
from ..unsupported import Unsupported

Values: TypeAlias = Sequence[SSAValue]
IntegerArray: TypeAlias = DenseArrayBase[IntegerType]


_WIDTHS = (1, 2, 4, 8, 16, 32, 64)


def check_type(type: Attribute) -> None:
    """Raises `Unsupported` for a type of which tgraph has no values."""
    if not isinstance(type, TensorType):
        raise Unsupported(f"with a value of type {type}")
    tensor = cast(AnyTensor, type)
    element: Attribute = tensor.element_type
    if is_complex(element):
        if isinstance(real_element(element), Float32Type | Float64Type):
            return
        raise Unsupported(f"with elements of type {element}")
    is_small = isinstance(element, IntegerType) and element.bitwidth not in _WIDTHS
    if not isinstance(element, FixedBitwidthType) or is_small:
        raise Unsupported(f"with elements of type {element}")


def parts_of(type: Attribute) -> Iterator[Attribute]:
    """The types in a tuple type, recursively; for any other type, the type itself."""
    if not isinstance(type, TupleType):
        yield type
        return
    for part in type.types:
        yield from parts_of(part)


@dataclass(slots=True)
class Conversion:
    """The conversion of one operation, with its new operands and the output `into`."""

    op: Operation
    inputs: Values
    """The new values of the operands."""

    into: list[Operation]

    block: Callable[[Block, dict[SSAValue, SSAValue], list[Operation]], Values]
    """Appends the operations of a block for given arguments; returns its results."""

    scope: Mapping[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """The new values of all values that the operation can use."""

    @property
    def result_type(self) -> AnyTensor:
        return cast(AnyTensor, self.op.results[0].type)

    def attribute(self, name: str) -> Attribute | None:
        return self.op.properties.get(name, self.op.attributes.get(name))

    def integers(self, name: str, default: Sequence[int] = ()) -> Sequence[int]:
        """The elements of an integer array, which may also be a dense tensor."""
        attr = self.attribute(name)
        if attr is None:
            return default
        if isinstance(attr, DenseArrayBase):
            return cast(IntegerArray, attr).get_values()
        if isinstance(attr, DenseIntOrFPElementsAttr):
            dense = cast(DenseIntOrFPElementsAttr[IntegerType], attr)
            values = dense.get_values()
            return values * (prod(dense.get_shape()) // max(len(values), 1))
        raise Unsupported(f"with {name} = {attr}")

    def array(self, name: str, default: Sequence[int] = ()) -> Attribute:
        """The elements of an integer array as an attribute of tgraph."""
        attr = self.attribute(name)
        if isinstance(attr, DenseArrayBase):
            array = cast(IntegerArray, attr)
            if array.elt_type == i64:
                return array
        return ints(self.integers(name, default))

    def integer(self, name: str, default: int) -> Attribute:
        attr = self.attribute(name)
        return IntegerAttr(default, i64) if attr is None else attr

    def number_in(self, name: str, default: int) -> int:
        """The value of an integer attribute, or of a flag as 0 or 1."""
        attr = self.attribute(name)
        return attr.value.data if isinstance(attr, IntegerAttr) else default

    def option(self, name: str) -> Attribute | None:
        """An option of a custom call."""
        config = self.attribute("mhlo.backend_config")
        if not isinstance(config, DictionaryAttr):
            return None
        return config.data.get(name)

    def text(self, name: str) -> str:
        """The text of an unregistered dialect's attribute; empty if it is missing."""
        match self.attribute(name):
            case UnregisteredAttr(value=StringAttr(data=text)):
                return text.strip()
            case None:
                return ""
            case other:
                raise Unsupported(f"with {name} = {other}")

    def emit(
        self,
        op_type: type[TensorOp],
        inputs: Values,
        result_type: AnyTensor | None = None,
        /,
        **properties: Attribute,
    ) -> SSAValue:
        """Appends an operation; the type is that of the original's first result."""
        properties["operandSegmentSizes"] = segments(inputs, ())
        dims = properties.pop(DIMS, None)
        op = op_type.create(
            operands=inputs,
            result_types=(result_type or self.result_type,),
            properties=properties,
            attributes={} if dims is None else {DIMS: dims},
            location=self.op.location,
        )
        self._complete(op)
        ops = widened(op)
        self.into += ops
        return ops[-1].results[0]

    def emit_all(
        self,
        op_type: type[TensorOp],
        inputs: Values,
        result_types: Sequence[Attribute],
        regions: Sequence[Region] = (),
        /,
        **properties: Attribute,
    ) -> Values:
        """Appends an operation with several results."""
        properties["operandSegmentSizes"] = segments(inputs, ())
        op = op_type.create(
            operands=inputs,
            result_types=result_types,
            properties=properties,
            regions=regions,
            location=self.op.location,
        )
        self._complete(op)
        self.into.append(op)
        return op.results

    def _complete(self, op: TensorOp) -> None:
        """Infers dynamic sizes of the results from the inputs."""
        declared = [cast(AnyTensor, result.type) for result in op.results]
        if not any(DYNAMIC_INDEX in type.get_shape() for type in declared):
            return
        types = PartialTypes([tensor_type_of(v.type) for v in op.inputs], declared)
        try:
            op.refine(types)
        except VerifyException as error:
            raise LocatedError(f"{name_of(self.op)}: {error}", self.op) from None
        for number in types.changed:
            if (index := number - len(op.inputs)) >= 0:
                type = with_shape(declared[index], types.shapes[number])
                Rewriter.replace_value_with_new_type(op.results[index], type)

    def number(self, value: float, type: AnyTensor) -> SSAValue:
        """A tensor of type `type` whose elements all equal `value`."""
        element = type.element_type
        if is_complex(element):
            parts = with_element(type, real_element(element))
            values = [self.number(part, parts) for part in (value, 0)]
            return self.emit(ComplexOp, values, type)
        number: Attribute
        if isinstance(element, IntegerType):
            integer = cast(IntegerType, element)
            width = integer.bitwidth
            number = IntegerAttr(int(value), integer, truncate_bits=width > 1)
        else:
            number = FloatAttr(value, cast(AnyFloat, element))
        return self.emit(shaping.ConstantOp, (), type, value=number)

    def region(self, index: int) -> Region:
        """Converts a region whose arguments are single elements."""
        return self.converted(self.op.regions[index].block)

    def converted(self, old: Block) -> Region:
        """Converts a block whose arguments are single elements to a region."""
        new = Block(arg_types=[argument.type for argument in old.args])
        ops: list[Operation] = []
        scope = dict[SSAValue, SSAValue](zip(old.args, new.args, strict=True))
        for value in [v for op in old.ops for v in op.operands if v in self.scope]:
            constant = self.scope[value].owner
            if not isinstance(constant, shaping.ConstantOp):
                raise Unsupported("with a region that uses values from outside")
            ops.append(copy := constant.clone())
            scope[value] = copy.result
        results = self.block(old, scope, ops)
        for op in ops:
            if not isinstance(op, ElementwiseOp | shaping.ConstantOp | UnregisteredOp):
                raise Unsupported(f"with {op.name} on single elements")
        new.add_ops([*ops, YieldOp(*results)])
        return Region(new)

    def applied(self, index: int, inputs: Values) -> list[SSAValue]:
        """Applies a region on single elements to those of tensors of one shape."""
        *ops, end = (block := self.region(index).block).ops
        shape = shape_of(type_of(inputs[0]))
        values = dict[SSAValue, SSAValue](zip(block.args, inputs, strict=True))
        for op in ops:
            scalar = cast(AnyTensor, op.results[0].type)
            if isinstance(op, shaping.ConstantOp):
                number = cast(IntegerAttr | FloatAttr, op.splat).value.data
                new = self.number(number, with_shape(scalar, shape))
            else:
                assert isinstance(op, TensorOp)
                operands = [values[operand] for operand in op.operands]
                new = self.emit(
                    type(op), operands, with_shape(scalar, shape), **op.own_properties
                )
            values[op.results[0]] = new
        return [values[operand] for operand in end.operands]


Converter: TypeAlias = Callable[[Conversion], Values]


def type_of(value: SSAValue) -> AnyTensor:
    return cast(AnyTensor, value.type)


def broadcast(c: Conversion, value: SSAValue, type: AnyTensor) -> SSAValue:
    """Broadcasts a scalar to the shape of `type`; other tensors are unchanged."""
    if type_of(value).shape == type.shape or shape_of(type_of(value)):
        return value
    result_type = with_element(type, type_of(value).element_type)
    return c.emit(
        shaping.BroadcastInDimOp, (value,), result_type, broadcast_dimensions=ints(())
    )


def same(op_type: type[TensorOp], c: Conversion) -> Values:
    return (c.emit(op_type, c.inputs),)


def arrays(op_type: type[TensorOp], names: Mapping[str, str], c: Conversion) -> Values:
    """Emits `op_type`; `names` maps tgraph's names of arrays to StableHLO's."""
    properties = {ours: c.array(theirs) for ours, theirs in names.items()}
    return (c.emit(op_type, c.inputs, **properties),)


@cache
def fields_of(text: str) -> Mapping[str, tuple[int, ...]]:
    """Parses `lhs_dims = [0, 1], index = 2` into numbers by name."""
    return {
        name: tuple(int(number) for number in re.findall(r"-?\d+", numbers))
        for name, numbers in re.findall(r"(\w+) = (\[[^\]]*\]|-?\d+)", text)
    }


def padding(c: Conversion, rank: int) -> tuple[IntegerArray, IntegerArray]:
    """The low and the high ends of the `rank` pairs in the attribute `padding`."""
    padding = c.integers("padding", [0] * (2 * rank))
    return ints(padding[::2]), ints(padding[1::2])
