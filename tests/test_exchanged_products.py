"""Tests that `canonicalize` swaps the operands of a product whose result is
transposed."""

from itertools import permutations

import numpy as np
import pytest
from modules import parse, run
from xdsl.transforms.canonicalize import CanonicalizePass

import tensorplan
from tensorplan.dialects.tgraph.base import value_shape
from tensorplan.dialects.tgraph.reducing import DotGeneralOp
from tensorplan.dialects.tgraph.reference.interpreter import run_reference

TYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32}


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("sizes", [(2, 3, 4, 5), (1, 3, 1, 5), (3, 2, 17, 33)])
@pytest.mark.parametrize("permutation", list(permutations(range(3))))
def test_values_of_exchanged_products(
    permutation: tuple[int, ...], sizes: tuple[int, ...], element: str
) -> None:
    """The values of an attention times its weights, with the result transposed in any
    way."""
    heads, summed, rows, columns = sizes
    shape = (heads, columns, rows)
    left, right, made, result = (
        f"tensor<{'x'.join(map(str, dims))}x{element}>"
        for dims in (
            (summed, heads, columns),
            (heads, rows, summed),
            shape,
            [shape[d] for d in permutation],
        )
    )
    module = parse(f"""
    func.func @main(%v: {left}, %p: {right}) -> {result} {{
      %0 = tgraph.dot_general %v, %p {{
        lhs_batching_dimensions = array<i64: 1>,
        rhs_batching_dimensions = array<i64: 0>,
        lhs_contracting_dimensions = array<i64: 0>,
        rhs_contracting_dimensions = array<i64: 2>}} : ({left}, {right}) -> {made}
      %1 = tgraph.transpose %0 {{permutation = array<i64: {str(permutation)[1:-1]}>}}
        : ({made}) -> {result}
      func.return %1 : {result}
    }}""")
    generator = np.random.default_rng(0)
    v = generator.integers(-9, 9, (summed, heads, columns)).astype(TYPES[element])
    p = generator.integers(-9, 9, (heads, rows, summed)).astype(TYPES[element])
    (want,) = run_reference(module, [v, p])
    after = run(module, CanonicalizePass())
    (product,) = [op for op in after.walk() if isinstance(op, DotGeneralOp)]
    is_exchanged = value_shape(product.inputs[0]) == (heads, rows, summed)
    assert is_exchanged == (permutation != (0, 1, 2))  # the identity transposes nothing
    assert np.array_equal(run_reference(after, [v, p])[0], want)
    assert np.array_equal(tensorplan.compile(tensorplan.plan(after))(v, p)[0], want)
