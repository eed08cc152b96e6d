"""Tests loops over tiles of rows through windows: convolutions, pooling, and residual
branches. Results are equal bit by bit, and memory and FLOPs are bounded."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from levels import READY, REST, inputs, planned_bytes
from modules import parse, run
from programs import Program
from sampling import examples
from tiling import loop_at, loops_of, with_loop
from xdsl.dialects.builtin import (
    FloatAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    f32,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

import tensorplan
from tensorplan.analysis.flops import flops
from tensorplan.analysis.functions import tensor_functions
from tensorplan.dialects.tgraph import elementwise as ew
from tensorplan.dialects.tgraph import reducing, shaping
from tensorplan.dialects.tgraph.base import ints, shape_of, tensor_type_of
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.passes.tgraph.tiling.loops import TiledLoop
from tensorplan.runtime.executor import Executable

COLUMNS, FEATURES = 3, 2


class _Images:
    """Builds a random program on images of integers, which are so small that all sums
    are exact."""

    def __init__(self, draw: st.DrawFn):
        self.draw = draw
        self.block = Block()
        self.values = [self.argument(1, draw(ROWS), COLUMNS, FEATURES)]

    def argument(self, *shape: int) -> SSAValue:
        return self.block.insert_arg(TensorType(f32, shape), len(self.block.args))

    def image(self) -> SSAValue:
        return self.values[-1 - self.draw(st.integers(0, min(len(self.values), 3) - 1))]

    def add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def window(self, x: SSAValue) -> tuple[dict[str, int], TensorType]:
        """A random window along the rows of an image, and the type of its result."""
        rows = shape_of(tensor_type_of(x.type))[1]
        stride = self.draw(st.sampled_from([1, 1, 2] if rows % 2 == 0 else [1]))
        size, apart = self.draw(st.integers(1, 4)), self.draw(st.integers(1, 2))
        reach = (size - 1) * apart + 1
        padding = self.draw(st.integers(max(reach - stride, 0), reach - 1))
        low = self.draw(st.integers(0, padding))
        window = {
            "size": size,
            "stride": stride,
            "low": low,
            "high": padding - low,
            "apart": apart,
        }
        return window, TensorType(f32, (1, rows // stride, COLUMNS, FEATURES))

    def padded(self, x: SSAValue, window: dict[str, int]) -> SSAValue:
        """Pads the image by a constant as `window` requires, along its rows, in its own
        or in transposed order. The window then has no padding."""
        order = self.draw(st.sampled_from([(0, 1, 2, 3), (0, 3, 1, 2)]))
        sizes = shape_of(tensor_type_of(x.type))
        low, high = window.pop("low"), window.pop("high")
        window |= {"low": 0, "high": 0}
        number = FloatAttr(self.draw(st.integers(-2, 2)), f32)
        n = self.add(shaping.ConstantOp(number, TensorType(f32, ())))
        x = self.transposed(x, [sizes[d] for d in order], order)
        is_row = [int(d == 1) for d in order]
        shape = [
            sizes[d] + r * (low + high) for d, r in zip(order, is_row, strict=True)
        ]
        properties = {
            "low": ints([r * low for r in is_row]),
            "high": ints([r * high for r in is_row]),
            "interior": ints([0] * 4),
        }
        type = TensorType(f32, shape)
        x = self.add(shaping.PadOp([x, n], result_types=[type], properties=properties))
        back = [order.index(d) for d in range(4)]
        return self.transposed(x, [shape[d] for d in back], back)

    def transposed(
        self, x: SSAValue, shape: Sequence[int], order: Sequence[int]
    ) -> SSAValue:
        if list(order) == [0, 1, 2, 3]:
            return x
        type = TensorType(f32, shape)
        permutation = {"permutation": ints(order)}
        return self.add(
            shaping.TransposeOp([x], result_types=[type], properties=permutation)
        )

    def convolve(self) -> None:
        x = self.image()
        window, type = self.window(x)
        if self.draw(st.booleans()):
            x = self.padded(x, window)
        groups = self.draw(st.sampled_from([1, FEATURES]))
        kernel = self.argument(window["size"], 1, FEATURES // groups, FEATURES)
        properties = {
            "dim_labels": StringAttr("b01f_01io->b01f"),
            "window_strides": ints([window["stride"], 1]),
            "padding_low": ints([window["low"], 0]),
            "padding_high": ints([window["high"], 0]),
            "lhs_dilation": ints([1, 1]),
            "rhs_dilation": ints([window["apart"], 1]),
            "feature_group_count": IntegerAttr(groups, i64),
            "batch_group_count": IntegerAttr(1, i64),
        }
        convolved = self.add(
            reducing.ConvolutionOp(
                [x, kernel], result_types=[type], properties=properties
            )
        )
        self.values.append(self.add(ew.SignOp([convolved], result_types=[type])))

    def pool(self) -> None:
        x = self.image()
        window, type = self.window(x)
        if self.draw(st.booleans()):
            x = self.padded(x, window)
        properties = {
            "kind": StringAttr(self.draw(st.sampled_from(["add", "maximum"]))),
            "window_dimensions": ints([1, window["size"], 1, 1]),
            "window_strides": ints([1, window["stride"], 1, 1]),
            "padding_low": ints([0, window["low"], 0, 0]),
            "padding_high": ints([0, window["high"], 0, 0]),
            "base_dilations": ints([1] * 4),
            "window_dilations": ints([1, window["apart"], 1, 1]),
        }
        pooled = reducing.ReduceWindowOp(
            [x], result_types=[type], properties=properties
        )
        self.values.append(self.add(pooled))

    def join(self) -> None:
        x = self.image()
        same = [value for value in self.values if value.type == x.type]
        other = self.draw(st.sampled_from(same))
        self.values.append(self.add(ew.AddOp([x, other], result_types=[x.type])))

    def multiply(self) -> None:
        """Multiplies the features of each pixel by a matrix, with rows and columns
        merged."""
        x = self.image()
        pixels = shape_of(tensor_type_of(x.type))[1] * COLUMNS
        flat = TensorType(f32, (pixels, FEATURES))
        dots = {
            "lhs_batching_dimensions": ints([]),
            "rhs_batching_dimensions": ints([]),
            "lhs_contracting_dimensions": ints([1]),
            "rhs_contracting_dimensions": ints([0]),
        }
        y = self.add(shaping.ReshapeOp([x], result_types=[flat]))
        w = self.argument(FEATURES, FEATURES)
        y = self.add(
            reducing.DotGeneralOp([y, w], result_types=[flat], properties=dots)
        )
        y = self.add(ew.SignOp([y], result_types=[flat]))
        self.values.append(self.add(shaping.ReshapeOp([y], result_types=[x.type])))

    def count(self) -> None:
        """Adds the row's number to each pixel."""
        x = self.image()
        row = {"dimension": IntegerAttr(1, i64)}
        rows = self.add(shaping.IotaOp([], result_types=[x.type], properties=row))
        self.values.append(self.add(ew.AddOp([x, rows], result_types=[x.type])))

    def bias(self) -> None:
        """Adds the same vector to each pixel."""
        x, bias = self.image(), self.argument(FEATURES)
        features = {"broadcast_dimensions": ints([3])}
        biases = self.add(
            shaping.BroadcastInDimOp([bias], result_types=[x.type], properties=features)
        )
        self.values.append(self.add(ew.AddOp([x, biases], result_types=[x.type])))

    def flip(self) -> None:
        """Reverses the rows. Such a view cannot be tiled."""
        x = self.image()
        rows = {"dimensions": ints([1])}
        flipped = shaping.ReverseOp([x], result_types=[x.type], properties=rows)
        self.values.append(self.add(flipped))

    def mean(self) -> SSAValue:
        return self.add(
            reducing.ReduceOp(
                [self.values[-1]],
                result_types=[TensorType(f32, (1, FEATURES))],
                properties={"kind": StringAttr("add"), "dimensions": ints([1, 2])},
            )
        )


ROWS = st.sampled_from([6, 8, 12, 20])
LAYERS = [
    _Images.convolve,
    _Images.pool,
    _Images.join,
    _Images.multiply,
    _Images.count,
    _Images.bias,
    _Images.flip,
]


@st.composite
def networks(draw: st.DrawFn) -> Program:
    images = _Images(draw)
    for _ in range(draw(st.integers(2, 6))):
        draw(st.sampled_from(LAYERS))(images)
    results = [images.values[-1], images.image(), images.mean()]
    images.block.add_op(ReturnOp(*results))
    arguments = [argument.type for argument in images.block.args]
    types = FunctionType.from_lists(arguments, [result.type for result in results])
    return Program(ModuleOp([FuncOp("main", types, Region(images.block))]))


def is_peeled(loop: TiledLoop | None) -> bool:
    return loop is not None and loop.is_peeled


@pytest.mark.thorough
@settings(max_examples=examples(300))
@given(networks(), st.data())
def test_values_of_random_networks_are_unchanged(
    program: Program, data: st.DataObject
) -> None:
    ready = run(program.module, *READY[:2])
    ready.verify()
    ((_, block),) = tensor_functions(ready)
    ops = list(block.ops)
    found = [seed for seed in loops_of(block) if seed[1] == 1]
    peeled = [s for s in found if is_peeled(loop_at(block, ops[s[0]], *s[1:]))]
    event(f"peeled: {bool(peeled)}")
    if not (found := peeled or found):
        return
    looped = with_loop(ready, *data.draw(st.sampled_from(found)))
    given = inputs(program.module)
    want = run_reference(program.module, given)
    planned = run(looped, *READY[2:], *REST)
    executable = Executable(planned, sanitize=True, native=False)
    for got in (run_reference(looped, given), executable(*given)):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)


PADDED = """
func.func @main(
    %x: tensor<1x2x8x4xf32>, %w: tensor<3x3x2x2xf32>, %v: tensor<2x1x2x2xf32>)
    -> (tensor<1x8x4x2xf32>, tensor<1x2xf32>, tensor<f32>) {
  %number = tgraph.constant<3.0 : f32> : tensor<f32>
  %a = tgraph.abs %x : tensor<1x2x8x4xf32>
  %b = tgraph.pad %a, %number {
    low = array<i64: 0, 0, 1, 1>, high = array<i64: 0, 0, 1, 1>,
    interior = array<i64: 0, 0, 0, 0>
  } : (tensor<1x2x8x4xf32>, tensor<f32>) -> tensor<1x2x10x6xf32>
  %c = tgraph.transpose %b {permutation = array<i64: 0, 2, 3, 1>}
    : (tensor<1x2x10x6xf32>) -> tensor<1x10x6x2xf32>
  %d = tgraph.convolution %c, %w {
    dim_labels = "b01f_01io->b01f", window_strides = array<i64: 1, 1>,
    padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>,
    lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>
  } : (tensor<1x10x6x2xf32>, tensor<3x3x2x2xf32>) -> tensor<1x8x4x2xf32>
  %e = tgraph.reduce_window %c {
    kind = "maximum", window_dimensions = array<i64: 1, 3, 3, 1>,
    window_strides = array<i64: 1, 1, 1, 1>, base_dilations = array<i64: 1, 1, 1, 1>,
    padding_low = array<i64: 0, 0, 0, 0>, padding_high = array<i64: 0, 0, 0, 0>,
    window_dilations = array<i64: 1, 1, 1, 1>
  } : (tensor<1x10x6x2xf32>) -> tensor<1x8x4x2xf32>
  %f = tgraph.add %d, %e : tensor<1x8x4x2xf32>
  %g = tgraph.pad %f, %number {
    low = array<i64: 0, 1, 0, 0>, high = array<i64: 0, 0, 0, 0>,
    interior = array<i64: 0, 0, 0, 0>
  } : (tensor<1x8x4x2xf32>, tensor<f32>) -> tensor<1x9x4x2xf32>
  %h = tgraph.convolution %g, %v {
    dim_labels = "b01f_01io->b01f", window_strides = array<i64: 1, 1>,
    padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>,
    lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>
  } : (tensor<1x9x4x2xf32>, tensor<2x1x2x2xf32>) -> tensor<1x8x4x2xf32>
  %i = tgraph.reduce %h {kind = "add", dimensions = array<i64: 1, 2>}
    : (tensor<1x8x4x2xf32>) -> tensor<1x2xf32>
  %j = tgraph.reduce ALSO {kind = "add", dimensions = array<i64: 0, 1, 2, 3>}
    : (SHAPE) -> tensor<f32>
  func.return %h, %i, %j : tensor<1x8x4x2xf32>, tensor<1x2xf32>, tensor<f32>
}"""
"""A program with a pad that two windows read, and a pad that one window reads."""


@pytest.mark.parametrize(
    ("also", "shape", "padding"),
    [("%f", "tensor<1x8x4x2xf32>", 2), ("%c", "tensor<1x10x6x2xf32>", 1)],
    ids=["read by windows", "read by a sum, too"],
)
def test_padding_moves_into_tiles(also: str, shape: str, padding: int) -> None:
    module = parse(PADDED.replace("ALSO", also).replace("SHAPE", shape))
    module = run(module, *READY[:2])
    ((_, block),) = tensor_functions(module)
    given = inputs(module)
    want = run_reference(module, given)
    most = 0
    for number, dim, tiles in loops_of(block):
        loop = loop_at(block, list(block.ops)[number], dim, tiles)
        assert loop is not None
        most = max(most, len(loop.padding))
        got = run_reference(with_loop(module, number, dim, tiles), given)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)
    assert most == padding


# Profitability.

jax = pytest.importorskip("jax")
jnp = jax.numpy


def convolved(x: Any, w: Any, stride: int = 1) -> Any:
    """A convolution, depthwise if the kernel has one input feature."""
    return jax.lax.conv_general_dilated(
        x,
        w,
        (stride, stride),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=x.shape[-1] // w.shape[2],
    )


def two_levels(x: Any, a: Any, b: Any, down: Any, up: Any, c: Any, last: Any) -> Any:
    """Two levels of a U-Net (Ronneberger et al., 2015), with biases."""
    skip = jnp.tanh(convolved(jnp.tanh(convolved(x, a) + 1), b) + 1)
    low = jnp.tanh(convolved(skip, down, 2))
    layout = ("NHWC", "HWIO", "NHWC")
    high = jax.lax.conv_transpose(low, up, (2, 2), "SAME", dimension_numbers=layout)
    h = jnp.tanh(convolved(jnp.concatenate([skip, high], -1), c) + jnp.arange(8.0))
    return jnp.tanh(convolved(h, last))


def test_last_level_of_a_unet_is_a_loop_of_its_own() -> None:
    """The last level reads the whole lower level, which depends on the first level."""
    kernels = [(3, 3, 2, 8), (3, 3, 8, 8), (3, 3, 8, 8), (2, 2, 8, 8), (3, 3, 16, 8)]
    shapes = [(1, 128, 64, 2), *kernels, (1, 1, 8, 1)]
    rng = np.random.default_rng(0)
    # Small kernels, since each layer would otherwise amplify the rounding errors.
    arrays = [rng.standard_normal(shape, np.float32) / 8 for shape in shapes]
    planned = tensorplan.plan(tensorplan.from_jax(two_levels, *arrays))
    level = 4 * 128 * 64 * 8  # bytes
    assert (
        planned_bytes(planned.module) < 4 * level
    )  # the joined levels, and their join
    got = Executable(planned.module)(*arrays)[0]
    np.testing.assert_allclose(got, jax.jit(two_levels)(*arrays), atol=1e-5)


def first_blocks(
    x: Any, first: Any, d0: Any, p0: Any, e1: Any, d1: Any, p1: Any
) -> Any:
    """The first blocks of MobileNetV2 (Sandler et al., 2018), from 224x224x3 to
    56x56x24."""
    x = jnp.clip(convolved(x, first, 2), 0, 6)
    x = convolved(jnp.clip(convolved(x, d0), 0, 6), p0)
    x = jnp.clip(convolved(x, e1), 0, 6)
    return convolved(jnp.clip(convolved(x, d1, 2), 0, 6), p1)


def quantized_blocks(x: Any, *kernels: Any) -> Any:
    """The first blocks of MobileNetV2 in 8 bits, padded with a zero point of -3."""
    strides = 2, 1, 1, 1, 2, 1
    for w, stride in zip(kernels, strides, strict=True):
        edge = w.shape[0] // 2
        rows = (edge, edge, 0)
        sums = jax.lax.conv_general_dilated(
            jax.lax.pad(x, jnp.int8(-3), [(0, 0, 0), rows, rows, (0, 0, 0)]),
            w,
            (stride, stride),
            "VALID",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=x.shape[-1] // w.shape[2],
            preferred_element_type=jnp.int32,
        )
        x = jnp.clip(jnp.round(sums / 64), -128, 127).astype(jnp.int8)
    return x


def residual_blocks(x: Any, first: Any, *rest: Any) -> Any:
    """Blocks of ResNet (He et al., 2016): pooling, and shortcuts around two
    convolutions."""
    x = jax.nn.relu(convolved(x, first, 2))
    window, strides = (1, 3, 3, 1), (1, 2, 2, 1)
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, strides, "SAME")
    for u, v in zip(rest[::2], rest[1::2], strict=True):
        x = jax.nn.relu(x + convolved(jax.nn.relu(convolved(x, u)), v))
    return x.mean((1, 2))


def normal(*shape: int) -> Any:
    return (
        np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32") / 4
    )


SHAPES = [
    (1, 224, 224, 3),
    (3, 3, 3, 32),
    (3, 3, 1, 32),
    (1, 1, 32, 16),
    (1, 1, 16, 96),
    (3, 3, 1, 96),
    (1, 1, 96, 24),
]
"""The shapes of the image and the kernels of MobileNetV2's first blocks."""


MODELS: dict[str, tuple[Callable[..., Any], list[Any], int]] = {
    "MobileNetV2": (first_blocks, [normal(*shape) for shape in SHAPES], 500_000),
    "quantized MobileNetV2": (
        quantized_blocks,
        [(99 * normal(*shape)).astype("int8") for shape in SHAPES],
        400_000,
    ),
    "ResNet": (
        residual_blocks,
        [normal(1, 256, 256, 3), normal(7, 7, 3, 32)] + [normal(3, 3, 32, 32)] * 4,
        1_000_000,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_memory_and_flops_of_tiled_models(name: str) -> None:
    function, arguments, most = MODELS[name]
    model = tensorplan.from_jax(function, *arguments)
    planned = tensorplan.plan(model)
    assert sum(pool["bytes"] for pool in tensorplan.report(planned)["pools"]) <= most
    assert flops(planned.module) <= 1.0001 * flops(model.module)  # plus row numbers
    want = jax.jit(function)(*arguments)
    np.testing.assert_allclose(
        tensorplan.compile(planned)(*arguments), [want], rtol=1e-4, atol=1e-4
    )
