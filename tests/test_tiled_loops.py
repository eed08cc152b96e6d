"""Tests loops over tiles: they compute the same values, whichever operation is the
seed."""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from levels import READY, REST, inputs, planned_bytes
from modules import parse, run
from programs import Program, programs
from sampling import examples
from tiling import loop_at, loops_of, with_loop
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i8, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.transforms.canonicalize import CanonicalizePass

import tensorplan
from tensorplan.analysis.functions import tensor_functions
from tensorplan.analysis.storage import Storage
from tensorplan.dialects.tgraph.base import TILES, tensor_type_of
from tensorplan.dialects.tgraph.elementwise import AddOp
from tensorplan.dialects.tgraph.reducing import DotGeneralOp
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.structure import FusionOp, WhileOp
from tensorplan.passes.convert.stablehlo_to_tgraph import ConvertStablehloToTGraph
from tensorplan.passes.tgraph.schedule import TGraphSchedule
from tensorplan.passes.tgraph.shared.fitting import PlannedBytes
from tensorplan.passes.tgraph.tile import TGraphTile
from tensorplan.passes.tgraph.tiling.dimensions import is_repeated
from tensorplan.passes.tgraph.tiling.loop_search import (
    IN_CACHE,
    Estimate,
    write_loops,
)
from tensorplan.passes.tgraph.tiling.loops import Surroundings, tiled_loop
from tensorplan.passes.tgraph.tiling.widening_chains import widening_chain
from tensorplan.runtime.executor import Executable

SEEDS = 3
"""The number of loops that the test writes for each program."""


def assert_close(program: Program, level_1: ModuleOp, planned: ModuleOp) -> None:
    """Asserts that the results of `program` are unchanged up to rounding."""
    module = program.module
    want = run_reference(module, inputs(module))
    executable = Executable(planned, sanitize=True, native=False)
    for got in (
        run_reference(level_1, inputs(module)),
        executable(*inputs(module)),
    ):
        for a, b in zip(got, want, strict=True):
            atol = 1e-4 * max(np.abs(b).max(initial=0), 1)
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=atol)


@settings(max_examples=examples(300))
@given(programs(max_ops=30, is_continuous=True), st.data())
def test_values_of_random_programs_are_unchanged(
    program: Program, data: st.DataObject
) -> None:
    ready = run(program.module, *READY[:2])
    ((_, block),) = tensor_functions(ready)
    if found := loops_of(block):
        looped = with_loop(ready, *data.draw(st.sampled_from(found)))
        assert_close(program, looped, run(looped, *READY[2:], *REST))


@settings(max_examples=examples(150))
@given(programs(max_ops=40, is_continuous=True))
def test_peak_of_random_programs_never_rises(program: Program) -> None:
    ready = run(program.module, *READY, TGraphSchedule())
    eager = TGraphTile(max_slowdown=100.0, reuse_outputs=False, tile_bytes=1)
    tiled = run(ready, eager)
    planned = run(tiled, *REST)
    assert planned_bytes(planned) <= planned_bytes(run(ready, *REST))
    assert_close(program, tiled, planned)


# Programs from JAX.

jax = pytest.importorskip("jax")
jnp = jax.numpy


def normal(*shape: int, dtype: str = "float32") -> Any:
    """Random numbers from a fixed seed."""
    rng = np.random.default_rng(sum(shape))
    return (rng.standard_normal(shape) / 2).astype(jnp.dtype(dtype))


def embedding(table: Any, ids: Any) -> Any:
    return jax.value_and_grad(lambda w: (jnp.tanh(w[ids]) ** 2).sum())(table)


def cross_entropy(x: Any, w: Any, labels: Any) -> Any:
    def loss(x: Any, w: Any) -> Any:
        logits = jax.nn.log_softmax(x @ w)
        return -jnp.take_along_axis(logits, labels[:, None], 1).mean()

    return jax.value_and_grad(loss, (0, 1))(x, w)


def causal_attention(q: Any, k: Any, v: Any) -> Any:
    def attend(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("hqd,hkd->hqk", q, k)
        place = jnp.arange(scores.shape[-1])
        scores = jnp.where(place[:, None] >= place, scores, -1e9)
        return (jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores), v) ** 2).sum()

    return jax.grad(attend, (0, 1, 2))(q, k, v)


def convolutions(x: Any, w: Any, u: Any) -> Any:
    def net(w: Any, u: Any) -> Any:
        h = jax.lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        h = jax.nn.relu(h).max((1, 2)) @ u
        return (h * h).mean()

    return jax.value_and_grad(net, (0, 1))(w, u)


def depthwise(x: Any, w: Any) -> Any:
    """The gradient of two depthwise convolutions, which has a group for each batch."""

    def net(w: Any) -> Any:
        h = x
        for window in w:
            names = ("NHWC", "HWIO", "NHWC")
            h = jax.lax.conv_general_dilated(
                *(h, window, (1, 1), "SAME"),
                dimension_numbers=names,
                feature_group_count=x.shape[-1],
            )
            h = jnp.tanh(h)
        return (h * h).sum()

    return jax.grad(net)(w)


def pooling(x: Any, w: Any) -> Any:
    def net(w: Any) -> Any:
        h = jnp.tanh(x * w)
        zero = -jnp.inf
        h = jax.lax.reduce_window(h, zero, jax.lax.max, (1, 2, 2), (1, 2, 2), "VALID")
        return (h * h).sum()

    return jax.value_and_grad(net)(w)


def layer_norms(x: Any, scale: Any) -> Any:
    def net(scale: Any) -> Any:
        h = x
        for row in scale:
            h = (h - h.mean(-1, keepdims=True)) / (h.std(-1, keepdims=True) + 1e-3)
            h = jax.nn.gelu(h * row)
        return (h**2).mean()

    return jax.value_and_grad(net)(scale)


def reductions(x: Any) -> Any:
    y = jnp.exp(x)
    bits = x > 0
    return (
        (y.max(0), y.min(0), y.prod(0), bits.any(0), bits.all(0)),
        (x * 8).astype("int32").sum(0),
        jnp.bitwise_or.reduce((x * 8).astype("int32"), 0),
    )


def half(x: Any, w: Any) -> Any:
    y = jnp.tanh(x @ w)
    return y.sum(0), y.T @ x


def counted(x: Any) -> Any:
    rows = jax.lax.broadcasted_iota("float32", x.shape, 0)
    whole = jax.lax.broadcasted_iota("bfloat16", x.shape, 0)
    return (x * rows).sum(), (x + whole.astype(x.dtype)).sum(1)


def both_ways(x: Any, w: Any) -> Any:
    """A product of rows of a value with the whole value."""
    a = jnp.exp(x)
    return (jnp.tanh(a @ w) @ w @ a).sum(1)


def nearest(x: Any, codes: Any) -> Any:
    """Operations with several results, some of them unused."""
    distances = ((x[:, None] - codes) ** 2).sum(-1)
    closest, places = jax.lax.top_k(-distances, 2)
    code = codes[distances.argmin(1)]
    return ((x - code) ** 2).sum(), closest.sum(0), places


def quantized(x: Any, w: Any) -> Any:
    """Products of 8-bit integers between an unpadded convolution, which cannot be
    tiled, and a product that needs all rows."""

    def product(x: Any, w: Any) -> Any:
        return jax.lax.dot(x, w, preferred_element_type="int32")

    def stored(x: Any) -> Any:
        return jnp.clip(jnp.round(x.astype("float32") * 0.5), -100, 100).astype("int8")

    x = jax.lax.conv_general_dilated(
        x[None],
        jnp.stack([w, w]),
        [1],
        "VALID",
        None,
        None,
        ("NHC", "HIO", "NHC"),
        preferred_element_type="int32",
    )[0]
    y = product(stored(x), w)
    z = stored(product(stored(y), w)).astype("float32") * 0.1
    return z @ z.T, y.sum(0)


CASES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "embedding": (embedding, [normal(5, 4), np.array([1, 3, 3, 0, 2, 4], np.int32)]),
    "cross_entropy": (
        cross_entropy,
        [normal(8, 3), normal(3, 6), np.array([5, 0, 2, 2, 1, 4, 3, 0], np.int32)],
    ),
    "causal_attention": (causal_attention, [normal(2, 8, 3) for _ in range(3)]),
    "convolutions": (
        convolutions,
        [normal(4, 6, 6, 2), normal(3, 3, 2, 4), normal(4, 2)],
    ),
    "depthwise": (depthwise, [normal(8, 4, 4, 3), normal(2, 3, 3, 1, 3)]),
    "pooling": (pooling, [normal(4, 6, 6), normal(1, 6, 6)]),
    "layer_norms": (layer_norms, [normal(4, 6), normal(1, 6)]),
    "reductions": (reductions, [normal(8, 3)]),
    "half": (
        half,
        [normal(8, 4, dtype="bfloat16"), normal(4, 6, dtype="bfloat16")],
    ),
    "counted": (counted, [normal(12, 3)]),
    "both_ways": (both_ways, [normal(4, 4), normal(4, 4)]),
    "nearest": (nearest, [normal(8, 3), normal(4, 3)]),
    "quantized": (
        quantized,
        [(normal(*sizes) * 8).astype("int8") for sizes in ((7, 4), (4, 4))],
    ),
}


def different(block: Block) -> list[tuple[int, int, int]]:
    """Up to `SEEDS` loops of a block that contain different operations, with those of
    the most sums first."""
    ops = list(block.ops)
    found: dict[tuple[int, frozenset[Operation]], tuple[int, tuple[int, int, int]]] = {}
    for number, dim, tiles in loops_of(block):
        loop = loop_at(block, ops[number], dim, tiles)
        assert loop is not None
        key = tiles, frozenset(loop.members)
        found.setdefault(key, (len(loop.parts), (number, dim, tiles)))
    by_sums = sorted(found.values(), key=lambda entry: -entry[0])
    assert by_sums[0][0], "no loop has a sum"
    return [seed for _, seed in by_sums[:SEEDS]]


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_changing_the_tile_count_gives_the_searched_loop(name: str) -> None:
    function, arguments = CASES[name]
    module = tensorplan.from_jax(function, *arguments).module
    ready = run(module, ConvertStablehloToTGraph(), *READY[:1], CanonicalizePass())
    ((_, block),) = tensor_functions(ready)
    ops = list(block.ops)
    asked = [(ops[number], *rest) for number, *rest in loops_of(block)]
    loops = {key: loop_at(block, *key) for key in asked}
    known = 0
    for (seed, dim, tiles), loop in loops.items():
        assert loop is not None
        for other in {n for op, d, n in asked if (op, d) == (seed, dim)}:
            if (derived := loop.in_tiles(other)) is not None:
                found = loops[seed, dim, other]
                assert found is not None
                found = replace(found, sizes=derived.sizes)
                assert vars(derived) == vars(found)
                known += other != tiles
    assert known


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_values_of_jax_programs_are_unchanged(name: str) -> None:
    function, arguments = CASES[name]
    want = jax.tree.leaves(jax.jit(function)(*arguments))
    tolerance = 2e-2 if name == "half" else 1e-4
    module = tensorplan.from_jax(function, *arguments).module
    ready = run(module, ConvertStablehloToTGraph(), *READY[:1], CanonicalizePass())
    ((_, block),) = tensor_functions(ready)
    for seed in different(block):
        looped = with_loop(ready, *seed)
        given = [np.asarray(argument) for argument in arguments]
        for got in (
            run_reference(looped, given),
            tensorplan.compile(tensorplan.plan(looped))(*given),
        ):
            for a, b in zip(got, want, strict=True):
                a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
                atol = tolerance * max(np.abs(b).max(initial=0), 1)
                np.testing.assert_allclose(a, b, rtol=tolerance, atol=atol)


def test_loop_boundaries_are_the_narrowest_values() -> None:
    function, arguments = CASES["quantized"]
    module = tensorplan.from_jax(function, *arguments).module
    ready = run(module, ConvertStablehloToTGraph(), CanonicalizePass())
    ((_, block),) = tensor_functions(ready)
    products = [op for op in block.ops if isinstance(op, DotGeneralOp)]
    loop = loop_at(block, products[0], 0, 3)
    assert loop is not None
    assert products[1] in loop.members
    passed = [*loop.sliced, *loop.outputs]
    assert [tensor_type_of(value.type).element_type for value in passed] == [i8, i8]


def test_correction_of_a_sum_stays_outside_of_its_loop() -> None:
    """The chain reads two products, as with zero points of weights."""
    module = tensorplan.read("""
func.func @main(%x: tensor<12x8xi8>, %w: tensor<8x6xi8>, %ones: tensor<8xi8>,
                %v: tensor<6x8xi8>) -> tensor<8xi32> {
  %sums = tgraph.dot_general %x, %w {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>}
    : (tensor<12x8xi8>, tensor<8x6xi8>) -> tensor<12x6xi32>
  %alone = tgraph.dot_general %x, %ones {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>}
    : (tensor<12x8xi8>, tensor<8xi8>) -> tensor<12xi32>
  %three = tgraph.constant<3 : i32> : tensor<12xi32>
  %taken = tgraph.multiply %alone, %three : tensor<12xi32>
  %0 = tgraph.broadcast_in_dim %taken {broadcast_dimensions = array<i64: 0>}
    : (tensor<12xi32>) -> tensor<12x6xi32>
  %1 = tgraph.subtract %sums, %0 : tensor<12x6xi32>
  %2 = tgraph.convert %1 : (tensor<12x6xi32>) -> tensor<12x6xi8>
  %3 = tgraph.dot_general %2, %v {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>}
    : (tensor<12x6xi8>, tensor<6x8xi8>) -> tensor<12x8xi32>
  %4 = tgraph.reduce %3 {kind = "add", dimensions = array<i64: 0>}
    : (tensor<12x8xi32>) -> tensor<8xi32>
  func.return %4 : tensor<8xi32>
}""")
    ((_, block),) = tensor_functions(module)
    ops = list(block.ops)
    sums, alone = ops[:2]
    members = [op for op in ops[2:-1] if not is_repeated(op)]
    chain = widening_chain(members, [sums.results[0], alone.results[0]], [])
    assert [op.name for op in chain] == [
        *("tgraph.multiply", "tgraph.subtract", "tgraph.convert")
    ]


# Profitability.


def chain(x: Any, w: Any) -> Any:
    for _ in range(6):
        x = jnp.tanh(x @ w)
    return x.sum()


def embedding_bag(table: Any, ids: Any, weights: Any) -> Any:
    """Sums of a few rows of a large table, and their gradient."""

    def loss(table: Any, weights: Any) -> Any:
        return (jnp.einsum("bkd,bk->bd", table[ids], weights) ** 2).sum()

    return jax.grad(loss, (0, 1))(table, weights)


def upsampled(x: Any, w: Any) -> Any:
    """An upsampling that repeats each pixel four times, between convolutions."""
    x = jnp.repeat(jnp.repeat(x, 2, 1), 2, 2)
    y = jax.lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return (y * y).sum()


def accelerations(x: Any) -> Any:
    """Of bodies that attract each other: sums over pairwise differences."""
    d = x[None] - x[:, None]
    return (d * (((d**2).sum(-1) + 0.01) ** -1.5)[..., None]).sum(1)


def bodies(x: Any, v: Any) -> Any:
    """Positions and velocities of bodies after three steps."""

    def step(_: Any, state: Any) -> Any:
        x, v = state
        v = v + 0.01 * accelerations(x)
        return x + 0.01 * v, v

    return jax.lax.fori_loop(0, 3, step, (x, v))


def rows(x: Any, scale: Any) -> Any:
    value, gradient = layer_norms(x, scale)
    return value, scale - 0.1 * gradient


def shape(*sizes: int, dtype: str = "float32") -> Any:
    return jax.ShapeDtypeStruct(sizes, dtype)


@pytest.mark.parametrize(
    ("function", "arguments", "most"),
    [
        (chain, [shape(65536, 256), shape(256, 256)], 1 << 20),
        (
            cross_entropy,
            [shape(2048, 256), shape(256, 8192), shape(2048, dtype="int32")],
            12_600_000,
        ),
        (causal_attention, [shape(1, 2048, 64)] * 3, 1_500_000),
        (causal_attention, [shape(8, 4096, 64)] * 3, 8 * 4096 * 4096),
        (accelerations, [shape(256, 3)], 5_000),
        (bodies, [shape(256, 3)] * 2, 3_160),
        (rows, [shape(4096, 512), shape(6, 512)], 2_000_000),
        (nearest, [shape(1024, 32), shape(2048, 32)], 300_000),
        (depthwise, [shape(8, 64, 64, 16), shape(2, 3, 3, 1, 16)], 1 << 20),
        (upsampled, [shape(16, 32, 32, 16), shape(3, 3, 16, 3)], 400_000),
        (
            embedding_bag,
            [shape(10000, 64), shape(256, 32, dtype="int32"), shape(256, 32)],
            200_000,
        ),
    ],
)
def test_arena_has_the_size_of_tiles(
    function: Callable[..., Any], arguments: list[Any], most: int
) -> None:
    planned = tensorplan.plan(tensorplan.from_jax(function, *arguments))
    assert sum(pool["bytes"] for pool in tensorplan.report(planned)["pools"]) <= most


def moments(m: Any, v: Any, w: Any, a: Any, b: Any, x: Any) -> Any:
    """A step of Adam on one weight, and a chain of larger values."""
    gradient = a.T @ b
    m = 0.9 * m + 0.1 * gradient
    v = 0.99 * v + 0.01 * gradient * gradient
    return m, v, w - 0.001 * m / (jnp.sqrt(v) + 1e-8), chain(x, jnp.eye(256))


def test_loops_do_not_carry_values_assigned_to_variables() -> None:
    # A carried value could not lie in the variable, whose old contents the tiles read.
    # So only the chain becomes a loop, and the gradient is stored as a whole.
    weights = [shape(1024, 2048)] * 3
    others = [shape(64, 1024), shape(64, 2048), shape(16384, 256)]
    model = tensorplan.from_jax(moments, *weights, *others, donate_argnums=(0, 1, 2))
    (pool,) = tensorplan.report(tensorplan.plan(model))["pools"]
    assert pool["bytes"] <= 4 * 1024 * 2048 + 1024


@pytest.mark.thorough
def test_budget_makes_tiles_smaller() -> None:
    model = tensorplan.from_jax(chain, shape(8192, 256), shape(256, 256))
    planned = tensorplan.plan(model, budget="160KiB")
    (pool,) = tensorplan.report(planned)["pools"]
    assert pool["bytes"] <= 160 * 1024


@pytest.mark.parametrize(("budget", "tiles"), [("13MiB", 2), ("7MiB", 4)])
def test_budget_is_met_with_the_fewest_tiles(budget: str, tiles: int) -> None:
    module = tensorplan.from_jax(chain, shape(8192, 256), shape(256, 256)).module
    tile = TGraphTile(1, max_slowdown=2.0, budget=budget)
    tiled = run(module, ConvertStablehloToTGraph(), *READY, tile)
    loops = [op for op in tiled.walk() if isinstance(op, WhileOp)]
    assert [loop.attributes[TILES] for loop in loops] == [IntegerAttr(tiles, i32)]


def test_loops_above_the_budget_are_followed_by_smaller_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first loops turn out to need more bytes than the program without them."""
    tried: list[int] = []
    of_all = PlannedBytes.of_all

    def measured(
        self: PlannedBytes, func: FuncOp, storage: Storage | None = None
    ) -> int:
        bytes = of_all(self, func, storage)
        if not any(isinstance(op, WhileOp) for op in func.walk()):
            return bytes
        tried.append(bytes)
        return bytes if len(tried) > 1 else 2 * bytes

    monkeypatch.setattr(PlannedBytes, "of_all", measured)
    module = tensorplan.from_jax(chain, shape(8192, 256), shape(256, 256)).module
    tile = TGraphTile(1, max_slowdown=2.0, budget="13MiB")
    tiled = run(module, ConvertStablehloToTGraph(), *READY, tile)
    assert any(isinstance(op, WhileOp) for op in tiled.walk())
    assert tried[-1] < tried[0]


def gravity(x: Any, mass: Any) -> Any:
    apart = x[None] - x[:, None]
    square = (apart**2).sum(-1) + 0.01
    return (apart * (mass / (square * jnp.sqrt(square)))[..., None]).sum(1)


def attraction(x: Any, mass: Any) -> Any:
    apart = x[None] - x[:, None]
    square = (apart**2).sum(-1) + 0.01
    return (apart * (mass * square**-1.5)[..., None]).sum(1)


def mixture_of_experts(x: Any, gate: Any, up: Any, down: Any) -> Any:
    most, chosen = jax.lax.top_k(jax.nn.softmax(x @ gate), 2)
    shares = (jax.nn.one_hot(chosen, 8) * most[..., None]).sum(1)
    hidden = jax.nn.silu(jnp.einsum("td,edf->tef", x, up))
    return (jnp.einsum("tef,efd->ted", hidden, down) * shares[..., None]).sum(1)


def test_smaller_tiles_at_no_cost() -> None:
    """A matrix of 4 MiB is tiled into less than a fourth of `IN_CACHE`."""
    x, mass = normal(1024, 3), np.abs(normal(1024))
    planned = tensorplan.plan(tensorplan.from_jax(gravity, x, mass))
    assert planned_bytes(planned.module) <= IN_CACHE // 4
    (got,) = tensorplan.compile(planned)(x, mass)
    np.testing.assert_allclose(got, gravity(x, mass), rtol=2e-4, atol=2e-3)


def test_small_second_weight_does_not_enlarge_tiles() -> None:
    """Weights as large as the cache stay in it. The small weights of a gate beside them
    do not enlarge the tiles."""
    sizes = ((1024, 64), (64, 8), (8, 64, 256), (8, 256, 64))
    model = tensorplan.from_jax(mixture_of_experts, *(normal(*size) for size in sizes))
    assert planned_bytes(tensorplan.plan(model).module) <= IN_CACHE * 3 // 4


def filtered(up: Any, down: Any, places: Any, states: Any, source: Any, to: Any) -> Any:
    """The sum of squares of messages weighted by functions of distances."""
    apart = places[source] - places[to]
    distances = jnp.sqrt((apart * apart).sum(-1) + 1e-3)
    near = jnp.exp(-((distances[:, None] - jnp.linspace(0, 3, 32)) ** 2))
    messages = states[source] * (jax.nn.softplus(near @ up) @ down)
    return (jax.ops.segment_sum(messages, to, len(states)) ** 2).sum()


def test_loops_that_save_little_are_not_worth_their_time() -> None:
    """Loops would save an eighth of the bytes, but take a tenth of the time more."""
    arrays = normal(32, 64), normal(64, 64), normal(256, 3), normal(256, 64)
    ends = np.random.default_rng(0).integers(0, 256, (2, 4096), np.int32)
    gradient = jax.grad(filtered, (0, 1))
    planned = tensorplan.plan(tensorplan.from_jax(gradient, *arrays, *ends))
    assert "tgraph.tiles" not in str(planned.module)


def test_tiles_do_not_split_vectors() -> None:
    """The number of rows is prime, and tiles of columns would be narrower than a
    vector."""

    def gated(x: Any, w: Any) -> Any:
        return (jnp.tanh(x @ w) * jax.nn.softmax(x @ w, 0)).sum()

    planned = tensorplan.plan(
        tensorplan.from_jax(gated, normal(4099, 32), normal(32, 32))
    )
    assert "tgraph.tiles" not in str(planned.module)


def discrepancy(x: Any, y: Any) -> Any:
    def similarity(a: Any, b: Any) -> Any:
        return jnp.exp(-((a[:, None] - b[None]) ** 2).sum(-1)).mean()

    return similarity(x, x) + similarity(y, y) - 2 * similarity(x, y)


def test_each_of_several_equal_peaks_gets_a_loop() -> None:
    """Each of three matrices of 4 MiB makes a peak, so one loop alone does not lower
    it."""
    x, y = normal(1024, 8), normal(1024, 8) + np.float32(0.25)
    planned = tensorplan.plan(tensorplan.from_jax(discrepancy, x, y))
    assert str(planned.module).count("tgraph.tiles") == 3
    assert planned_bytes(planned.module) <= IN_CACHE // 4
    (got,) = tensorplan.compile(planned)(x, y)
    np.testing.assert_allclose(got, discrepancy(x, y), rtol=1e-4, atol=1e-6)


def test_small_values_get_loops_at_no_cost() -> None:
    """Matrices of 256 and of 100 KiB get loops. The layers of a network do not, since
    each tile would read all weights."""
    x, y = normal(256, 8), normal(256, 8)
    planned = tensorplan.plan(tensorplan.from_jax(discrepancy, x, y))
    assert planned_bytes(planned.module) <= IN_CACHE // 16
    model = tensorplan.from_jax(attraction, normal(160, 3), np.abs(normal(160)))
    assert planned_bytes(tensorplan.plan(model).module) <= IN_CACHE // 16

    def network(x: Any, w: Any, u: Any) -> Any:
        return jnp.tanh(x @ w) @ u

    weights = normal(784, 512), normal(512, 512)
    planned = tensorplan.plan(tensorplan.from_jax(network, normal(128, 784), *weights))
    assert "tgraph.tiles" not in str(planned.module)


def test_tiles_that_write_results_are_preferred_to_sums() -> None:
    """Tiles that add to sums over columns would take 2 % fewer bytes than tiles that
    write sums over rows, but a fourth more time."""

    def moved(x: Any, mass: Any) -> Any:
        return jax.lax.fori_loop(0, 4, lambda _, x: x + attraction(x, mass) / 64, x)

    model = tensorplan.from_jax(moved, normal(150, 3), np.abs(normal(150)))
    text = str(tensorplan.plan(model).module)
    assert "tgraph.tiles" in text
    assert "tgraph.dynamic_update_slice" in text


def test_max_slowdown_limits_tiles() -> None:
    model = tensorplan.from_jax(chain, shape(8192, 256), shape(256, 256))
    ready = run(model.module, ConvertStablehloToTGraph(), *READY, TGraphSchedule())
    assert run(ready, TGraphTile(max_slowdown=0)).is_structurally_equivalent(ready)
    assert "tgraph.while" in str(run(ready, TGraphTile()))
    assert "tgraph.while" not in str(run(ready, TGraphTile(tile_bytes=0)))


def test_tiles_replace_the_rows_that_they_read() -> None:
    """The tiles replace the velocities. The positions, which each tile reads whole,
    change after the loop. So a step copies nothing."""
    x, v = normal(256, 3), normal(256, 3) + np.float32(0.25)
    planned = tensorplan.plan(tensorplan.from_jax(bodies, x, v))
    steps = [op for op in planned.module.walk() if op.name == "scf.while"]
    assert len(steps) == 2  # one inside of the other
    assert not any(op.name == "memref.copy" for op in steps[0].walk())
    for got, want in zip(tensorplan.compile(planned)(x, v), bodies(x, v), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_estimate_knows_what_tiles_replace() -> None:
    """%b lies where %a is, which only the loop reads, by rows. It needs its own memory
    if something else reads %a."""
    text = """func.func @main(%x: tensor<64x16xf32>)
        -> (tensor<64x16xf32>, tensor<16xf32>) {{
      %a = tgraph.sort %x {{dimension = 0 : i64}} : tensor<64x16xf32> {{
      ^bb0(%0: tensor<f32>, %1: tensor<f32>):
        %2 = tgraph.compare %0, %1 {{direction = "LT"}}
          : (tensor<f32>, tensor<f32>) -> tensor<i1>
        tgraph.yield %2 : tensor<i1>
      }}
      %b = tgraph.exponential %a : tensor<64x16xf32>
      %c = tgraph.sort %b {{dimension = 0 : i64}} : tensor<64x16xf32> {{
      ^bb0(%0: tensor<f32>, %1: tensor<f32>):
        %2 = tgraph.compare %0, %1 {{direction = "LT"}}
          : (tensor<f32>, tensor<f32>) -> tensor<i1>
        tgraph.yield %2 : tensor<i1>
      }}
      %d = tgraph.slice %{} {{start_indices = array<i64: 3, 0>,
        limit_indices = array<i64: 4, 16>, strides = array<i64: 1, 1>}}
        : (tensor<64x16xf32>) -> tensor<1x16xf32>
      %e = tgraph.reshape %d : (tensor<1x16xf32>) -> tensor<16xf32>
      func.return %c, %e : tensor<64x16xf32>, tensor<16xf32>
    }}"""
    for read, buffers in (("c", 1), ("a", 2)):
        ((_, block),) = tensor_functions(parse(text.format(read)))
        a, b, *_ = block.ops
        loop = loop_at(block, b, 0, 4)
        assert loop is not None
        sizes: dict[SSAValue, int] = {a.results[0]: 4096, b.results[0]: 4096}
        during = Estimate(block, sizes, {}, 1000, {}, {}).with_loop(loop)
        assert during.outside[during.at] == buffers * 4096


def test_time_limit_prevents_loops() -> None:
    model = tensorplan.from_jax(chain, shape(8192, 256), shape(256, 256))
    ready = run(model.module, ConvertStablehloToTGraph(), *READY, TGraphSchedule())
    ((func, _),) = tensor_functions(ready)
    loops, none = func.clone(), func.clone()
    assert write_loops(loops, 64, IN_CACHE, inf).loops
    assert "tgraph.while" in str(loops)
    assert not write_loops(none, 64, IN_CACHE, 0).loops
    assert "tgraph.while" not in str(none)


def quantized_dynamically(x: Any, w: Any) -> Any:
    y = jnp.tanh(x @ w)
    scale = jnp.abs(y).max() / 127
    return jnp.round(y / scale).astype(jnp.int8)


def normalized_as_a_whole(x: Any, w: Any) -> Any:
    y = jnp.tanh(x @ w)
    rest = y - y.mean()
    return (rest / jnp.sqrt((rest * rest).mean())).astype(jnp.bfloat16)


def quantized_images(x: Any, w: Any, u: Any) -> Any:
    """A convolution of images that are padded with a computed zero point."""

    def convolution(x: Any, w: Any, padding: str) -> Any:
        dims = "NHWC", "HWIO", "NHWC"
        return jax.lax.conv_general_dilated(
            x, w, (1, 1), padding, dimension_numbers=dims
        )

    y = convolution(x, w, "SAME")
    zero = jnp.round(-y.min())
    steps = jnp.round((y + zero) * 100 / y.max())
    edges = ((0, 0, 0), (1, 1, 0), (1, 1, 0), (0, 0, 0))
    z = convolution(jax.lax.pad(steps, zero, edges), u, "VALID")
    return jnp.round(z * (100 / jnp.abs(z).max())).astype(jnp.int8)


def test_loops_recompute_values_needed_for_padding() -> None:
    """No loop stores a value that another loop recomputes."""
    arrays = normal(1, 128, 128, 4), normal(3, 3, 4, 32), normal(3, 3, 32, 32)
    model = tensorplan.from_jax(quantized_images, *arrays)
    ready = run(model.module, ConvertStablehloToTGraph(), *READY, TGraphSchedule())
    planned = run(ready, TGraphTile(max_slowdown=0.3), *REST)
    assert planned_bytes(run(ready, *REST)) >= 4 << 20
    assert planned_bytes(planned) <= (2 << 20) + IN_CACHE  # one image, and tiles
    (got,) = Executable(planned, sanitize=True)(*arrays)
    want = jax.jit(quantized_images)(*arrays)
    difference = np.abs(got.astype("i4") - np.asarray(want, "i4"))
    assert difference.max() <= 1
    assert difference.mean() < 0.01


def test_reader_after_a_reduction_is_excluded_from_its_loop() -> None:
    module = tensorplan.read("""
    func.func @main(%x: tensor<64x4xf32>) -> (tensor<f32>, tensor<64x4xf32>) {
      %0 = tgraph.negate %x : tensor<64x4xf32>
      %1 = tgraph.reduce %0 {kind = "add", dimensions = array<i64: 0, 1>}
        : (tensor<64x4xf32>) -> tensor<f32>
      %2 = tgraph.negate %0 : tensor<64x4xf32>
      func.return %1, %2 : tensor<f32>, tensor<64x4xf32>
    }""")
    ((_, block),) = tensor_functions(module)
    seed, total, again, _ = block.ops
    for behind, members in (({}, 3), ({again: total.results}, 2)):
        loop = tiled_loop(Surroundings(block, behind), seed, 0, 4)
        assert loop is not None
        assert len(loop.members) == members
        assert (again in loop.after) == bool(behind)


def kept(x: Any, w: Any) -> Any:
    """The quantized value is also a result."""
    y = jnp.tanh(x @ w)
    scale = jnp.abs(y).max() / 127
    return jnp.round(y / scale).astype(jnp.int8), y


@pytest.mark.parametrize(
    ("function", "passes"),
    [(quantized_dynamically, 2), (normalized_as_a_whole, 3), (kept, 0)],
)
def test_values_are_recomputed_after_their_reductions(
    function: Callable[..., Any], passes: int
) -> None:
    """A matrix of 8 MiB takes only the memory of a tile."""
    arrays = normal(8192, 64), normal(64, 256)
    model = tensorplan.from_jax(function, *arrays)
    ready = run(model.module, ConvertStablehloToTGraph(), *READY, TGraphSchedule())
    tiled = run(ready, TGraphTile(max_slowdown=0.2))
    assert str(tiled).count("tgraph.tiles") == passes
    assert str(run(ready, TGraphTile(max_slowdown=0))).count("tgraph.tiles") == 0
    planned = run(tiled, *REST)
    if passes:
        assert planned_bytes(planned) <= 2 * IN_CACHE
        assert planned_bytes(planned) < planned_bytes(run(ready, *REST)) // 8
    got = Executable(planned, sanitize=True)(*arrays)
    want = jax.tree.leaves(jax.jit(function)(*arrays))
    for own, theirs in zip(got, want, strict=True):
        atol = 1 if own.dtype == np.int8 else 1e-2
        own, theirs = (np.asarray(x, np.float32) for x in (own, theirs))
        np.testing.assert_allclose(own, theirs, rtol=1e-2, atol=atol)


def test_group_reads_a_transposed_tile_once() -> None:
    """Four operations of a GELU's group read the product of all experts in transposed
    order. The group loads it once, not four times."""

    def experts(x: Any, w: Any, u: Any) -> Any:
        hidden = jax.nn.gelu(jnp.einsum("td,edh->eth", x, w))
        return jnp.einsum("eth,ehd->td", hidden, u)

    arrays = normal(512, 64), normal(4, 64, 512), normal(4, 512, 64)
    planned = tensorplan.plan(tensorplan.from_jax(experts, *arrays))
    assert "tgraph.tiles" in str(planned.module)
    groups = [op for op in planned.module.walk() if isinstance(op, FusionOp)]
    (gelu,) = [op for op in groups if "tgraph.tanh" in str(op)]
    assert len(gelu.inputs) == 1
    (got,) = tensorplan.compile(planned)(*arrays)
    np.testing.assert_allclose(got, experts(*arrays), rtol=1e-3, atol=1e-2)


def test_the_largest_sources_join_a_loop_first() -> None:
    """Messages of edges: the rows that are gathered depend on the whole mask, so that
    either they or the mask can be in the loop."""
    module = tensorplan.read("""
func.func @main(%x: tensor<20x32xf32>, %i: tensor<64xi32>) -> tensor<32xf32> {
  %0 = tgraph.constant<0 : i32> : tensor<64xi32>
  %mask = tgraph.compare %i, %0 {direction = "GE"}
    : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
  %1 = tgraph.convert %mask : (tensor<64xi1>) -> tensor<64xf32>
  %count = tgraph.reduce %1 {kind = "add", dimensions = array<i64: 0>}
    : (tensor<64xf32>) -> tensor<f32>
  %2 = tgraph.broadcast_in_dim %count {broadcast_dimensions = array<i64>}
    : (tensor<f32>) -> tensor<20x32xf32>
  %3 = tgraph.multiply %x, %2 : tensor<20x32xf32>
  %rows = tgraph.gather %3, %i {offset_dims = array<i64: 1>,
    collapsed_slice_dims = array<i64: 0>, start_index_map = array<i64: 0>,
    index_vector_dim = 1 : i64, slice_sizes = array<i64: 1, 32>}
    : (tensor<20x32xf32>, tensor<64xi32>) -> tensor<64x32xf32>
  %4 = tgraph.broadcast_in_dim %mask {broadcast_dimensions = array<i64: 0>}
    : (tensor<64xi1>) -> tensor<64x32xi1>
  %5 = tgraph.constant<0.0 : f32> : tensor<64x32xf32>
  %kept = tgraph.select %4, %rows, %5
    : (tensor<64x32xi1>, tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
  %sum = tgraph.reduce %kept {kind = "add", dimensions = array<i64: 0>}
    : (tensor<64x32xf32>) -> tensor<32xf32>
  func.return %sum : tensor<32xf32>
}""")
    ((_, block),) = tensor_functions(module)
    (seed,) = (op for op in block.ops if op.name == "tgraph.select")
    loop = tiled_loop(Surroundings(block, {}), seed, 0, 4)
    assert loop
    assert [op.name for op in loop.members] == [
        *("tgraph.gather", "tgraph.select", "tgraph.reduce")
    ]


def test_estimate_counts_what_loops_take_out_of_groups() -> None:
    """A loop reads %s from memory, also if %s was in the group of its reader."""
    module = parse("""func.func @main(%x: tensor<64x1024xf32>, %y: tensor<8x1024xf32>)
        -> tensor<64xf32> {
      %s = tgraph.reduce %y {kind = "add", dimensions = array<i64: 0>}
        : (tensor<8x1024xf32>) -> tensor<1024xf32>
      %b = tgraph.broadcast_in_dim %s {broadcast_dimensions = array<i64: 1>}
        : (tensor<1024xf32>) -> tensor<64x1024xf32>
      %z = tgraph.add %x, %b : tensor<64x1024xf32>
      %r = tgraph.reduce %z {kind = "maximum", dimensions = array<i64: 1>}
        : (tensor<64x1024xf32>) -> tensor<64xf32>
      func.return %r : tensor<64xf32>
    }""")
    ((_, block),) = tensor_functions(module)
    added = next(op for op in block.ops if isinstance(op, AddOp))
    loop = loop_at(block, added, 0, 4)
    assert loop is not None
    sizes: dict[SSAValue, int] = {added.results[0]: 64 * 4096}
    during = Estimate(block, sizes, {}, 1000, {}, {}).with_loop(loop)
    assert during.outside[during.at] == 4096
