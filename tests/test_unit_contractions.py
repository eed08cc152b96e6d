"""Tests that `canonicalize` makes contractions without sums elementwise products."""

from collections.abc import Sequence

import numpy as np
import pytest
from modules import parse, run
from xdsl.transforms.canonicalize import CanonicalizePass

import tensorplan
from tensorplan.dialects.tgraph.reducing import DotGeneralOp
from tensorplan.dialects.tgraph.reference.interpreter import run_reference

# The operands' shapes, batch dimensions, contracted dimensions, and the result's shape.
PRODUCTS = [
    ((), (), ((), ()), ((), ()), ()),
    ((), (3, 4), ((), ()), ((), ()), (3, 4)),
    ((3,), (4,), ((), ()), ((), ()), (3, 4)),
    ((0, 3), (4,), ((), ()), ((), ()), (0, 3, 4)),
    ((5, 1), (1, 7), ((), ()), ((1,), (0,)), (5, 7)),
    ((3, 2), (4, 2, 3), ((0, 1), (2, 1)), ((), ()), (3, 2, 4)),
    ((2, 1, 3), (3, 5, 2, 1), ((2, 0), (0, 2)), ((1,), (3,)), (3, 2, 5)),
]
TYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i8": np.int8}


def _type(shape: Sequence[int], element: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


@pytest.mark.parametrize(
    ("element", "wide"), [("f32", "f32"), ("f32", "f64"), ("i32", "i32"), ("i8", "i32")]
)
@pytest.mark.parametrize(("left", "right", "batch", "summed", "result"), PRODUCTS)
def test_equal_values(
    left: tuple[int, ...],
    right: tuple[int, ...],
    batch: tuple[tuple[int, ...], ...],
    summed: tuple[tuple[int, ...], ...],
    result: tuple[int, ...],
    element: str,
    wide: str,
) -> None:
    properties = ", ".join(
        f"{side}_{what}_dimensions = array<i64{': ' if dims[n] else ''}"
        f"{str(list(dims[n]))[1:-1]}>"
        for what, dims in (("batching", batch), ("contracting", summed))
        for n, side in enumerate(("lhs", "rhs"))
    )
    x, y, r = _type(left, element), _type(right, element), _type(result, wide)
    module = parse(f"""
    func.func @main(%x: {x}, %y: {y}) -> {r} {{
      %0 = tgraph.dot_general %x, %y {{{properties}}} : ({x}, {y}) -> {r}
      func.return %0 : {r}
    }}""")
    generator = np.random.default_rng(0)
    inputs = [
        (generator.standard_normal(shape) * 9).astype(TYPES[element])
        for shape in (left, right)
    ]
    if element == "f32" and inputs[0].size > 1:
        inputs[0].flat[:2] = np.nan, np.inf
    (want,) = run_reference(module, inputs)
    after = run(module, CanonicalizePass())
    assert not any(isinstance(op, DotGeneralOp) for op in after.walk())
    assert np.array_equal(run_reference(after, inputs)[0], want, equal_nan=True)
    planned = tensorplan.compile(tensorplan.plan(after))
    assert np.array_equal(planned(*inputs)[0], want, equal_nan=True)
