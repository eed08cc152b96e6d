"""Tests that `tgraph-sink-concatenations` preserves values, and stores no
concatenation."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from levels import inputs, planned_bytes
from modules import parse, run
from sampling import examples
from xdsl.dialects.builtin import ModuleOp
from xdsl.transforms.canonicalize import CanonicalizePass

import tensorplan
from tensorplan.analysis.functions import tensor_blocks
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.passes.convert.stablehlo_to_tgraph import ConvertStablehloToTGraph
from tensorplan.passes.tgraph.sink_concatenations import sunk

jax = pytest.importorskip("jax")
jnp = jax.numpy

LEVEL_1 = ConvertStablehloToTGraph(), CanonicalizePass()

X = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)


def rolled(x: Any) -> Any:
    """One step of the heat equation on a torus."""
    around = [jnp.roll(x, by, axis) for by in (1, -1) for axis in (0, 1)]
    return x + 0.1 * (sum(around) - 4 * x)


def rotary(x: Any) -> Any:
    """A rotary embedding with constant angles."""
    half = x.shape[-1] // 2
    turned = jnp.concatenate([-x[:, half:], x[:, :half]], -1)
    return x * 0.6 + turned * 0.8


def blurred(x: Any) -> Any:
    """A blur that repeats the values at the edges."""
    p = jnp.pad(x, 1, mode="edge")
    return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] + 4 * p[1:-1, 1:-1]


def variation(x: Any) -> Any:
    """The gradient of total variation."""
    return jax.grad(
        lambda x: (
            jnp.sum(jnp.abs(x[1:] - x[:-1])) + jnp.sum(jnp.abs(x[:, 1:] - x[:, :-1]))
        )
    )(x)


@pytest.mark.parametrize("function", [rolled, rotary, blurred, variation])
def test_concatenations_are_not_stored(function: Callable[[Any], Any]) -> None:
    planned = tensorplan.plan(tensorplan.from_jax(function, X))
    assert planned_bytes(planned.module) == 0
    (result,) = tensorplan.compile(planned)(X)
    np.testing.assert_allclose(result, function(X), rtol=1e-5, atol=1e-5)


def test_expensive_operations_are_computed_once() -> None:
    """Reading neighbors in four directions does not compute their tanh again."""
    planned = tensorplan.plan(tensorplan.from_jax(lambda x: rolled(jnp.tanh(x)), X))
    assert planned_bytes(planned.module) == X.nbytes
    text = str(planned.module)
    assert text.count("tgraph.tanh") == 1
    (result,) = tensorplan.compile(planned)(X)
    np.testing.assert_allclose(result, rolled(jnp.tanh(X)), rtol=1e-5, atol=1e-5)


def test_concatenations_in_a_loop() -> None:
    """A loop over steps stores one array besides its result."""

    def steps(x: Any) -> Any:
        return jax.lax.scan(lambda x, _: (rolled(x), None), x, length=5)[0]

    planned = tensorplan.plan(tensorplan.from_jax(steps, X))
    assert planned_bytes(planned.module) <= X.nbytes + 64
    (result,) = tensorplan.compile(planned)(X)
    np.testing.assert_allclose(result, steps(X), rtol=1e-5, atol=1e-5)


def test_unrolled_steps() -> None:
    """With each step, a value depends on more elements of earlier values, so some are
    stored."""

    def steps(x: Any) -> Any:
        for _ in range(12):
            x = rolled(x)
        return x

    planned = tensorplan.plan(tensorplan.from_jax(steps, X))
    assert planned_bytes(planned.module) <= 2 * X.nbytes
    (result,) = tensorplan.compile(planned)(X)
    np.testing.assert_allclose(result, steps(X), rtol=1e-4, atol=1e-4)


def test_long_chains_have_few_parts() -> None:
    """200 operations are not copied into each of 25 parts: the elements that several
    parts need are stored."""

    def stepped(x: Any) -> Any:
        for _ in range(100):
            x = x * 0.9 + 0.1
        return rolled(rolled(x))

    module = run(tensorplan.from_jax(stepped, X).module, *LEVEL_1)
    before = len(list(module.walk()))
    assert sunk(tensor_blocks(module), again=True)
    assert len(list(module.walk())) <= before + 400


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Pads, concatenations, slices and elementwise operations on 4x6 tensors."""
    lines: list[str] = []
    values: list[tuple[str, tuple[int, ...]]] = [("%x", (4, 6)), ("%y", (4, 6))]

    def emit(text: str, shape: tuple[int, ...]) -> None:
        name = f"%{len(lines)}"
        lines.append(f"{name} = tgraph.{text} -> {type_of(shape)}")
        values.append((name, shape))

    for _ in range(draw(st.integers(2, 12))):
        name, shape = draw(st.sampled_from(values))
        others = [n for n, s in values if s == shape]
        dim = draw(st.integers(0, 1))
        match draw(st.sampled_from(["add", "negate", "slice", "join", "pad"])):
            case "add":
                other = draw(st.sampled_from(others))
                type = type_of(shape)
                emit(f"add {name}, {other} : ({type}, {type})", shape)
            case "negate":
                emit(f"negate {name} : ({type_of(shape)})", shape)
            case "slice":
                start = draw(st.integers(0, shape[dim] - 1))
                end = draw(st.integers(start + 1, shape[dim]))
                starts, ends = [0, 0], list(shape)
                starts[dim], ends[dim] = start, end
                part = (ends[0] - starts[0], ends[1] - starts[1])
                emit(
                    f"slice {name} {{start_indices = array<i64: {ints(starts)}>, "
                    f"limit_indices = array<i64: {ints(ends)}>, "
                    f"strides = array<i64: 1, 1>}} : ({type_of(shape)})",
                    part,
                )
            case "join":
                fits = [(n, s) for n, s in values if s[1 - dim] == shape[1 - dim]]
                other, more = draw(st.sampled_from(fits))
                whole = list(shape)
                whole[dim] += more[dim]
                if whole[dim] > 12:
                    continue
                emit(
                    f"concatenate {name}, {other} {{dimension = {dim} : i64}} : "
                    f"({type_of(shape)}, {type_of(more)})",
                    (whole[0], whole[1]),
                )
            case _:
                low = [draw(st.integers(0, 2)) for _ in shape]
                high = [draw(st.integers(0, 2)) for _ in shape]
                sizes = [s + a + b for s, a, b in zip(shape, low, high, strict=True)]
                if max(sizes) > 12:
                    continue
                emit(
                    f"pad {name}, %n {{low = array<i64: {ints(low)}>, "
                    f"high = array<i64: {ints(high)}>, interior = array<i64: 0, 0>}} : "
                    f"({type_of(shape)}, tensor<f32>)",
                    (sizes[0], sizes[1]),
                )
    results = values[-3:]
    names = ", ".join(name for name, _ in results)
    types = ", ".join(type_of(shape) for _, shape in results)
    body = "\n  ".join(lines)
    return (
        f"func.func @main(%x: {type_of((4, 6))}, %y: {type_of((4, 6))}, "
        f"%n: tensor<f32>) -> ({types}) {{\n"
        f"  {body}\n  func.return {names} : {types}\n}}"
    )


def type_of(shape: tuple[int, ...]) -> str:
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def ints(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


@settings(max_examples=examples(50))
@given(programs(), st.booleans())
def test_values_of_random_programs_are_unchanged(text: str, again: bool) -> None:
    """The rewrite is applied even where the pass would not, for lack of a benefit."""
    module = parse(text)
    arrays = inputs(module)
    expected = run_reference(module, arrays)
    sunk(tensor_blocks(module), again)
    module.verify()
    moved: ModuleOp = run(module, CanonicalizePass())
    for got, want in zip(run_reference(moved, arrays), expected, strict=True):
        np.testing.assert_array_equal(got, want)
    results = tensorplan.compile(tensorplan.plan(moved))(*arrays)
    for got, want in zip(results, expected, strict=True):
        np.testing.assert_array_equal(got, want)


def test_broadcast_concatenation() -> None:
    """Encodings of rows and of columns are concatenated and repeated, as for images."""
    module = parse("""
func.func @main(%x: tensor<16x16x3x64xf32>, %e: tensor<16x32xf32>)
    -> tensor<16x16x3x64xf32> {
  %r = tgraph.broadcast_in_dim %e {broadcast_dimensions = array<i64: 0, 2>}
    : (tensor<16x32xf32>) -> tensor<16x16x32xf32>
  %c = tgraph.broadcast_in_dim %e {broadcast_dimensions = array<i64: 1, 2>}
    : (tensor<16x32xf32>) -> tensor<16x16x32xf32>
  %p = tgraph.concatenate %r, %c {dimension = 2 : i64}
    : (tensor<16x16x32xf32>, tensor<16x16x32xf32>) -> tensor<16x16x64xf32>
  %b = tgraph.broadcast_in_dim %p {broadcast_dimensions = array<i64: 0, 1, 3>}
    : (tensor<16x16x64xf32>) -> tensor<16x16x3x64xf32>
  %y = tgraph.add %x, %b : tensor<16x16x3x64xf32>
  func.return %y : tensor<16x16x3x64xf32>
}""")
    planned = tensorplan.plan(module)
    assert not planned_bytes(planned)
    values = inputs(module)
    (want,) = run_reference(module, values)
    (got,) = tensorplan.compile(planned)(*values)
    np.testing.assert_array_equal(got, want)
