"""Converts nodes of older opsets to the current form of their operations.

    modernized(n)

returns the node under its current name, with inputs in place of former attributes.
Where an operation now computes something else, its conversion checks the opset itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from ...dialects.dtypes import DType, numpy_dtype
from ..builder import shape_of, type_of
from ..operators import Known, Value
from .node import OnnxNode

_Rule: TypeAlias = Callable[[OnnxNode], OnnxNode]


def modernized(n: OnnxNode) -> OnnxNode:
    for end, rule in _RULES.get(n.op_type, ()):
        if n.opset < end:
            n = rule(n)
    return n


def _with(n: OnnxNode, *inputs: Value | None, **attributes: object) -> OnnxNode:
    """A copy of the node with these inputs and additional attributes."""
    names = [*n.names, *[""] * len(inputs)][: len(inputs)]
    given = {**n.attributes, **attributes}
    return replace(n, inputs=inputs, names=names, attributes=given)


def _as_inputs(*names: str) -> _Rule:
    """A rule that turns attributes into inputs after the first; absent ones are None.

    Floating-point attributes get the element type of the first input.
    """

    def rule(n: OnnxNode) -> OnnxNode:
        x = n.inputs[0]
        given = [n.attributes.get(name) for name in names]
        return _with(n, x, *(v if v is None else _constant(v, x) for v in given))

    return rule


def _constant(number: object, like: Value | None) -> Known:
    array = np.array(number)
    return Known(array if array.dtype.kind == "i" else array.astype(_dtype_of(like)))


def _dtype_of(value: Value | None) -> DType:
    if isinstance(value, Known):
        return value.array.dtype
    assert value is not None
    return numpy_dtype(type_of(value).element_type)


def _at_axis(n: OnnxNode) -> OnnxNode:
    """Aligns the second operand's dimensions to `axis`, instead of to the last one."""
    if "axis" not in n.attributes:
        return n
    a, b = n.value(0), n.value(1)
    behind = len(shape_of(a)) - n.integer("axis", 0) - len(shape_of(b))
    return _with(n, a, n.reshape(b, [*shape_of(b), *[1] * max(behind, 0)]))


def _per_channel(n: OnnxNode) -> OnnxNode:
    """Gives a slope of rank 1, one number per channel, the shape of the channels."""
    x, slope = n.value(0), n.value(1)
    if len(shape_of(slope)) != 1 or shape_of(slope) == (1,):
        return n
    ones = [1] * (len(shape_of(x)) - 2)
    return _with(n, x, n.reshape(slope, [*shape_of(slope), *ones]))


def _for_inference(n: OnnxNode) -> OnnxNode:
    n.expect("is_test", n.integer("is_test", 0), 1)
    return n


def _without_ratio(n: OnnxNode) -> OnnxNode:
    return _with(n, n.inputs[0])


def _resize(n: OnnxNode) -> OnnxNode:
    x, scales = n.inputs
    modes = {"bilinear": "linear"}
    mode = n.text("mode", "nearest")
    return _with(
        replace(n, op_type="Resize"),
        *(x, None, scales),
        mode=modes.get(mode, mode).encode(),
        nearest_mode=b"floor",
        coordinate_transformation_mode=b"asymmetric",
    )


def _scatter(n: OnnxNode) -> OnnxNode:
    return replace(n, op_type="ScatterElements")


_ELEMENTWISE = "Add And Div Equal Greater Less Mul Or Pow Sub Xor".split()

_RULES: Mapping[str, Sequence[tuple[int, _Rule]]] = {
    **{name: [(7, _at_axis)] for name in _ELEMENTWISE},
    "BatchNormalization": [(7, _for_inference)],
    "Clip": [(11, _as_inputs("min", "max"))],
    "Dropout": [(7, _for_inference), (12, _without_ratio)],
    "PRelu": [(7, _per_channel)],
    "Pad": [(11, _as_inputs("pads", "value"))],
    "Resize": [(11, _resize)],
    "Scatter": [(28, _scatter)],
    "Slice": [(10, _as_inputs("starts", "ends", "axes"))],
    "Split": [(13, _as_inputs("split"))],
    "TopK": [(10, _as_inputs("k"))],
    "Unsqueeze": [(13, _as_inputs("axes"))],
    "Upsample": [(9, _as_inputs("scales")), (10, _resize)],
}
"""Per operation, in order: the opset that ended a form, and the rule to replace it."""
