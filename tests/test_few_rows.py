"""Products of a few rows and a transposed matrix (native/few_rows.py)."""

from typing import Any

import numpy as np
import pytest

import tensorplan
from tensorplan.dialects.tgraph.reducing import DotGeneralOp
from tensorplan.runtime.backends.native import few_rows
from tensorplan.runtime.backends.native.dot_products import registers
from tensorplan.runtime.pool import Scratch

SIZES = [
    *((4, 4, 2), (5, 7, 3), (16, 64, 16), (7, 65, 17), (24, 9, 48), (32, 64, 33)),
    (6, 100, 70),
]


def dot(batch: int, rows: int, columns: int, sums: int, element: str) -> DotGeneralOp:
    x, y, z = (
        f"tensor<{batch}x{n}x{m}x{element}>"
        for n, m in ((rows, sums), (columns, sums), (rows, columns))
    )
    module = tensorplan.read(f"""
      func.func @main(%x: {x}, %y: {y}) -> {z} {{
        %z = tgraph.dot_general %x, %y {{
          lhs_batching_dimensions = array<i64: 0>,
          rhs_batching_dimensions = array<i64: 0>,
          lhs_contracting_dimensions = array<i64: 2>,
          rhs_contracting_dimensions = array<i64: 2>}} : ({x}, {y}) -> {z}
        func.return %z : {z}
      }}""")
    (op,) = (op for op in module.walk() if isinstance(op, DotGeneralOp))
    return op


def multiply(
    sizes: tuple[int, int, int], element: str = "f32", threads: int = 1, batch: int = 2
) -> None:
    """Compares the product of random matrices, which lie in larger arrays."""
    rows, columns, sums = sizes
    rng, dtype = np.random.default_rng(sums), np.dtype(f"f{int(element[1:]) // 8}")
    wider = [
        rng.standard_normal((batch, n, m + 3)).astype(dtype)
        for n, m in ((rows, sums), (columns, sums), (rows, columns))
    ]
    x, y, out = (array[..., :-3] for array in wider)
    beside = wider[2][..., -3:].copy()
    scratch = Scratch("cpu:0", threads)
    op = dot(batch, rows, columns, sums, element)
    calls = few_rows.calls_of(op, [x, y], out, scratch)
    assert calls is not None
    for function, arguments in calls:
        function(*arguments)
    want = x.astype(np.float64) @ y.astype(np.float64).swapaxes(1, 2)
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(wider[2][..., -3:], beside)
    assert not scratch.peak


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_products_of_all_sizes(element: str) -> None:
    for sizes in SIZES:
        multiply(sizes, element)


def test_threads_divide_columns_or_batches() -> None:
    multiply((24, 256, 512), threads=2)
    multiply((4, 64, 700), threads=2, batch=8)


@pytest.mark.parametrize("bytes", [16, 32])
def test_narrower_registers(monkeypatch: pytest.MonkeyPatch, bytes: int) -> None:
    if registers()[0] < bytes:
        pytest.skip("the processor has no such registers")
    monkeypatch.setattr(few_rows, "registers", lambda: (bytes, 16))
    few_rows._text.cache_clear()  # pyright: ignore[reportPrivateUsage]
    for element in ("f32", "f64"):
        multiply((7, 65, 17), element)
    few_rows._text.cache_clear()  # pyright: ignore[reportPrivateUsage]


def test_more_rows_are_for_a_library() -> None:
    rng: Any = np.random.default_rng(0)
    scratch = Scratch("cpu:0")
    for rows, columns, is_fast in ((24, 96, True), (25, 96, False), (32, 64, True)):
        x, y = (rng.standard_normal((1, n, 32)).astype("f4") for n in (rows, columns))
        out = np.empty((1, rows, columns), np.float32)
        op = dot(1, rows, columns, 32, "f32")
        calls = few_rows.calls_of(op, [x, y], out, scratch)
        assert (calls is not None) is is_fast
