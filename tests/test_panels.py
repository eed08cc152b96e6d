"""Products of matrices of any layout, panel by panel (native/panels.py)."""

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.dialects.tgraph.base import value_shape
from tensorplan.dialects.tgraph.reducing import ConvolutionOp, DotGeneralOp
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.runtime.backends import parts
from tensorplan.runtime.backends.native import panels
from tensorplan.runtime.backends.native.dot_products import registers
from tensorplan.runtime.executor import Executable
from tensorplan.runtime.pool import Scratch

SIZES = (2, 3, 2), (25, 7, 65), (13, 70, 33), (70, 40, 300), (40, 70, 300)
"""Rows, columns and sums. Panels are copied for many rows, in parts for many sums."""


def dot(sizes: Sequence[int], form: str, element: str) -> DotGeneralOp:
    rows, columns, sums = sizes
    x = [2, rows, sums] if form[0] == "N" else [2, sums, rows]
    y = [2, sums, columns] if form[1] == "N" else [2, columns, sums]
    of_x, of_y, of_z = (
        f"tensor<{'x'.join(map(str, shape))}x{element}>"
        for shape in (x, y, [2, rows, columns])
    )
    module = tensorplan.read(f"""
      func.func @main(%x: {of_x}, %y: {of_y}) -> {of_z} {{
        %z = tgraph.dot_general %x, %y {{
          lhs_batching_dimensions = array<i64: 0>,
          rhs_batching_dimensions = array<i64: 0>,
          lhs_contracting_dimensions = array<i64: {2 if form[0] == "N" else 1}>,
          rhs_contracting_dimensions = array<i64: {1 if form[1] == "N" else 2}>
        }} : ({of_x}, {of_y}) -> {of_z}
        func.return %z : {of_z}
      }}""")
    return next(op for op in module.walk() if isinstance(op, DotGeneralOp))


def multiply(
    sizes: Sequence[int], form: str, element: str = "f32", threads: int = 1
) -> None:
    """Compares a product of random matrices. The rows of all arrays have gaps."""
    op = dot(sizes, form, element)
    rng, dtype = np.random.default_rng(1), np.dtype(f"f{int(element[1:]) // 8}")
    shapes = [value_shape(x) for x in (*op.operands, op.result)]
    wider = [rng.standard_normal((*s[:-1], s[-1] + 3)).astype(dtype) for s in shapes]
    x, y, out = (array[..., :-3] for array in wider)
    beside = wider[2][..., -3:].copy()
    scratch = Scratch("cpu:0", threads)
    calls = panels.calls_of(op, [x, y], out, scratch)
    assert calls is not None
    for function, arguments in calls:
        function(*arguments)
    left = x.astype(np.float64) if form[0] == "N" else x.swapaxes(1, 2).astype("f8")
    want = left @ (y if form[1] == "N" else y.swapaxes(1, 2))
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(wider[2][..., -3:], beside)
    assert not scratch.peak


@pytest.mark.parametrize("form", ["NN", "NT", "TN", "TT"])
def test_products_of_all_layouts(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panels, "LEAST", 1)
    for sizes in SIZES:
        multiply(sizes, form)
    multiply((25, 70, 65), form, "f64")


def test_threads_divide_columns_or_rows() -> None:
    multiply((40, 512, 512), "NT", threads=2)
    multiply((512, 33, 512), "TN", threads=2)


@pytest.mark.parametrize("bytes", [16, 32])
def test_narrower_registers(monkeypatch: pytest.MonkeyPatch, bytes: int) -> None:
    if registers()[0] < bytes:
        pytest.skip("the processor has no such registers")
    monkeypatch.setattr(panels, "registers", lambda: (bytes, 16))
    panels._text.cache_clear()  # pyright: ignore[reportPrivateUsage]
    for form in ("NT", "TN"):
        multiply((25, 17, 33), form)
    panels._text.cache_clear()  # pyright: ignore[reportPrivateUsage]


def test_large_and_small_products_and_vectors_are_for_others() -> None:
    for sizes in ((1024, 1024, 64), (8, 8, 8), (4096, 1, 64)):
        op = dot(sizes, "NN", "f32")
        shapes = [value_shape(x) for x in (*op.operands, op.result)]
        x, y, out = (np.empty(shape, np.float32) for shape in shapes)
        assert panels.calls_of(op, [x, y], out, Scratch("cpu:0")) is None


CONVOLUTIONS = {
    "forward": ("bf01_oi01->bf01", (3, 20, 6, 7), (30, 20, 1, 1), (3, 30, 6, 7)),
    "by the data": ("bf01_io01->bf01", (3, 20, 6, 7), (20, 30, 1, 1), (3, 30, 6, 7)),
    "signals": ("fb0_oi0->bf0", (20, 3, 42), (30, 20, 1), (3, 30, 42)),
    "by the weights": ("fb01_io01->bf01", (3, 20, 6, 7), (3, 30, 6, 7), (20, 30, 1, 1)),
    "transposed": ("fb01_io01->fb01", (3, 20, 6, 7), (3, 30, 6, 7), (30, 20, 1, 1)),
}


def convolution(labels: str, shapes: Sequence[Sequence[int]], bias="") -> ModuleOp:
    """A convolution of two arguments; with a third one of this name added to it."""
    x, w, out = (f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in shapes)
    rank = len(shapes[0]) - 2
    zeros, ones = (f"array<i64: {', '.join([n] * rank)}>" for n in "01")
    added = f"%r = tgraph.add %z, {bias} : {out}" if bias else ""
    return tensorplan.read(f"""
      func.func @main(%x: {x}, %w: {w}{f", {bias}: {out}" if bias else ""}) -> {out} {{
        %z = tgraph.convolution %x, %w {{
          dim_labels = "{labels}", window_strides = {ones}, padding_low = {zeros},
          padding_high = {zeros}, lhs_dilation = {ones}, rhs_dilation = {ones}
        }} : ({x}, {w}) -> {out}
        {added}
        func.return {"%r" if bias else "%z"} : {out}
      }}""")


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("threads", [1, 2])
def test_convolutions_that_multiply_planes(
    name: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gradient of the weights adds up a product for each image."""
    monkeypatch.setattr(parts, "GRAIN", 100)
    labels, *shapes = CONVOLUTIONS[name]
    module = convolution(labels, shapes)
    op = next(op for op in module.walk() if isinstance(op, ConvolutionOp))
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype("f4") for shape in shapes]
    scratch = Scratch("cpu:0", threads)
    calls = panels.calls_of(op, arrays[:2], arrays[2], scratch)
    assert calls is not None
    for function, arguments in calls:
        function(*arguments)
    (want,) = run_reference(module, arrays[:2])
    np.testing.assert_allclose(arrays[2], want, rtol=1e-4, atol=1e-4)
    assert not scratch.peak


PROGRAMS = {
    "row": ("tensor<20xf32>", "[1]", "add"),
    "column": ("tensor<30xf32>", "[0]", "multiply"),
    "matrix": ("tensor<30x20xf32>", "[0, 1]", "subtract"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_sums_and_products_follow_without_memory(name: str) -> None:
    side, dims, kind = PROGRAMS[name]
    module = tensorplan.read(f"""
      func.func @main(%x: tensor<300x30xf32>, %y: tensor<300x20xf32>, %s: {side},
                      %w: !tgraph.variable<tensor<30x20xf32>>) {{
        %z = tgraph.dot_general %x, %y {{
          lhs_batching_dimensions = array<i64>, rhs_batching_dimensions = array<i64>,
          lhs_contracting_dimensions = array<i64: 0>,
          rhs_contracting_dimensions = array<i64: 0>
        }} : (tensor<300x30xf32>, tensor<300x20xf32>) -> tensor<30x20xf32>
        %b = tgraph.broadcast_in_dim %s {{
          broadcast_dimensions = array<i64: {dims[1:-1]}>
        }} : ({side}) -> tensor<30x20xf32>
        %r = tgraph.{kind} %z, %b : tensor<30x20xf32>
        %v = tgraph.read %w : tensor<30x20xf32>
        %u = tgraph.subtract %v, %r : tensor<30x20xf32>
        tgraph.assign %w, %u : tensor<30x20xf32>
        func.return
      }}""")
    run = tensorplan.compile(module, threads=1)
    assert isinstance(run, Executable)
    assert not run.pools
    rng = np.random.default_rng(0)
    x, y, s, w = (rng.standard_normal(i.shape).astype("f4") for i in run.inputs)
    by = s[:, None] if name == "column" else s
    z = x.T.astype("f8") @ y
    want = w - {"add": z + by, "multiply": z * by, "subtract": z - by}[kind]
    (result,) = run(x, y, s, w)
    np.testing.assert_allclose(result, want, rtol=1e-4, atol=1e-4)


STACKS = {
    "left": ((16, 12, 9), (12, 10), 1, 0),
    "right": ((12, 10), (16, 12, 9), 0, 1),
    "both": ((6, 12, 9), (8, 12, 10), 1, 1),
    "inner columns": ((9, 16, 12), (10, 12), 2, 1),
    "inner rows": ((8, 12, 20, 9), (12, 10), 1, 0),
}


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("threads", [1, 2])
def test_operands_that_are_several_matrices(
    name: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Free dimensions on both sides of the sums are not copied into one."""
    monkeypatch.setattr(parts, "GRAIN", 100)
    left, right, *sums = STACKS[name]
    sizes = [n for s, d in zip((left, right), sums, strict=True) for n in _free(s, d)]
    x, y, z = (f"tensor<{'x'.join(map(str, s))}xf32>" for s in (left, right, sizes))
    module = tensorplan.read(f"""
      func.func @main(%x: {x}, %y: {y}, %b: {z}) -> {z} {{
        %z = tgraph.dot_general %x, %y {{
          lhs_batching_dimensions = array<i64>, rhs_batching_dimensions = array<i64>,
          lhs_contracting_dimensions = array<i64: {sums[0]}>,
          rhs_contracting_dimensions = array<i64: {sums[1]}>
        }} : ({x}, {y}) -> {z}
        %r = tgraph.add %z, %b : {z}
        func.return %r : {z}
      }}""")
    run = tensorplan.compile(module, threads=threads)
    assert isinstance(run, Executable)
    assert not run.pools
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(x.shape).astype("f4") for x in run.inputs]
    (result,) = run(*arrays)
    want = np.tensordot(*arrays[:2], axes=([sums[0]], [sums[1]])) + arrays[2]
    np.testing.assert_allclose(result, want, rtol=1e-4, atol=1e-4)


def test_only_the_smaller_operand_is_copied() -> None:
    """The operands have their sums in different orders."""
    x, y, z = "tensor<40x8x10xf32>", "tensor<10x8x16xf32>", "tensor<40x16xf32>"
    module = tensorplan.read(f"""
      func.func @main(%x: {x}, %y: {y}) -> {z} {{
        %z = tgraph.dot_general %x, %y {{
          lhs_batching_dimensions = array<i64>, rhs_batching_dimensions = array<i64>,
          lhs_contracting_dimensions = array<i64: 2, 1>,
          rhs_contracting_dimensions = array<i64: 0, 1>
        }} : ({x}, {y}) -> {z}
        func.return %z : {z}
      }}""")
    run = tensorplan.compile(module, threads=1)
    assert isinstance(run, Executable)
    a, b = (
        np.random.default_rng(0).standard_normal(i.shape).astype("f4")
        for i in run.inputs
    )
    assert [pool.bytes for pool in run.pools] == [b.nbytes]
    want = np.einsum("icb,bcj->ij", a, b)
    np.testing.assert_allclose(run(a, b)[0], want, rtol=1e-4, atol=1e-4)


def _free(shape: Sequence[int], summed: int) -> list[int]:
    return [size for d, size in enumerate(shape) if d != summed]


def test_operands_after_a_product_have_its_layout() -> None:
    """The result has features before images; the product, images before features."""
    shapes = (3, 16, 12, 12), (8, 16, 1, 1), (8, 3, 12, 12)
    module = convolution("bf01_oi01->fb01", shapes, bias="%b")
    run = tensorplan.compile(module, threads=1)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(x.shape).astype("f4") for x in run.inputs]
    (want,) = run_reference(module, arrays)
    np.testing.assert_allclose(run(*arrays)[0], want, rtol=1e-4, atol=1e-4)
