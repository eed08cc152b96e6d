"""Tests that native contractions of 8-bit integers are exact."""

from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import tensorplan
from tensorplan.dialects.tgraph.fusing import CONTRACTIONS
from tensorplan.dialects.tgraph.structure import FusionOp
from tensorplan.runtime.backends.dispatch import compile_call
from tensorplan.runtime.backends.jit import llvm
from tensorplan.runtime.backends.native import backend as native
from tensorplan.runtime.backends.native import dot_products, functions, integers
from tensorplan.runtime.executor import Executable
from tensorplan.runtime.pool import Scratch
from tensorplan.runtime.prepacking import Prepacked

pytestmark = pytest.mark.skipif(not llvm.is_available(), reason="needs llvmlite")

RNG = np.random.default_rng(0)
PROCESSORS = {
    "SSE": (16, 16, False),
    "AVX2": (32, 16, False),
    "AVX-VNNI": (32, 16, True),
    "AVX-512": (64, 32, False),
    "AVX-512 VNNI": (64, 32, True),
}
"""The bytes of a register, the number of registers, and whether one instruction adds
four products."""

TYPES = list(product(("ui8", "i8"), repeat=2))


@pytest.fixture(
    autouse=True,
    params=[
        "AVX2",
        "AVX-512 VNNI",
        *(
            pytest.param(name, marks=pytest.mark.thorough)
            for name in ("SSE", "AVX-VNNI", "AVX-512")
        ),
    ],
)
def processor(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiles native code as for one of `PROCESSORS`."""
    size, count, has_four = PROCESSORS[request.param]
    monkeypatch.setattr(dot_products, "registers", lambda: (size, count))
    if has_four and not dot_products.adds_four.__wrapped__():
        pytest.skip("the processor has no such instruction")
    monkeypatch.setattr(integers, "adds_four", lambda: has_four)


def numbers(kind: str, shape: Sequence[int]) -> Any:
    """Returns random integers, many of them extreme, so that sums exceed 16 bits."""
    info = np.iinfo(kind.replace("i", "int"))
    x = RNG.integers(info.min, info.max, shape, info.dtype, endpoint=True)
    x[RNG.random(shape) < 0.5] = info.max
    x[RNG.random(shape) < 0.2] = info.min
    return x


def tensor(kind: str, shape: Sequence[int]) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{kind}>"


def array(values: Sequence[int]) -> str:
    return f"array<i64{': ' if values else ''}{', '.join(map(str, values))}>"


def parsed(text: str, kinds: Any) -> Any:
    module = Parser(tensorplan.context(), text).parse_module()
    module.verify()
    return next(op for op in module.walk() if isinstance(op, kinds))


def computed(
    op: Any, inputs: Sequence[Any], out: Any, constant: bool, threads: int = 1
) -> Scratch:
    """Computes `out` by native code. Returns the scratch memory that was used."""
    scratch = Scratch("cpu:0", threads)
    if constant:
        memory = inputs[1].base if inputs[1].base is not None else inputs[1]
        scratch.constants = [Prepacked(memory)]
    while True:
        pool = scratch.pool
        scratch.reset()
        calls = native.calls_of(op, inputs, [out], scratch)
        if scratch.pool is pool:
            break
    assert calls is not None
    for function, arguments in calls:
        function(*arguments)
    return scratch


def check(op: Any, inputs: Sequence[Any], out: Any, constant: bool) -> None:
    want = np.empty_like(out)
    scratch = Scratch("cpu:0")
    while True:
        pool = scratch.pool
        calls = compile_call(op, inputs, [want], scratch, native=False)
        if scratch.pool is pool:
            break
    for function, arguments in calls:
        function(*arguments)
    computed(op, inputs, out, constant)
    np.testing.assert_array_equal(out, want)


def dot(kinds: Sequence[str], shapes: Any, batch: Any, contracting: Any) -> Any:
    sizes = [shapes[0][d] for d in batch[0]]
    for shape, b, c in zip(shapes, batch, contracting, strict=True):
        sizes += [size for d, size in enumerate(shape) if d not in (*b, *c)]
    types = [tensor(*x) for x in zip((*kinds, "i32"), (*shapes, sizes), strict=True)]
    attributes = ", ".join(
        f"{side}_{what}_dimensions = {array(dims[number])}"
        for what, dims in (("batching", batch), ("contracting", contracting))
        for number, side in enumerate(("lhs", "rhs"))
    )
    text = f"""func.func @main(%x: {types[0]}, %y: {types[1]}) -> {types[2]} {{
      %r = tgraph.dot_general %x, %y {{{attributes}}}
        : ({types[0]}, {types[1]}) -> {types[2]}
      func.return %r : {types[2]}
    }}"""
    return parsed(text, CONTRACTIONS), np.full(sizes, -1, np.int32)


DOTS = {
    "one": (((1, 1), (1, 1)), ((), ()), ((1,), (0,))),
    "rows and columns left": (((13, 70), (70, 37)), ((), ()), ((1,), (0,))),
    "odd": (((64, 33), (33, 65)), ((), ()), ((1,), (0,))),
    "transposed": (((33, 9), (40, 33)), ((), ()), ((0,), (1,))),
    "a vector": (((1, 90), (90, 100)), ((), ()), ((1,), (0,))),
    "vectors": (((90,), (90,)), ((), ()), ((0,), (0,))),
    "in batches": (((2, 5, 3, 8), (2, 9, 3, 8)), ((0, 2), (0, 2)), ((3,), (3,))),
    "of several sums": (((2, 5, 4), (4, 5, 9)), ((), ()), ((2, 1), (0, 1))),
    "of many columns": (((70, 16), (16, 700)), ((), ()), ((1,), (0,))),
    "of many rows": (((900, 16), (16, 20)), ((), ()), ((1,), (0,))),
}


@pytest.mark.parametrize("kinds", TYPES)
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("name", DOTS)
def test_products(kinds: Sequence[str], constant: bool, name: str) -> None:
    shapes, batch, contracting = DOTS[name]
    op, out = dot(kinds, shapes, batch, contracting)
    check(op, [numbers(*x) for x in zip(kinds, shapes, strict=True)], out, constant)


def test_products_in_strided_memory() -> None:
    op, _ = dot(("ui8", "i8"), ((6, 5), (5, 40)), ((), ()), ((1,), (0,)))
    x, y = numbers("ui8", (12, 10))[::2, ::2], numbers("i8", (40, 10)).T[::2]
    check(op, [x, y], np.zeros((40, 6), np.int32).T, constant=False)


CONVOLUTIONS = {
    "plain": dict(),
    "strided": dict(strides=(2, 2), low=(1, 0), high=(1, 1)),
    "strided, padded on one side": dict(strides=(2, 3), low=(0, 2), high=(2, 0)),
    "unpadded": dict(low=(0, 0), high=(0, 0)),
    "cropped": dict(low=(-1, 1), high=(1, -2)),
    "mostly padding": dict(image=(1, 2, 2, 4), low=(3, 3), high=(3, 3)),
    "dilated": dict(dilation=(2, 2)),
    "grouped": dict(kernel=(3, 3, 2, 6), groups=2),
    "groups of many": dict(image=(2, 6, 5, 20), kernel=(3, 2, 10, 34), groups=2),
    "depthwise": dict(image=(2, 9, 8, 70), kernel=(3, 3, 1, 70), groups=70),
    "depthwise, strided": dict(
        image=(1, 9, 8, 19), kernel=(3, 3, 1, 19), groups=19, strides=(2, 2)
    ),
    "depthwise, strided and dilated": dict(
        image=(1, 9, 19, 19),
        kernel=(3, 3, 1, 19),
        groups=19,
        strides=(1, 3),
        dilation=(1, 3),
    ),
    "depthwise, unpadded": dict(
        image=(1, 9, 8, 19),
        kernel=(3, 3, 1, 19),
        groups=19,
        low=(0, 0),
        high=(0, 0),
    ),
    "depthwise, dilated": dict(
        image=(1, 9, 8, 19), kernel=(2, 3, 1, 19), groups=19, dilation=(1, 2)
    ),
    "depthwise, along the first": dict(
        image=(1, 9, 8, 19), kernel=(5, 1, 1, 19), groups=19
    ),
    "depthwise, several": dict(kernel=(3, 3, 1, 8), groups=4),
    "small groups": dict(image=(1, 5, 5, 60), kernel=(3, 3, 2, 60), groups=30),
    "one by one": dict(kernel=(1, 1, 4, 40), low=(0, 0), high=(0, 0)),
    "one by one, strided": dict(
        kernel=(1, 1, 4, 6), strides=(2, 3), low=(1, 1), high=(2, 2)
    ),
    "three colors": dict(image=(1, 20, 19, 3), kernel=(3, 3, 3, 32), strides=(2, 2)),
    "of one feature": dict(image=(1, 20, 9, 1), kernel=(10, 4, 1, 9)),
    "of one feature, dilated": dict(
        image=(1, 20, 9, 1), kernel=(3, 3, 1, 9), dilation=(1, 2)
    ),
    "channels first": dict(
        labels="bf01_oi01->bf01", image=(2, 4, 9, 8), kernel=(6, 4, 3, 3)
    ),
    "ONNX's kernel": dict(
        labels="b01f_oi01->b01f", image=(1, 9, 8, 3), kernel=(34, 3, 3, 3)
    ),
    "one dimension": dict(labels="b0f_0io->b0f", image=(2, 300, 4), kernel=(3, 4, 20)),
    "three dimensions": dict(
        labels="b012f_012io->b012f", image=(2, 5, 6, 7, 3), kernel=(3, 3, 3, 3, 4)
    ),
    "large": dict(image=(1, 30, 40, 24), kernel=(3, 3, 24, 48)),
}


def convolution(
    kinds: Sequence[str],
    labels: str = "b01f_01io->b01f",
    image: Sequence[int] = (2, 9, 8, 4),
    kernel: Sequence[int] = (3, 3, 4, 6),
    strides: Any = None,
    low: Any = None,
    high: Any = None,
    dilation: Any = None,
    groups: int = 1,
) -> Any:
    rank = len(image) - 2
    ones = (1,) * rank
    low, high = low or ones, high or ones
    strides, dilation = strides or ones, dilation or ones
    of_image, rest = labels.split("_")
    of_kernel, of_out = rest.split("->")
    sizes = {"b": image[of_image.index("b")], "f": kernel[of_kernel.index("o")]}
    for d in range(rank):
        reach = (kernel[of_kernel.index(str(d))] - 1) * dilation[d]
        size = image[of_image.index(str(d))] + low[d] + high[d] - reach - 1
        sizes[str(d)] = size // strides[d] + 1
    out = [sizes[label] for label in of_out]
    types = [
        tensor(*x) for x in zip((*kinds, "i32"), (image, kernel, out), strict=True)
    ]
    text = f"""func.func @main(%x: {types[0]}, %y: {types[1]}) -> {types[2]} {{
      %r = tgraph.convolution %x, %y {{
        feature_group_count = {groups} : i64, dim_labels = "{labels}",
        window_strides = {array(strides)}, padding_low = {array(low)},
        padding_high = {array(high)}, lhs_dilation = {array(ones)},
        rhs_dilation = {array(dilation)}
      }} : ({types[0]}, {types[1]}) -> {types[2]}
      func.return %r : {types[2]}
    }}"""
    return parsed(text, CONTRACTIONS), np.full(out, -1, np.int32), image, kernel


@pytest.mark.parametrize("kinds", [*TYPES[1:3], ("ui8", "i16")])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(kinds: Sequence[str], constant: bool, name: str) -> None:
    op, out, *shapes = convolution(kinds, **CONVOLUTIONS[name])
    check(op, [numbers(*x) for x in zip(kinds, shapes, strict=True)], out, constant)


def test_a_reversed_kernel() -> None:
    op, out, image, kernel = convolution(("ui8", "i8"))
    x, y = numbers("ui8", image), np.flip(numbers("i8", kernel), (0, 1))
    check(op, [x, y], out, constant=False)


@pytest.mark.parametrize("name", ["large", "depthwise", "one dimension"])
def test_threads_share_a_convolution(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tensorplan.runtime.backends.parts.GRAIN", 10)
    op, out, *shapes = convolution(("ui8", "i8"), **CONVOLUTIONS[name])
    inputs = [numbers(*x) for x in zip(("ui8", "i8"), shapes, strict=True)]
    check(op, inputs, out, constant=True)
    shared = np.empty_like(out)
    assert computed(op, inputs, shared, constant=True, threads=3).peak
    np.testing.assert_array_equal(shared, out)


def test_scratch_memory_holds_only_a_tile() -> None:
    """Neither the packed image nor the sums are stored as a whole."""
    image, kernel = (1, 112, 112, 96), (3, 3, 1, 96)
    op, out, *shapes = convolution(("ui8", "i8"), image=image, kernel=kernel, groups=96)
    inputs = [numbers(*x) for x in zip(("ui8", "i8"), shapes, strict=True)]
    scratch = computed(op, inputs, out, constant=True)
    assert scratch.peak <= 8 * integers.LARGEST * 4


def test_a_constant_kernel_is_packed_once() -> None:
    op, out = dot(("ui8", "i8"), ((9, 72), (72, 37)), ((), ()), ((1,), (0,)))
    inputs = [numbers("ui8", (9, 72)), numbers("i8", (72, 37))]
    scratch, constant = Scratch("cpu:0"), Prepacked(inputs[1])
    scratch.constants = [constant]
    native.calls_of(op, inputs, [out], scratch)
    calls = native.calls_of(op, inputs, [out], scratch)
    assert calls is not None
    # Fours of the left side are read in place. Pairs are packed by another call.
    assert len(calls) == (1 if integers.adds_four() else 2)
    columns = -(-37 // dot_products.panel()) * dot_products.panel()
    assert constant.bytes == 72 * columns  # packed as 8-bit integers


QUANTIZED = """func.func @main(%x: tensor<1x20x10xui8>, %w: tensor<10x20xi8>,
    %s: tensor<20xf32>, %z: tensor<1x20x20xi32>) -> tensor<1x20x20xui8> {
  %r = tgraph.fusion(%a = %x, %b = %w, %t = %s, %y = %z)
      : (tensor<1x20x10xui8>, tensor<10x20xi8>, tensor<20xf32>, tensor<1x20x20xi32>)
      -> tensor<1x20x20xui8> {
    %d = tgraph.dot_general %a, %b {lhs_contracting_dimensions = array<i64: 2>,
      rhs_contracting_dimensions = array<i64: 0>}
      : (tensor<1x20x10xui8>, tensor<10x20xi8>) -> tensor<1x20x20xi32>
    %e = tgraph.subtract %d, %y : tensor<1x20x20xi32>
    %f = tgraph.convert %e : (tensor<1x20x20xi32>) -> tensor<1x20x20xf32>
    %g = tgraph.broadcast_in_dim %t {broadcast_dimensions = array<i64: 2>}
      : (tensor<20xf32>) -> tensor<1x20x20xf32>
    %h = tgraph.multiply %f, %g : tensor<1x20x20xf32>
    %i = tgraph.convert %h : (tensor<1x20x20xf32>) -> tensor<1x20x20xui8>
    tgraph.yield %i : tensor<1x20x20xui8>
  }
  func.return %r : tensor<1x20x20xui8>
}"""


def test_an_epilogue_runs_on_tiles() -> None:
    op = parsed(QUANTIZED, FusionOp)
    scales = RNG.random(20).astype(np.float32) / 1000
    zero = RNG.integers(-99, 99, (1, 20, 20), np.int32)
    inputs = [numbers("ui8", (1, 20, 10)), numbers("i8", (10, 20)), scales, zero]
    out = np.empty((1, 20, 20), np.uint8)
    computed(op, inputs, out, constant=True)
    sums = inputs[0].astype(int) @ inputs[1].astype(int) - zero
    want = np.clip(np.trunc(sums.astype(np.float32) * scales), 0, 255)
    np.testing.assert_array_equal(out, want)


def test_tiles_of_one_layout_share_a_loop_nest(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[Any]()
    graph_of = functions.graph_of

    def noted(*arguments: Any) -> Any:
        made.append(arguments)
        return graph_of(*arguments)

    monkeypatch.setattr(functions, "graph_of", noted)
    op = parsed(QUANTIZED.replace("1x20x", "1x2000x"), FusionOp)
    rng = np.random.default_rng(1)
    inputs = [
        numbers("ui8", (1, 2000, 10)),
        numbers("i8", (10, 20)),
        rng.random(20).astype(np.float32) / 1000,
        rng.integers(-99, 99, (1, 2000, 20), np.int32),
    ]
    out = np.empty((1, 2000, 20), np.uint8)
    scratch = computed(op, inputs, out, constant=True)
    del made[:]
    scratch.reset()
    native.calls_of(op, inputs, [out], scratch)
    of_results = [x for *_, x in made if x.dtype == out.dtype and x.shape[-1] == 20]
    assert len(of_results) == 1 < out.size // integers.LARGEST
    sums = inputs[0].astype(int) @ inputs[1].astype(int) - inputs[3]
    want = np.clip(np.trunc(sums.astype(np.float32) * inputs[2]), 0, 255)
    np.testing.assert_array_equal(out, want)


def test_other_contractions_have_no_integer_form() -> None:
    op, out = dot(("ui8", "i8"), ((5, 7), (7, 3)), ((), ()), ((1,), (0,)))
    wide = [np.ones((5, 7), np.int32), np.ones((7, 3), np.int8)]
    made = integers.calls_of(op, wide, {}, out, Scratch("cpu:0"), lambda *_: [])
    assert made is None


@cache
def network(name: str, way: str) -> tuple[ModuleOp, list[Any], Any]:
    """Returns the plan and the arguments of a network, and its result by NumPy. They
    are the same for all processors."""
    import quantized_models

    network = quantized_models.NETWORKS[name](17, large=False)
    with TemporaryDirectory() as folder:
        data = quantized_models.quantized(network, way, Path(folder))
    planned = tensorplan.plan(tensorplan.from_onnx(data))
    arrays = [quantized_models.images(network, 3), *planned.parameters.values()]
    (want,) = Executable(planned.module, native=False)(*arrays)
    return planned.module, arrays, want


@pytest.mark.parametrize("way", ["qdq", "qdq-channels"])
@pytest.mark.parametrize("name", ["bert", "keywords", "mobilenet"])
def test_networks_have_the_values_of_numpy(name: str, way: str) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("quantized_models")
    planned, arrays, want = network(name, way)
    (got,) = Executable(planned, native=True)(*arrays)
    exact = "bert" not in name  # BERT's softmax and norms compute floats
    np.testing.assert_allclose(got, want, 0, 0 if exact else 0.05)
