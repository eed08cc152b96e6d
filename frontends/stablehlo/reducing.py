"""Converts reductions, reductions of windows, sorting, and random bits.

If the body of a reduction is one operation, the reduction has a kind (add, maximum,
...). The initial value is then combined with the result by that operation, unless it is
its identity.
"""

from collections.abc import Mapping
from math import inf

from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    i1,
    i64,
)
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.diagnostics import name_of
from ...dialects.tgraph import bodies, elementwise, random, reducing, shaping
from ...dialects.tgraph.base import TensorOp, shape_of, with_element, with_shape
from ...dialects.tgraph.structure import YieldOp
from ..builder import TensorBuilder
from ..formulas import compare, total_order
from ..unsupported import Unsupported
from .conversion import Conversion, Converter, Values, broadcast, padding, type_of
from .windows import reduced_by_body


def _body(c: Conversion, region: int) -> tuple[str, Operation]:
    """The only operation of a region, besides its terminator, and the operation's name.

    It must use the region's two arguments and define its result.
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


def kind_of(c: Conversion, region: int = 0) -> str:
    """The kind of reduction by a region. Raises `Unsupported` if it has none."""
    name, _ = _body(c, region)
    kind = name.removeprefix("stablehlo.")
    if kind not in reducing.KINDS:
        raise Unsupported(f"with {name} in its body")
    return kind


def _is_identity(kind: str, value: SSAValue) -> bool:
    """Whether `value` is known to be the identity of `kind`."""
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
    """The identity of `kind`, modulo two to the power of the bit width."""
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


def _combined(c: Conversion, kind: str, result: SSAValue, initial: SSAValue) -> Values:
    """Combines the result with the initial value, unless that is the identity."""
    if _is_identity(kind, initial):
        return (result,)
    initial = broadcast(c, initial, c.result_type)
    return (c.emit(_COMBINE[kind], (result, initial)),)


def _reduce(c: Conversion) -> Values:
    """Reduces by kind; by body if there is none, or several tensors."""
    dimensions = c.array("dimensions")
    kind = known_kind(c)
    if kind is None:
        types = [result.type for result in c.op.results]
        return c.emit_all(
            bodies.ReduceByOp, c.inputs, types, [c.region(0)], dimensions=dimensions
        )
    operand, initial = c.inputs
    result = c.emit(
        reducing.ReduceOp, (operand,), kind=StringAttr(kind), dimensions=dimensions
    )
    return _combined(c, kind, result, initial)


def known_kind(c: Conversion) -> str | None:
    """The kind of a reduction of one tensor; None if it has none."""
    if len(c.op.results) != 1:
        return None
    try:
        return kind_of(c)
    except Unsupported:
        return None


def _reduce_window(c: Conversion) -> Values:
    """As in XLA, padding has no effect, even if the initial value would have one."""
    kind = known_kind(c)
    if kind is None:
        return reduced_by_body(c)
    operand, initial = c.inputs
    rank = type_of(operand).get_num_dims()
    low, high = padding(c, rank)
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
    return _combined(c, kind, result, initial)


def _select_and_scatter(c: Conversion) -> Values:
    operand, source, initial = c.inputs
    name, select = _body(c, 0)
    direction = Conversion(select, (), [], c.block).text("comparison_direction")
    if select.operands[0] is not c.op.regions[0].block.args[0]:
        direction = {"GE": "LE", "LE": "GE"}.get(direction, direction)
    kind = {"GE": "maximum", "LE": "minimum"}.get(direction)
    if name != "stablehlo.compare" or kind is None:
        raise Unsupported(f"with the selection {name} {direction}".rstrip())
    combine = kind_of(c, 1)
    is_or = combine == "or" and type_of(operand).element_type == i1
    if combine != "add" and not is_or:
        raise Unsupported("with a scatter body that does not add")
    rank = type_of(operand).get_num_dims()
    low, high = padding(c, rank)
    result = c.emit(
        reducing.SelectAndScatterOp,
        (operand, source),
        kind=StringAttr(kind),
        window_dimensions=c.array("window_dimensions", [1] * rank),
        window_strides=c.array("window_strides", [1] * rank),
        padding_low=low,
        padding_high=high,
    )
    return _combined(c, "add", result, initial)


def _sort(c: Conversion) -> Values:
    dimension = c.integer("dimension", -1)
    assert isinstance(dimension, IntegerAttr)
    number = dimension.value.data % max(1, type_of(c.inputs[0]).get_num_dims())
    types = [result.type for result in c.op.results]
    if not type_of(c.inputs[0]).get_num_dims():
        return c.inputs
    return c.emit_all(
        bodies.SortOp,
        c.inputs,
        types,
        [c.region(0)],
        dimension=IntegerAttr(number, i64),
    )


def _top_k(c: Conversion) -> Values:
    """The k largest elements, in descending order, and their indices."""
    (x,) = c.inputs
    type = type_of(x)
    last = type.get_num_dims() - 1
    indices_type = with_element(type, type_of(c.op.results[1]).element_type)
    dimension = IntegerAttr(last, i64)
    indices = c.emit(shaping.IotaOp, (), indices_type, dimension=dimension)
    scalars = [with_shape(t, []) for t in (type, type, indices_type, indices_type)]
    block = Block(arg_types=scalars)
    ops: list[Operation] = []
    b = TensorBuilder(ops, c.op.location)
    first, second = (total_order(b, x) for x in block.args[:2])
    before = compare(b, first, "GT", second)
    block.add_ops([*ops, YieldOp(before)])
    shape = shape_of(type_of(c.op.results[0]))
    return c.emit_all(
        bodies.SortOp,
        (x, indices),
        [with_shape(type, shape), with_shape(indices_type, shape)],
        [Region(block)],
        dimension=dimension,
        count=IntegerAttr(shape[last], i64),
    )


_ALGORITHMS = {"DEFAULT": "philox", "PHILOX": "philox", "THREE_FRY": "threefry"}


def _rng_bit_generator(c: Conversion) -> Values:
    text = c.text("rng_algorithm")
    if text not in _ALGORITHMS:
        raise Unsupported(f"with algorithm {text}")
    types = [result.type for result in c.op.results]
    algorithm = StringAttr(_ALGORITHMS[text])
    return c.emit_all(random.RngBitGeneratorOp, c.inputs, types, algorithm=algorithm)


CONVERSIONS: Mapping[str, Converter] = {
    "chlo.top_k": _top_k,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.rng_bit_generator": _rng_bit_generator,
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.sort": _sort,
}
