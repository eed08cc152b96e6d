"""Tests contractions by oneDNN: they give the values of the NumPy kernels."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from processors import multiplies_packed
from xdsl.ir import Operation
from xdsl.parser import Parser

import tensorplan
from tensorplan.dialects.dtypes import numpy_dtype
from tensorplan.dialects.tgraph.reducing import ConvolutionOp, DotGeneralOp
from tensorplan.dialects.tgraph.structure import FusionOp
from tensorplan.runtime.backends.contraction import BLOCK
from tensorplan.runtime.backends.dispatch import compile_call
from tensorplan.runtime.backends.native import backend as native
from tensorplan.runtime.backends.native import panels, strips, widening
from tensorplan.runtime.backends.onednn import backend as onednn
from tensorplan.runtime.backends.onednn import convolution as convolutions
from tensorplan.runtime.backends.onednn import division
from tensorplan.runtime.backends.onednn.primitives import Execution, is_reorder
from tensorplan.runtime.calls import Call
from tensorplan.runtime.pool import Scratch

pytestmark = pytest.mark.skipif(not onednn.is_available(), reason="needs oneDNN")

RNG = np.random.default_rng(0)


def tensor(shape: Sequence[int]) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}f32>"


def ints(values: Sequence[int]) -> str:
    return f"array<i64{': ' if values else ''}{', '.join(map(str, values))}>"


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape, np.float32)


def operation(kind: type[Operation], text: str) -> Any:
    module = Parser(tensorplan.context(), text).parse_module()
    module.verify()
    return next(op for op in module.walk() if isinstance(op, kind))


def dot(shapes: Sequence[Sequence[int]], batch=((), ()), contracting=((1,), (0,))):
    sizes = [shapes[0][d] for d in batch[0]]
    for shape, b, c in zip(shapes, batch, contracting, strict=True):
        sizes += [size for d, size in enumerate(shape) if d not in (*b, *c)]
    lhs, rhs, out = map(tensor, (*shapes, sizes))
    attributes = ", ".join(
        f"{side}_{what}_dimensions = {ints(dims[number])}"
        for what, dims in (("batching", batch), ("contracting", contracting))
        for number, side in enumerate(("lhs", "rhs"))
    )
    return operation(
        DotGeneralOp,
        f"""func.func @main(%x: {lhs}, %y: {rhs}) -> {out} {{
          %r = tgraph.dot_general %x, %y {{{attributes}}} : ({lhs}, {rhs}) -> {out}
          func.return %r : {out}
        }}""",
    ), sizes


def run(make) -> list[Call]:
    """Makes calls with a sufficient workspace, runs them, and returns them."""
    scratch = Scratch("cpu:0")
    made = make(scratch)
    if scratch.bytes:
        scratch.reset()
        made = make(scratch)
    for function, arguments in made or ():
        function(*arguments)
    return made


def compare(op, inputs: Sequence[np.ndarray], out: np.ndarray) -> None:
    """Compares oneDNN's result with NumPy's."""
    assert run(lambda s: onednn.compiled(op, inputs, out, s)) is not None
    want = np.empty_like(out)
    run(lambda s: compile_call(op, inputs, [want], s, native=False))
    assert np.max(np.abs(out - want)) <= 3e-6 * max(1, np.max(np.abs(want)))


@pytest.mark.parametrize(
    ("shapes", "batch", "contracting"),
    [
        (((5, 7), (7, 3)), ((), ()), ((1,), (0,))),
        (((7, 5), (3, 7)), ((), ()), ((0,), (1,))),
        (((2, 7), (7, 3)), ((), ()), ((1,), (0,))),
        (((4,), (5,)), ((), ()), ((), ())),
        (((2, 5, 3, 8), (2, 9, 3, 8)), ((0, 2), (0, 2)), ((3,), (3,))),
        (((2, 5, 3, 8), (4, 8, 2, 5)), ((), ()), ((0, 1, 3), (2, 3, 1))),
        (((6, 2, 5), (5, 6, 4)), ((0,), (1,)), ((2,), (0,))),
    ],
)
def test_dot_general(shapes, batch, contracting) -> None:
    op, sizes = dot(shapes, batch, contracting)
    compare(op, [normal(*shape) for shape in shapes], np.empty(sizes, np.float32))


def test_dot_general_in_strided_memory() -> None:
    op, _ = dot(((6, 5), (5, 4)))
    x, y = normal(12, 10)[::2, ::2], normal(4, 5).T
    out = np.zeros((4, 6), np.float32).T
    want = x @ y
    run(lambda s: compile_call(op, [x, y], [out], s))
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("rows", "is_result_strided", "copies"),
    [(64, False, False), (64, True, False), (8, False, True), (8, True, False)],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_stacks_of_rows_without_one_stride(
    rows: int, is_result_strided: bool, copies: bool, threads: int
) -> None:
    """`x[:, 1:] @ w` copies `x` only where that takes less time."""
    op, sizes = dot(((2, 3, rows, 32), (32, 64)), contracting=((3,), (0,)))
    x, w = normal(2, 3, rows + 1, 32)[:, :, 1:], normal(32, 64)
    out = np.empty((2, 3, rows + is_result_strided, 64), np.float32)[:, :, :rows]
    assert list(out.shape) == sizes
    scratch = Scratch("cpu:0", threads)
    onednn.compiled(op, [x, w], out, scratch)
    assert (scratch.bytes >= x.nbytes) == copies
    scratch.reset()
    for function, arguments in onednn.compiled(op, [x, w], out, scratch) or ():
        function(*arguments)
    np.testing.assert_allclose(out, x @ w, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shapes", [((7,), (7,)), ((1, 7), (7, 3)), ((5, 7), (7, 1))])
def test_products_with_vectors_are_loop_nests(shapes) -> None:
    last = len(shapes[0]) - 1
    op, sizes = dot(shapes, contracting=((last,), (0,)))
    inputs, out = [normal(*s) for s in shapes], np.empty(sizes, np.float32)
    assert onednn.compiled(op, inputs, out, Scratch("cpu:0")) is None
    run(lambda s: native.calls_of(op, inputs, [out], s))
    np.testing.assert_allclose(out, np.dot(*inputs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shapes", [((7,), (7,)), ((1, 7), (7, 3)), ((5, 7), (7, 1))])
@pytest.mark.parametrize("elements", ["i1 f32", "bf16 bf16", "f32 f16", "i8 f32"])
def test_products_of_narrow_elements_with_vectors_are_one_nest(
    shapes, elements
) -> None:
    x, y = (
        f"tensor<{'x'.join(map(str, shape))}x{element}>"
        for shape, element in zip(shapes, elements.split(), strict=True)
    )
    sizes = *shapes[0][:-1], *shapes[1][1:]
    op = operation(
        DotGeneralOp,
        f"""func.func @main(%x: {x}, %y: {y}) {{
          %r = tgraph.dot_general %x, %y {{
            lhs_contracting_dimensions = array<i64: {len(shapes[0]) - 1}>,
            rhs_contracting_dimensions = array<i64: 0>}} : ({x}, {y}) -> {tensor(sizes)}
          func.return
        }}""",
    )
    inputs = [
        (normal(*shape) * 9).astype(numpy_dtype(value.type.element_type))
        for shape, value in zip(shapes, op.inputs, strict=True)
    ]
    out = np.empty(sizes, np.float32)
    assert len(run(lambda s: native.calls_of(op, inputs, [out], s))) == 1
    want = np.dot(*(x.astype(np.float64) for x in inputs))
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("shapes", "batch", "contracting"),
    [
        (((3, 3), (3, 3)), ((), ()), ((1,), (0,))),
        (((100, 2, 2), (100, 2, 2)), ((0,), (0,)), ((2,), (1,))),
        (((50, 3, 5), (50, 7, 5)), ((0,), (0,)), ((2,), (2,))),
        (((9, 6, 4), (9, 6, 17)), ((0,), (0,)), ((1,), (1,))),
        (((3, 8, 5, 2), (8, 2, 3, 4)), ((1, 0), (0, 2)), ((3,), (1,))),
        (((40, 2, 3, 4), (3, 40, 4, 2)), ((0,), (1,)), ((1, 3), (3, 2))),
    ],
)
def test_batches_of_small_products_are_loop_nests(
    shapes, batch, contracting, monkeypatch
) -> None:
    monkeypatch.setattr(onednn, "compiled", None)  # must not be called
    op, sizes = dot(shapes, batch, contracting)
    inputs = [normal(*shape) for shape in shapes]
    out, want = np.empty(sizes, np.float32), np.empty(sizes, np.float32)
    run(lambda s: compile_call(op, inputs, [want], s, native=False))
    assert len(run(lambda s: native.calls_of(op, inputs, [out], s))) == 1
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("shapes", "batch", "contracting"),
    [
        (((1, 7), (7, 300)), ((), ()), ((1,), (0,))),
        (((29,), (29, 517)), ((), ()), ((0,), (0,))),
        (((3, 1, 16), (3, 16, 257)), ((0,), (0,)), ((2,), (1,))),
        (((8, 2, 300), (1, 8, 2)), ((), ()), ((0, 1), (1, 2))),
        (((40, 5, 270), (5, 40)), ((1,), (0,)), ((0,), (1,))),
    ],
)
def test_vectors_by_matrices_with_long_rows(shapes, batch, contracting) -> None:
    op, sizes = dot(shapes, batch, contracting)
    inputs, out = [normal(*s) for s in shapes], np.empty(sizes, np.float32)
    want = np.empty_like(out)
    run(lambda s: compile_call(op, inputs, [want], s, native=False))
    assert run(lambda s: strips.calls_of(op, inputs, out, s))
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)


CONVOLUTIONS = {
    "forward": dict(),
    "strided": dict(out=(2, 5, 4, 6), strides=(2, 2), low=(1, 0), high=(1, 1)),
    "unpadded": dict(out=(2, 7, 6, 6), low=(0, 0), high=(0, 0)),
    "dilated": dict(out=(2, 7, 6, 6), dilation=(2, 2)),
    "grouped": dict(kernel=(3, 3, 2, 6), groups=2),
    "depthwise": dict(kernel=(3, 3, 1, 8), out=(2, 9, 8, 8), groups=4),
    "one by one": dict(kernel=(1, 1, 4, 6), low=(0, 0), high=(0, 0)),
    "channels first": dict(
        labels="bf01_oi01->bf01",
        image=(2, 4, 9, 8),
        kernel=(6, 4, 3, 3),
        out=(2, 6, 9, 8),
    ),
    "one dimension": dict(
        labels="b0f_0io->b0f",
        image=(2, 9, 4),
        kernel=(3, 4, 6),
        out=(2, 9, 6),
    ),
    "one dimension, depthwise": dict(
        labels="b0f_0io->b0f",
        image=(2, 19, 16),
        kernel=(5, 1, 16),
        out=(2, 17, 16),
        groups=16,
    ),
    "one dimension, channels first": dict(
        labels="bf0_oi0->bf0",
        image=(2, 4, 19),
        kernel=(6, 2, 3),
        out=(2, 6, 9),
        strides=(2,),
        dilation=(2,),
        groups=2,
    ),
    "one dimension, gradient by the weights": dict(
        labels="f0b_i0o->0bf", image=(2, 9, 4), kernel=(2, 9, 6), out=(3, 4, 6)
    ),
    "three dimensions": dict(
        labels="b012f_012io->b012f",
        image=(2, 5, 6, 7, 3),
        kernel=(3, 3, 3, 3, 4),
        out=(2, 5, 6, 7, 4),
    ),
    "gradient by the data": dict(
        labels="b01f_01oi->b01f",
        image=(2, 5, 4, 6),
        kernel=(3, 3, 4, 6),
        out=(2, 9, 8, 4),
        low=(1, 2),
        high=(1, 1),
        holes=(2, 2),
    ),
    "gradient by the data, in groups": dict(
        labels="b01f_01oi->b01f",
        image=(2, 5, 4, 6),
        kernel=(3, 3, 8, 3),
        out=(2, 9, 8, 8),
        low=(1, 2),
        high=(1, 1),
        holes=(2, 2),
        groups=2,
    ),
    "gradient by the weights": dict(
        labels="f01b_i01o->01bf", kernel=(2, 9, 8, 6), out=(3, 3, 4, 6)
    ),
    "gradient by the weights, in groups": dict(
        labels="f01b_i01o->01bf", kernel=(2, 9, 8, 6), out=(3, 3, 2, 6), batches=2
    ),
    "gradient by the weights, depthwise": dict(
        labels="f01b_i01o->01bf", kernel=(2, 9, 8, 8), out=(3, 3, 1, 8), batches=4
    ),
    "gradient by the weights, strided": dict(
        labels="f01b_i01o->01bf",
        kernel=(2, 5, 4, 6),
        out=(3, 3, 4, 6),
        dilation=(2, 2),
        low=(1, 1),
        high=(1, 0),
    ),
    "gradient by the weights, transposed": dict(
        labels="f01b_i01o->01bf",
        image=(2, 5, 4, 4),
        kernel=(2, 10, 8, 6),
        out=(3, 3, 4, 6),
        holes=(2, 2),
        low=(2, 2),
    ),
    "gradient by the weights, transposed, dilated": dict(
        labels="fb01_io01->bf01",
        image=(2, 4, 5, 4),
        kernel=(2, 6, 10, 8),
        out=(4, 6, 3, 3),
        strides=(2, 1),
        holes=(2, 2),
        low=(3, 2),
        high=(2, 1),
    ),
}


def convolution(
    labels="b01f_01io->b01f",
    image=(2, 9, 8, 4),
    kernel=(3, 3, 4, 6),
    out=(2, 9, 8, 6),
    strides=None,
    low=None,
    high=None,
    holes=None,
    dilation=None,
    groups=1,
    batches=1,
):
    ones = (1,) * (len(out) - 2)
    x, k, r = map(tensor, (image, kernel, out))
    return operation(
        ConvolutionOp,
        f"""func.func @main(%x: {x}, %k: {k}) -> {r} {{
          %r = "tgraph.convolution"(%x, %k) <{{
            dim_labels = "{labels}", window_strides = {ints(strides or ones)},
            padding_low = {ints(ones if low is None else low)},
            padding_high = {ints(ones if high is None else high)},
            lhs_dilation = {ints(holes or ones)},
            rhs_dilation = {ints(dilation or ones)},
            feature_group_count = {groups} : i64,
            batch_group_count = {batches} : i64,
            operandSegmentSizes = array<i32: 2, 0, 0>
          }}> : ({x}, {k}) -> {r}
          func.return %r : {r}
        }}""",
    ), (image, kernel, out)


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("is_flipped", [False, True])
def test_convolution(name: str, is_flipped: bool) -> None:
    op, (image, kernel, out) = convolution(**CONVOLUTIONS[name])
    weights = normal(*kernel)
    if is_flipped and "weights" not in name:
        _, labels, _ = op.labels
        spatial = [d for d, label in enumerate(labels) if label.isdigit()]
        weights = np.flip(weights, tuple(spatial))
    compare(op, [normal(*image), weights], np.empty(out, np.float32))


def test_images_are_reordered_to_the_layout_of_the_result() -> None:
    op, (image, kernel, out) = convolution(
        *("bf01_oi01->b01f", (2, 3, 9, 8), (16, 3, 3, 3), (2, 9, 8, 16))
    )
    compare(op, [normal(*image), normal(*kernel)], np.empty(out, np.float32))


CHANNELS_FIRST = {
    "forward": ("bf01_oi01->bf01", (2, 16, 9, 8), (16, 16, 3, 3), (2, 16, 9, 8)),
    "by the data": ("bf01_io01->bf01", (2, 16, 9, 8), (16, 16, 3, 3), (2, 16, 9, 8)),
    "by the weights": ("fb01_io01->fb01", (2, 16, 9, 8), (2, 16, 9, 8), (16, 16, 3, 3)),
}
SIGNALS = {
    "channels first": ("bf0_oi0->bf0", (2, 64, 37), (64, 1, 5), (2, 64, 35)),
    "channels last": ("b0f_0io->b0f", (2, 37, 64), (5, 1, 64), (2, 35, 64)),
}


@pytest.mark.parametrize("name", CHANNELS_FIRST)
def test_convolutions_do_not_use_im2col(name: str) -> None:
    """By itself, oneDNN would use im2col for images with the features first."""
    op, (image, kernel, out) = convolution(*CHANNELS_FIRST[name])
    weights = normal(*kernel)
    if name == "by the data":
        weights = np.flip(weights, (2, 3))
    inputs, result = [normal(*image), weights], np.empty(out, np.float32)
    compare(op, inputs, result)
    calls = run(lambda s: onednn.compiled(op, inputs, result, s))
    assert not any("gemm" in kind for kind in implementations(calls))


TURNS = {
    "forward": ("bf01_oi01->bf01", (19, 4, 24, 24), (8, 4, 3, 3), (19, 8, 24, 24)),
    "by the data": ("bf01_io01->bf01", (19, 8, 24, 24), (8, 4, 3, 3), (19, 4, 24, 24)),
    "by the weights": (
        *("fb01_io01->fb01", (19, 4, 24, 24)),
        *((19, 8, 24, 24), (8, 4, 3, 3)),
    ),
}


WEIGHTS = {
    "forward": ("b01f_01io->b01f", (2, 3, 3, 256), (3, 3, 256, 256), (2, 3, 3, 256)),
    "by the data": (
        *("b01f_01oi->b01f", (2, 3, 3, 256)),
        *((3, 3, 256, 256), (2, 3, 3, 256)),
    ),
    "by the weights": (
        *("f01b_i01o->01bf", (2, 5, 5, 512)),
        *((2, 5, 5, 512), (3, 3, 512, 512)),
    ),
}


def scratch_peak(op: Any, inputs: Sequence[np.ndarray], result: np.ndarray) -> int:
    scratch = Scratch("cpu:0")
    assert onednn.compiled(op, inputs, result, scratch)
    return scratch.peak


def peaks_of_turns(
    case: Sequence[Any], flipped: tuple[int, ...], whole: Callable[[], None]
) -> tuple[int, int]:
    """The scratch memory of a convolution in turns, and after `whole` prevents turns.
    Compares the values of the turns."""
    op, (image, kernel, out) = convolution(*case)
    inputs = [normal(*image), np.flip(normal(*kernel), flipped)]
    result = np.empty(out, np.float32)
    compare(op, inputs, result)
    in_turns = scratch_peak(op, inputs, result)
    whole()
    return in_turns, scratch_peak(op, inputs, result)


@pytest.mark.parametrize("name", TURNS)
def test_images_are_converted_in_turns(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns of 4 of the 19 images take less scratch memory. The last has fewer."""
    flipped = (2, 3) if name == "by the data" else ()
    whole = partial(monkeypatch.setattr, division, "TURN", 1 << 40)
    in_turns, at_once = peaks_of_turns(TURNS[name], flipped, whole)
    assert 3 * in_turns < at_once


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_are_converted_in_turns(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns of 64 features take less scratch memory."""
    flipped = (0, 1) if name == "by the data" else ()
    whole = partial(monkeypatch.setattr, convolutions, "FEATURES", 1 << 40)
    in_turns, at_once = peaks_of_turns(WEIGHTS[name], flipped, whole)
    assert 2.8 * in_turns < at_once


def test_two_layouts_are_reordered_to_a_third() -> None:
    """For these layouts, oneDNN has only its slow reference. It uses im2col if only the
    image is reordered."""
    shapes = (1, 9, 8, 16), (16, 1, 3, 3), (1, 16, 9, 8)
    op, (image, kernel, out) = convolution("b01f_oi01->bf01", *shapes, groups=16)
    inputs, result = [normal(*image), normal(*kernel)], np.empty(out, np.float32)
    compare(op, inputs, result)
    calls = run(lambda s: onednn.compiled(op, inputs, result, s))
    assert not any("gemm" in kind for kind in implementations(calls))


@pytest.mark.parametrize("name", SIGNALS)
def test_depthwise_convolutions_of_signals_have_a_kernel(name: str) -> None:
    """oneDNN has a depthwise kernel for images only, so signals become images."""
    op, (image, kernel, out) = convolution(*SIGNALS[name], groups=64)
    inputs, result = [normal(*image), normal(*kernel)], np.empty(out, np.float32)
    compare(op, inputs, result)
    calls = run(lambda s: onednn.compiled(op, inputs, result, s))
    assert any("dw" in kind for kind in implementations(calls))


PRODUCTS = {
    "points": dict(kernel=(1, 1, 64, 96), image=(2, 3, 4, 64), out=(2, 3, 4, 96)),
    "points, by the data": dict(
        labels="b01f_01oi->b01f",
        kernel=(1, 1, 96, 64),
        image=(2, 3, 4, 64),
        out=(2, 3, 4, 96),
    ),
    "points, by the weights": dict(
        labels="f01b_i01o->01bf",
        kernel=(2, 3, 4, 96),
        image=(2, 3, 4, 64),
        out=(1, 1, 64, 96),
    ),
    "the whole image": dict(
        kernel=(3, 4, 16, 32), image=(2, 3, 4, 16), out=(2, 1, 1, 32)
    ),
    "rows": dict(kernel=(1, 4, 16, 32), image=(2, 3, 4, 16), out=(2, 3, 1, 32)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_convolutions_that_are_products_do_not_reorder_weights(name: str) -> None:
    """Reordered weights would take as much scratch memory as the weights."""
    op, (image, kernel, out) = convolution(**PRODUCTS[name], low=(0, 0), high=(0, 0))
    inputs, result = [normal(*image), normal(*kernel)], np.empty(out, np.float32)
    compare(op, inputs, result)
    calls = run(lambda s: onednn.compiled(op, inputs, result, s))
    kinds = [x.description.kind for x, _ in calls if isinstance(x, Execution)]
    assert kinds == ["matmul"]


@pytest.mark.parametrize("name", ["points", "the whole image"])
def test_convolutions_with_reversed_windows(name: str) -> None:
    op, (image, kernel, out) = convolution(**PRODUCTS[name], low=(0, 0), high=(0, 0))
    weights = np.flip(normal(*kernel), (0, 1))
    compare(op, [normal(*image), weights], np.empty(out, np.float32))


def test_a_bias_is_added_by_a_loop_nest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panels, "LARGE", 0)  # panels would multiply planes
    x, w, r = map(tensor, ((1, 16, 9, 8), (16, 16, 1, 1), (1, 16, 9, 8)))
    op = operation(
        FusionOp,
        f"""func.func @main(%x: {x}, %w: {w}, %b: tensor<16xf32>) -> {r} {{
          %r = tgraph.fusion(%y = %x, %v = %w, %c = %b)
              : ({x}, {w}, tensor<16xf32>) -> {r} {{
            %d = tgraph.convolution %y, %v {{dim_labels = "bf01_oi01->bf01",
              window_strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>,
              padding_high = array<i64: 0, 0>, lhs_dilation = array<i64: 1, 1>,
              rhs_dilation = array<i64: 1, 1>}} : ({x}, {w}) -> {r}
            %e = tgraph.broadcast_in_dim %c {{broadcast_dimensions = array<i64: 1>}}
              : (tensor<16xf32>) -> {r}
            %s = tgraph.add %d, %e : {r}
            tgraph.yield %s : {r}
          }}
          func.return %r : {r}
        }}""",
    )
    image, weights, bias = normal(1, 16, 9, 8), normal(16, 16, 1, 1), normal(16)
    inputs, result = [image, weights, bias], np.empty((1, 16, 9, 8), np.float32)
    calls = run(lambda s: compile_call(op, inputs, [result], s, native=True))
    want = np.einsum("biyx,oi->boyx", image, weights[..., 0, 0])
    want += bias[:, None, None]
    np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-5)
    product, _ = (function for function, _ in calls)  # the other is a loop nest
    assert isinstance(product, Execution)
    assert not product.description.post_ops


@pytest.mark.parametrize("window", [1, 3])
def test_updates_use_the_primitive_for_weight_gradients(window: int) -> None:
    """The forward primitive, with a window as large as the image, would take hundreds
    of times as long, or NumPy would compute the update."""
    low = window // 2
    x, g, w = map(tensor, ((2, 12, 12, 16), (2, 12, 12, 32), (window, window, 16, 32)))
    op = operation(
        FusionOp,
        f"""func.func @main(%x: {x}, %g: {g}, %w: {w}) -> {w} {{
          %r = tgraph.fusion(%y = %x, %h = %g, %v = %w) : ({x}, {g}, {w}) -> {w} {{
            %d = tgraph.convolution %y, %h {{dim_labels = "f01b_i01o->01bf",
              window_strides = array<i64: 1, 1>, padding_low = array<i64: {low}, {low}>,
              padding_high = array<i64: {low}, {low}>,
              lhs_dilation = array<i64: 1, 1>,
              rhs_dilation = array<i64: 1, 1>}} : ({x}, {g}) -> {w}
            %s = tgraph.subtract %v, %d : {w}
            tgraph.yield %s : {w}
          }}
          func.return %r : {w}
        }}""",
    )
    image, gradient = normal(2, 12, 12, 16), normal(2, 12, 12, 32)
    weights = normal(window, window, 16, 32)
    padded = np.pad(image, ((0, 0), (low, low), (low, low), (0, 0)))
    want = weights.copy()
    for y, z in np.ndindex(window, window):
        part = padded[:, y : y + 12, z : z + 12]
        want[y, z] -= np.einsum("bijc,bijf->cf", part, gradient)
    result = np.empty_like(weights)
    calls = run(
        lambda s: compile_call(op, [image, gradient, weights], [result], s, native=True)
    )
    np.testing.assert_allclose(result, want, rtol=1e-4, atol=1e-4)
    kinds = {x.description.kind for x, _ in calls if isinstance(x, Execution)}
    assert "convolution_backward_weights" in kinds


def implementations(calls: Sequence[Call]) -> list[str]:
    found = [
        record.description.implementation
        for record, _ in calls
        if isinstance(record, Execution) and not is_reorder(record)
    ]
    assert found
    return found


def update(rows: int, columns: int, depth: int, body: str) -> FusionOp:
    w, x, g = map(tensor, ((rows, columns), (rows, depth), (depth, columns)))
    return operation(
        FusionOp,
        f"""func.func @main(%w: {w}, %x: {x}, %g: {g}, %b: {w}) -> {w} {{
          %r = tgraph.fusion(%v = %w, %y = %x, %h = %g, %c = %b)
              : ({w}, {x}, {g}, {w}) -> {w} {{
            %d = tgraph.dot_general %y, %h {{
              lhs_contracting_dimensions = array<i64: 1>,
              rhs_contracting_dimensions = array<i64: 0>
            }} : ({x}, {g}) -> {w}
            %k = tgraph.constant<0.5 : f32> : {w}
            {body.replace("TYPE", w)}
            tgraph.yield %r : {w}
          }}
          func.return %r : {w}
        }}""",
    )


BODIES = {
    "w - k * d": """%s = tgraph.multiply %k, %d : TYPE
                    %r = tgraph.subtract %v, %s : TYPE""",
    "d - w": "%r = tgraph.subtract %d, %v : TYPE",
    "w - d": "%r = tgraph.subtract %v, %d : TYPE",
    "-d + c * w": """%n = tgraph.negate %d : TYPE
                     %m = tgraph.multiply %c, %v : TYPE
                     %r = tgraph.add %n, %m : TYPE""",
    "(d + w) * c - 0.5": """%a = tgraph.add %v, %d : TYPE
                            %m = tgraph.multiply %a, %c : TYPE
                            %r = tgraph.subtract %m, %k : TYPE""",
    "w * d": "%r = tgraph.multiply %v, %d : TYPE",
    "(w + d) / w": """%a = tgraph.add %v, %d : TYPE
                      %r = tgraph.divide %a, %v : TYPE""",
}
FORMULAS = {
    "w - k * d": lambda w, d, c: w - 0.5 * d,
    "d - w": lambda w, d, c: d - w,
    "w - d": lambda w, d, c: w - d,
    "-d + c * w": lambda w, d, c: -d + c * w,
    "(d + w) * c - 0.5": lambda w, d, c: (d + w) * c - 0.5,
    "w * d": lambda w, d, c: w * d,
    "(w + d) / w": lambda w, d, c: (w + d) / w,
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("in_place", [False, True])
def test_update(body: str, native: bool, in_place: bool) -> None:
    rows, columns, depth = 700, 301, 33  # more than a block
    assert rows * columns > BLOCK
    op = update(rows, columns, depth, BODIES[body])
    assert 0 in op.overwritable()
    w = RNG.uniform(1, 2, (rows, columns)).astype(np.float32)
    x, g, c = normal(rows, depth), normal(depth, columns), normal(rows, columns)
    want = FORMULAS[body](*(a.astype(np.float64) for a in (w, x @ g, c)))
    memory = w.copy()
    out = memory if in_place else np.empty_like(w)
    scratch = Scratch("cpu:0")
    while True:
        pool = scratch.pool
        calls = compile_call(op, [memory, x, g, c], [out], scratch, native)
        if scratch.pool is pool:
            break
    for function, arguments in calls:
        function(*arguments)
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-4)
    if in_place:
        assert scratch.bytes <= 5 * BLOCK * 4  # much less than the whole result
    else:
        np.testing.assert_array_equal(memory, w)


def test_a_scaled_update_is_one_primitive_without_workspace() -> None:
    if not multiplies_packed():
        pytest.skip("oneDNN's products need a workspace on this processor")
    op = update(700, 301, 33, BODIES["w - k * d"])
    w, scratch = normal(700, 301), Scratch("cpu:0")
    inputs = [w, normal(700, 33), normal(33, 301), w]
    calls = compile_call(op, inputs, [w], scratch)
    assert len(calls) == 1
    assert scratch.bytes < 1 << 18


NARROW = [("bf16", "bf16", "f32"), ("bf16", "bf16", "bf16")]


def narrow(shape: Sequence[int]) -> np.ndarray:
    return normal(*shape).astype(pytest.importorskip("ml_dtypes").bfloat16)


@pytest.mark.parametrize(("lhs", "rhs", "out"), NARROW)
def test_products_of_narrow_elements(lhs: str, rhs: str, out: str) -> None:
    text = f"(tensor<9x70x{lhs}>, tensor<70x5x{rhs}>) -> tensor<9x5x{out}>"
    op = operation(
        DotGeneralOp,
        f"""func.func @main(%x: tensor<9x70x{lhs}>, %y: tensor<70x5x{rhs}>) {{
          %r = tgraph.dot_general %x, %y {{
            lhs_contracting_dimensions = array<i64: 1>,
            rhs_contracting_dimensions = array<i64: 0>}} : {text}
          func.return
        }}""",
    )
    check_narrow(op, [narrow((9, 70)), narrow((70, 5))])


@pytest.mark.parametrize(("lhs", "rhs", "out"), NARROW)
def test_convolutions_of_narrow_elements(lhs: str, rhs: str, out: str) -> None:
    image, kernel = f"tensor<2x9x9x8x{lhs}>", f"tensor<3x3x8x16x{rhs}>"
    one, zero = "array<i64: 1, 1>", "array<i64: 0, 0>"
    op = operation(
        ConvolutionOp,
        f"""func.func @main(%x: {image}, %y: {kernel}) {{
          %r = tgraph.convolution %x, %y {{dim_labels = "b01f_01io->b01f",
            window_strides = {one}, padding_low = {one}, padding_high = {zero},
            lhs_dilation = {one}, rhs_dilation = {one}}}
            : ({image}, {kernel}) -> tensor<2x8x8x16x{out}>
          func.return
        }}""",
    )
    check_narrow(op, [narrow((2, 9, 9, 8)), narrow((3, 3, 8, 16))])


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("is_flipped", [False, True])
@pytest.mark.parametrize("element", ["f16", "f32"])
def test_convolutions_are_computed_as_f32(
    monkeypatch, name: str, is_flipped: bool, element: str
) -> None:
    """Convolutions of f16, or of f16 and f32, are computed in f32, mostly in several
    blocks."""
    monkeypatch.setattr(widening, "BLOCK", 300)
    given, shapes = convolution(**CONVOLUTIONS[name])
    text = str(given.parent_op()).replace("f32", "f16")
    _, k, r = (tensor(shape).replace("f32", "f16") for shape in shapes)
    if element == "f32":
        text = text.replace(k, tensor(shapes[1])).replace(r, tensor(shapes[2]))
    op = operation(ConvolutionOp, text)
    inputs = [
        normal(*shape).astype(numpy_dtype(x.type.element_type))
        for shape, x in zip(shapes, op.inputs, strict=False)
    ]
    if is_flipped and op.batch_group_count.value.data == 1:
        spatial = [d for d, label in enumerate(op.labels[1]) if label.isdigit()]
        inputs[1] = np.flip(inputs[1], tuple(spatial))
    out = np.empty(shapes[2], numpy_dtype(op.result.type.element_type))
    assert run(lambda s: widening.calls_of(op, inputs, out, s))
    want = np.empty_like(out)
    run(lambda s: compile_call(op, inputs, [want], s, native=False))
    tolerance = 1e-5 if element == "f32" else 1e-2
    np.testing.assert_allclose(out, want, tolerance, tolerance * np.abs(want).max())


def check_narrow(op: Any, inputs: Sequence[np.ndarray]) -> None:
    """Compares an operation on narrow types with NumPy's, unless the processor has no
    instructions for oneDNN to use."""
    dtype = numpy_dtype(op.result.type.element_type)
    out = np.empty(op.result.type.get_shape(), dtype)
    made = run(lambda s: onednn.compiled(op, inputs, out, s))
    if made is None:
        pytest.skip("no instructions for this")
    want = np.empty_like(out)
    run(lambda s: compile_call(op, inputs, [want], s, native=False))
    got, want = out.astype(np.float64), want.astype(np.float64)
    tolerance = 1e-2 if dtype.itemsize == 2 else 1e-5
    np.testing.assert_allclose(got, want, tolerance, tolerance * np.abs(want).max())


def test_other_types_and_empty_sums_are_left_to_numpy() -> None:
    op, sizes = dot(((5, 7), (7, 3)))
    inputs = [np.ones((5, 7)), np.ones((7, 3))]
    assert onednn.compiled(op, inputs, np.empty(sizes), Scratch("cpu:0")) is None
    op, sizes = dot(((5, 0), (0, 3)))
    nothing = [np.empty((5, 0), np.float32), np.empty((0, 3), np.float32)]
    out = np.empty(sizes, np.float32)
    assert onednn.compiled(op, nothing, out, Scratch("cpu:0")) is None
    run(lambda s: compile_call(op, nothing, [out], s))
    assert not out.any()


@pytest.mark.parametrize(
    "setting", ["TENSORPLAN_NATIVE=0", "TENSORPLAN_ONEDNN=/nowhere.so"]
)
def test_onednn_can_be_turned_off_or_missing(setting: str) -> None:
    name, value = setting.split("=")
    code = """
from tensorplan.runtime.backends.onednn import backend
print(backend.is_available())
"""
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, name: value},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == "False\n"
