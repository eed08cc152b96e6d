"""Operation by operation, from StableHLO (level 0) to tgraph (level 1).

`CONVERSIONS` holds all operations that have a tgraph form. Most are the same operation
under both names. The others:

    batch_norm_inference    its formula, per channel as far as possible
    chlo.square             multiply by itself
    optimization_barrier    its operands
    pad, slice              the operand, where they change nothing
    reduce                  by kind; then the kind's operation with the initial value,
                            unless that is the kind's identity
    convolution             a flipped window (`window_reversal`) reverses the kernel
    select, clamp           a scalar predicate or bound is broadcast
    dot_general, convolution   with wider results: operands are converted first
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import inf, prod
from typing import TypeAlias, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FixedBitwidthType,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    TensorType,
    UnregisteredAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from tensorplan.dialects.diagnostics import name_of
from tensorplan.dialects.tgraph import elementwise, indexing, reducing, shaping
from tensorplan.dialects.tgraph.base import (
    AnyTensor,
    TensorOp,
    element_bytes,
    ints,
    with_element,
)

Values: TypeAlias = Sequence[SSAValue]
IntegerArray: TypeAlias = DenseArrayBase[IntegerType]


class Unsupported(Exception):
    """Why an operation has no tgraph form."""


def check_type(type: Attribute) -> None:
    """Refuses what tgraph has no values of."""
    if not isinstance(type, TensorType):
        raise Unsupported(f"with a value of type {type}")
    tensor = cast(AnyTensor, type)
    if not isinstance(tensor.element_type, FixedBitwidthType):
        raise Unsupported(f"with elements of type {tensor.element_type}")


@dataclass(slots=True)
class Conversion:
    """One operation, on its way: what it was and where the operations for it go."""

    op: Operation
    inputs: Values
    """The new values of its operands."""

    into: list[Operation]

    @property
    def result_type(self) -> AnyTensor:
        return cast(AnyTensor, self.op.results[0].type)

    def attribute(self, name: str) -> Attribute | None:
        return self.op.properties.get(name, self.op.attributes.get(name))

    def integers(self, name: str, default: Sequence[int] = ()) -> Sequence[int]:
        """The elements of an integer array, which a dense tensor may hold as well."""
        attr = self.attribute(name)
        if attr is None:
            return default
        if isinstance(attr, DenseArrayBase):
            return cast(IntegerArray, attr).get_values()
        if isinstance(attr, DenseIntOrFPElementsAttr):
            dense = cast(DenseIntOrFPElementsAttr[IntegerType], attr)
            values = dense.get_values()
            return values * (prod(dense.get_shape()) // len(values))
        raise Unsupported(f"with {name} = {attr}")

    def array(self, name: str, default: Sequence[int] = ()) -> Attribute:
        """The same as an attribute of tgraph's."""
        attr = self.attribute(name)
        if isinstance(attr, DenseArrayBase):
            array = cast(IntegerArray, attr)
            if array.elt_type == i64:
                return array
        return ints(self.integers(name, default))

    def integer(self, name: str, default: int) -> Attribute:
        attr = self.attribute(name)
        return IntegerAttr(default, i64) if attr is None else attr

    def text(self, name: str) -> str:
        """What a dialect's own attribute says, as text."""
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
        """Appends an operation, whose type is that of the original's first result."""
        properties["operandSegmentSizes"] = _segments(len(inputs))
        op = op_type.create(
            operands=inputs,
            result_types=(result_type or self.result_type,),
            properties=properties,
            location=self.op.location,
        )
        self.into.append(op)
        return op.results[0]


Converter = Callable[[Conversion], Values]


@cache
def _segments(inputs: int) -> DenseArrayBase:
    return DenseArrayBase.from_list(i32, [inputs, 0])


def _type(value: SSAValue) -> AnyTensor:
    return cast(AnyTensor, value.type)


def _broadcast(c: Conversion, value: SSAValue, type: AnyTensor) -> SSAValue:
    """A scalar as a tensor of the shape of `type`; other tensors as they are."""
    if _type(value).shape == type.shape or _type(value).get_shape():
        return value
    result_type = with_element(type, _type(value).element_type)
    return c.emit(
        shaping.BroadcastInDimOp, (value,), result_type, broadcast_dimensions=ints(())
    )


# Elementwise


def _same(op_type: type[TensorOp], c: Conversion) -> Values:
    return (c.emit(op_type, c.inputs),)


def _square(c: Conversion) -> Values:
    (x,) = c.inputs
    return (c.emit(elementwise.MultiplyOp, (x, x)),)


def _compare(c: Conversion) -> Values:
    if (kind := c.text("compare_type")) == "TOTALORDER":
        raise Unsupported(f"with compare_type {kind}")
    direction = StringAttr(c.text("comparison_direction"))
    return (c.emit(elementwise.CompareOp, c.inputs, direction=direction),)


def _select(c: Conversion) -> Values:
    predicate, *values = c.inputs
    predicate = _broadcast(c, predicate, c.result_type)
    return (c.emit(elementwise.SelectOp, (predicate, *values)),)


def _clamp(c: Conversion) -> Values:
    inputs = [_broadcast(c, value, c.result_type) for value in c.inputs]
    return (c.emit(elementwise.ClampOp, inputs),)


# Constants and shapes

_SLICE = {name: name for name in ("start_indices", "limit_indices", "strides")}

_PAD = {
    "low": "edge_padding_low",
    "high": "edge_padding_high",
    "interior": "interior_padding",
}


def _constant(c: Conversion) -> Values:
    attr = c.attribute("value")
    if not isinstance(attr, DenseIntOrFPElementsAttr):
        raise Unsupported("with elements that are not in the file")
    value = cast(DenseIntOrFPElementsAttr[IntegerType | AnyFloat], attr)
    splat = _splat(value)
    return (c.emit(shaping.ConstantOp, (), value=value if splat is None else splat),)


def _splat(
    value: DenseIntOrFPElementsAttr[IntegerType | AnyFloat],
) -> IntegerAttr[IntegerType] | FloatAttr | None:
    """The number that all elements are, if there is one."""
    type = value.get_element_type()
    data = value.data.data
    first = data[: type.compile_time_size]
    if not data or data != first * (len(data) // len(first)):
        return None
    if isinstance(type, IntegerType):
        return IntegerAttr(type.unpack(first, 1)[0], type)
    return FloatAttr(type.unpack(first, 1)[0], type)


def _iota(c: Conversion) -> Values:
    return (c.emit(shaping.IotaOp, (), dimension=c.integer("iota_dimension", 0)),)


def _arrays(op_type: type[TensorOp], names: Mapping[str, str], c: Conversion) -> Values:
    """The same operation with integer arrays under the names that tgraph has."""
    properties = {ours: c.array(theirs) for ours, theirs in names.items()}
    return (c.emit(op_type, c.inputs, **properties),)


def _slice(c: Conversion) -> Values:
    if c.inputs[0].type == c.result_type:
        return c.inputs
    return _arrays(shaping.SliceOp, _SLICE, c)


def _pad(c: Conversion) -> Values:
    if not any(number for name in _PAD.values() for number in c.integers(name)):
        return c.inputs[:1]
    return _arrays(shaping.PadOp, _PAD, c)


def _concatenate(c: Conversion) -> Values:
    dimension = c.integer("dimension", 0)
    return (c.emit(shaping.ConcatenateOp, c.inputs, dimension=dimension),)


# Products


def _widened(c: Conversion) -> list[SSAValue]:
    """The operands, converted to the result's element type if that is wider."""
    element = c.result_type.element_type
    inputs: list[SSAValue] = []
    for value in c.inputs:
        type = _type(value)
        if type.element_type != element:
            if element_bytes(type.element_type) > element_bytes(element):
                raise Unsupported(f"from {type.element_type} to {element}")
            value = c.emit(elementwise.ConvertOp, (value,), with_element(type, element))
        inputs.append(value)
    return inputs


@cache
def _fields(text: str) -> Mapping[str, tuple[int, ...]]:
    """The numbers in `lhs_dims = [0, 1], index = 2`, by name."""
    return {
        name: tuple(int(number) for number in re.findall(r"-?\d+", numbers))
        for name, numbers in re.findall(r"(\w+) = (\[[^\]]*\]|-?\d+)", text)
    }


def _dot_general(c: Conversion) -> Values:
    fields = _fields(c.text("dot_dimension_numbers"))
    properties = {
        name: ints(fields.get(name, ()))
        for name in (
            "lhs_batching_dimensions",
            "rhs_batching_dimensions",
            "lhs_contracting_dimensions",
            "rhs_contracting_dimensions",
        )
    }
    return (c.emit(reducing.DotGeneralOp, _widened(c), **properties),)


def _convolution(c: Conversion) -> Values:
    labels = re.sub(r"[\[\], ]", "", c.text("dimension_numbers")).replace("x", "_")
    kernel_labels = labels.partition("_")[2].partition("->")[0]
    rank = len(kernel_labels) - 2
    low, high = _padding(c, rank)
    image, kernel = _widened(c)
    flipped = [
        kernel_labels.index(str(d))
        for d, flip in enumerate(c.integers("window_reversal"))
        if flip
    ]
    if flipped:
        kernel = c.emit(
            shaping.ReverseOp, (kernel,), _type(kernel), dimensions=ints(flipped)
        )
    result = c.emit(
        reducing.ConvolutionOp,
        (image, kernel),
        dim_labels=StringAttr(labels),
        window_strides=c.array("window_strides", [1] * rank),
        padding_low=low,
        padding_high=high,
        lhs_dilation=c.array("lhs_dilation", [1] * rank),
        rhs_dilation=c.array("rhs_dilation", [1] * rank),
        feature_group_count=c.integer("feature_group_count", 1),
        batch_group_count=c.integer("batch_group_count", 1),
    )
    return (result,)


def _padding(c: Conversion, rank: int) -> tuple[Attribute, Attribute]:
    """The `rank` pairs (low, high) of the attribute `padding`, taken apart."""
    padding = c.integers("padding", [0] * (2 * rank))
    return ints(padding[::2]), ints(padding[1::2])


# Reductions


def _body(c: Conversion, region: int) -> tuple[str, Operation]:
    """The name of the only operation, but for the return, of a region, and itself.

    It takes the region's two arguments and gives its result.
    """
    unknown = Unsupported("with a body that is not one operation on its arguments")
    block = c.op.regions[region].block
    match list(block.ops):
        case [op, end]:
            pass
        case _:
            raise unknown
    if len(block.args) != 2 or {*op.operands} != {*block.args}:
        raise unknown
    if [*end.operands] != [*op.results]:
        raise unknown
    return name_of(op), op


def _kind(c: Conversion, region: int = 0) -> str:
    """The reduction that a region's body stands for."""
    name, _ = _body(c, region)
    kind = name.removeprefix("stablehlo.")
    if kind not in reducing.KINDS:
        raise Unsupported(f"by {name}")
    return kind


def _is_identity(kind: str, value: SSAValue) -> bool:
    """Whether combining with `value` by `kind` is known to change nothing."""
    constant = value.owner
    while isinstance(constant, shaping.BroadcastInDimOp | shaping.ReshapeOp):
        constant = constant.inputs[0].owner
    if not isinstance(constant, shaping.ConstantOp):
        return False
    match constant.splat:
        case FloatAttr() as number:
            identities = {"add": 0.0, "multiply": 1.0, "maximum": -inf, "minimum": inf}
            return number.value.data == identities.get(kind)
        case IntegerAttr(type=IntegerType() as type) as number:
            identity = _integer_identity(kind, type)
            return (number.value.data - identity) % (1 << type.bitwidth) == 0
        case _:
            return False


def _integer_identity(kind: str, type: IntegerType) -> int:
    """Modulo two to the number of bits."""
    ones = (1 << type.bitwidth) - 1
    unsigned = type.bitwidth == 1 or type.signedness.data is Signedness.UNSIGNED
    lowest = 0 if unsigned else 1 << (type.bitwidth - 1)
    return {
        "add": 0,
        "multiply": 1,
        "maximum": lowest,
        "minimum": lowest ^ ones,
        "and": ones,
        "or": 0,
    }[kind]


_COMBINE: Mapping[str, type[TensorOp]] = {
    op_type.name.removeprefix("tgraph."): op_type
    for op_type in elementwise.ELEMENTWISE_OPS
    if op_type.name.removeprefix("tgraph.") in reducing.KINDS
}


def _one_tensor(c: Conversion) -> tuple[SSAValue, SSAValue]:
    """Operand and initial value of a reduction that has one of each."""
    if len(c.op.results) != 1:
        raise Unsupported(f"with {len(c.op.results)} results")
    operand, initial = c.inputs
    return operand, initial


def _reduce(c: Conversion) -> Values:
    operand, initial = _one_tensor(c)
    kind = _kind(c)
    dimensions = c.array("dimensions")
    result = c.emit(
        reducing.ReduceOp, (operand,), kind=StringAttr(kind), dimensions=dimensions
    )
    if not _is_identity(kind, initial):
        initial = _broadcast(c, initial, c.result_type)
        result = c.emit(_COMBINE[kind], (result, initial))
    return (result,)


def _reduce_window(c: Conversion) -> Values:
    operand, initial = _one_tensor(c)
    kind = _kind(c)
    if not _is_identity(kind, initial):
        raise Unsupported(f"with an initial value that is not the identity of {kind}")
    rank = _type(operand).get_num_dims()
    low, high = _padding(c, rank)
    result = c.emit(
        reducing.ReduceWindowOp,
        (operand,),
        kind=StringAttr(kind),
        window_dimensions=c.array("window_dimensions"),
        window_strides=c.array("window_strides", [1] * rank),
        padding_low=low,
        padding_high=high,
        base_dilations=c.array("base_dilations", [1] * rank),
        window_dilations=c.array("window_dilations", [1] * rank),
    )
    return (result,)


def _select_and_scatter(c: Conversion) -> Values:
    operand, source, initial = c.inputs
    name, select = _body(c, 0)
    direction = Conversion(select, (), []).text("comparison_direction")
    if select.operands[0] is not c.op.regions[0].block.args[0]:
        direction = {"GE": "LE", "LE": "GE"}.get(direction, direction)
    kind = {"GE": "maximum", "LE": "minimum"}.get(direction)
    if name != "stablehlo.compare" or kind is None:
        raise Unsupported(f"selecting by {name} {direction}".rstrip())
    if _kind(c, 1) != "add" or not _is_identity("add", initial):
        raise Unsupported("that does not add to zeros")
    rank = _type(operand).get_num_dims()
    low, high = _padding(c, rank)
    result = c.emit(
        reducing.SelectAndScatterOp,
        (operand, source),
        kind=StringAttr(kind),
        window_dimensions=c.array("window_dimensions", [1] * rank),
        window_strides=c.array("window_strides", [1] * rank),
        padding_low=low,
        padding_high=high,
    )
    return (result,)


def _batch_norm_inference(c: Conversion) -> Values:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset"""
    x, scale, offset, mean, variance = c.inputs
    channel, epsilon = _type(variance), c.attribute("epsilon")
    assert isinstance(epsilon, FloatAttr)
    element = cast(AnyFloat, channel.element_type)
    number = FloatAttr(epsilon.value.data, element)
    small = c.emit(shaping.ConstantOp, (), channel, value=number)
    sum = c.emit(elementwise.AddOp, (variance, small), channel)
    deviation = c.emit(elementwise.SqrtOp, (sum,), channel)
    index = c.attribute("feature_index")
    assert isinstance(index, IntegerAttr)
    dims = ints((index.value.data,))
    for op_type, value in (
        (elementwise.SubtractOp, mean),
        (elementwise.DivideOp, deviation),
        (elementwise.MultiplyOp, scale),
        (elementwise.AddOp, offset),
    ):
        wide = c.emit(shaping.BroadcastInDimOp, (value,), broadcast_dimensions=dims)
        x = c.emit(op_type, (x, wide))
    return (x,)


# Indexing


def _gather(c: Conversion) -> Values:
    fields = _fields(c.text("dimension_numbers"))
    properties = {
        name: ints(fields.get(name, ()))
        for name in (
            "offset_dims",
            "collapsed_slice_dims",
            "operand_batching_dims",
            "start_indices_batching_dims",
            "start_index_map",
        )
    }
    result = c.emit(
        indexing.GatherOp,
        c.inputs,
        **properties,
        index_vector_dim=_index_vector_dim(fields),
        slice_sizes=c.array("slice_sizes"),
    )
    return (result,)


def _scatter(c: Conversion) -> Values:
    if len(c.op.results) != 1:
        raise Unsupported(f"with {len(c.op.results)} results")
    block = c.op.regions[0].block
    match list(block.ops):
        case [end] if [*end.operands] == [block.args[1]]:
            kind = "replace"
        case _:
            kind = _kind(c)
    fields = _fields(c.text("scatter_dimension_numbers"))
    properties = {
        name: ints(fields.get(name, ()))
        for name in (
            "update_window_dims",
            "inserted_window_dims",
            "input_batching_dims",
            "scatter_indices_batching_dims",
            "scatter_dims_to_operand_dims",
        )
    }
    result = c.emit(
        indexing.ScatterOp,
        c.inputs,
        kind=StringAttr(kind),
        **properties,
        index_vector_dim=_index_vector_dim(fields),
    )
    return (result,)


def _index_vector_dim(fields: Mapping[str, tuple[int, ...]]) -> IntegerAttr:
    (dim,) = fields.get("index_vector_dim", (0,))
    return IntegerAttr(dim, i64)


def _custom_call(c: Conversion) -> Values:
    target = c.attribute("call_target_name")
    raise Unsupported(f"@{target.data}" if isinstance(target, StringAttr) else "")


_SAME_NAMES: Mapping[type[TensorOp], Sequence[str]] = {
    shaping.BroadcastInDimOp: ["broadcast_dimensions"],
    shaping.ReshapeOp: [],
    shaping.ReverseOp: ["dimensions"],
    shaping.TransposeOp: ["permutation"],
}

CONVERSIONS: Mapping[str, Converter] = {
    **{
        f"stablehlo.{op_type.name.removeprefix('tgraph.')}": partial(_same, op_type)
        for op_type in elementwise.ELEMENTWISE_OPS
    },
    **{
        f"stablehlo.{op_type.name.removeprefix('tgraph.')}": partial(
            _arrays, op_type, dict(zip(names, names, strict=True))
        )
        for op_type, names in _SAME_NAMES.items()
    },
    "chlo.square": _square,
    "stablehlo.batch_norm_inference": _batch_norm_inference,
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.constant": _constant,
    "stablehlo.convolution": _convolution,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.gather": _gather,
    "stablehlo.iota": _iota,
    "stablehlo.optimization_barrier": lambda c: c.inputs,
    "stablehlo.pad": _pad,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.scatter": _scatter,
    "stablehlo.select": _select,
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.slice": _slice,
}
