"""Tests NumPy kernels on rows and columns: sums by BLAS, extremes, tiled groups."""

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.parser import Parser

import tensorplan
from tensorplan.dialects.dtypes import Array, DType
from tensorplan.dialects.tgraph.structure import FusionOp
from tensorplan.runtime.backends.dispatch import compile_call
from tensorplan.runtime.backends.numpy.forms import TILE
from tensorplan.runtime.backends.numpy.reductions import BLOCK, LONGEST, reduced
from tensorplan.runtime.backends.numpy.rows import UNBUFFERED
from tensorplan.runtime.pool import Scratch

F32, F64, F16 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16)


def computed(function: np.ufunc, x: Array, axes: Sequence[int], out: Array) -> Array:
    scratch = Scratch("cpu:0")
    reduced(function, x, axes, out, scratch)
    calls = reduced(function, x, axes, out, scratch)
    scratch.pool.memory.fill(0xFF)
    for call, arguments in calls:
        call(*arguments)
    return out


def layouts(
    rng: np.random.Generator, shape: Sequence[int], dtype: DType
) -> list[Array]:
    """Returns arrays of the same shape in several memory layouts."""
    x = (rng.standard_normal(shape) + 0.25).astype(dtype)
    wide = np.zeros((*shape[:-1], 2 * shape[-1]), dtype)
    return [
        x,
        np.asfortranarray(x),
        x[::-1],
        wide[..., : shape[-1]],
        wide[..., ::2],
        np.broadcast_to(x[:1], shape),
    ]


@pytest.mark.parametrize("dtype", [F32, F64, F16, np.dtype(np.int32)])
@pytest.mark.parametrize(
    "shape", [(1, 7), (3, 1), (5, 9), (BLOCK + 1, 6), (4 * BLOCK + 3, 5), (3, 4, 5)]
)
def test_all_axes_of_all_layouts(shape: tuple[int, ...], dtype: DType) -> None:
    rng = np.random.default_rng(0)
    every = [
        (0,),
        (1,),
        (0, 1),
        *[(2,), (1, 2), (0, 2), (0, 1, 2)][: 4 * len(shape) - 8],
    ]
    for x in layouts(rng, shape, dtype):
        for axes in every:
            for function in (np.add, np.maximum, np.minimum):
                target = F32 if dtype == F16 and function is np.add else dtype
                want = function.reduce(x, axes, F64 if target.kind == "f" else None)
                out = np.full(want.shape, 77, target)
                spread = np.full((*want.shape, 2), 77, target)
                for to in (out, spread[..., 0]):
                    got = computed(function, x, axes, to)
                    tolerance = 2e-6 if target == F32 else 1e-13
                    np.testing.assert_allclose(got, want, tolerance, tolerance)
                assert (spread[..., 1] == 77).all()


def test_extremes_of_rows_keep_nan_and_infinities() -> None:
    x = np.zeros((4, 300), np.float32)
    x[0, 299], x[1, 0], x[2, 150], x[3] = np.nan, np.inf, -np.inf, -0.0
    largest = computed(np.maximum, x, (1,), np.empty(4, np.float32))
    np.testing.assert_array_equal(largest, [np.nan, np.inf, 0, 0])
    least = computed(np.minimum, x, (1,), np.empty(4, np.float32))
    np.testing.assert_array_equal(least, [np.nan, 0, -np.inf, 0])


@pytest.mark.parametrize("length", [LONGEST, LONGEST + 1, 3 * LONGEST, 1 << 20])
@pytest.mark.parametrize("axis", [0, 1])
def test_long_sums_are_accurate(length: int, axis: int) -> None:
    """Sums are accurate even if all rounding errors have the same direction."""
    rng = np.random.default_rng(0)
    for x in (rng.random((length, 3)) + 1, np.full((length, 3), 1.1)):
        x = x.astype(np.float32)
        x = x if axis == 0 else np.ascontiguousarray(x.T)
        got = computed(np.add, x, (axis,), np.empty(3, np.float32))
        np.testing.assert_allclose(got, x.sum(axis, np.float64), rtol=2e-6)


def layer_norm(rows: int, columns: int) -> FusionOp:
    full, line = f"{rows}x{columns}xf32", f"{columns}xf32"
    inner = [
        f'%0 = tgraph.reduce %x {{kind = "add", dimensions = array<i64: 1>}}'
        f" : (tensor<{full}>) -> tensor<{rows}xf32>",
        f"%1 = tgraph.constant<{float(columns)} : f32> : tensor<{rows}xf32>",
        f"%2 = tgraph.divide %0, %1 : tensor<{rows}xf32>",
        f"%3 = tgraph.broadcast_in_dim %2 {{broadcast_dimensions = array<i64: 0>}}"
        f" : (tensor<{rows}xf32>) -> tensor<{full}>",
        f"%4 = tgraph.subtract %x, %3 : tensor<{full}>",
        f"%5 = tgraph.broadcast_in_dim %s {{broadcast_dimensions = array<i64: 1>}}"
        f" : (tensor<{line}>) -> tensor<{full}>",
        f"%6 = tgraph.multiply %4, %5 : tensor<{full}>",
    ]
    body = "\n".join(inner)
    arguments = f"%a: memref<{full}>, %b: memref<{line}>, %c: memref<{full}>"
    text = f"""func.func @main({arguments}) {{
      tgraph.fusion(%x = %a, %s = %b) outs(%c)
          : (memref<{full}>, memref<{line}>) -> memref<{full}> {{
        {body}
        tgraph.yield %6 : tensor<{full}>
      }}
      func.return
    }}"""
    module = Parser(tensorplan.context(), text).parse_module()
    module.verify()
    (op,) = (op for op in module.walk() if isinstance(op, FusionOp))
    return op


@pytest.mark.parametrize(
    "shape",
    [
        (4, 10),
        (TILE // 100 * 3 + 1, 100),
        (TILE // UNBUFFERED * 2 + 1, UNBUFFERED),
        (3, TILE + 1),
    ],
)
@pytest.mark.parametrize("in_place", [False, True])
def test_rows_in_tiles(shape: tuple[int, int], in_place: bool) -> None:
    """All rows have the same scale, which changes between runs."""
    rng = np.random.default_rng(0)
    x, scale = (rng.standard_normal(s).astype(np.float32) for s in (shape, shape[1:]))
    out = x if in_place else np.empty_like(x)
    scratch = Scratch("cpu:0")
    op = layer_norm(*shape)
    compile_call(op, [x, scale], [out], scratch, native=False)
    calls = compile_call(op, [x, scale], [out], scratch, native=False)
    before = np.getbufsize()
    for _ in range(2):
        scale *= 2
        x[...] = rng.standard_normal(shape)
        wide = x.astype(np.float64)
        want = (wide - wide.mean(1, keepdims=True)) * scale
        for function, arguments in calls:
            function(*arguments)
        np.testing.assert_allclose(out, want, 1e-5, 1e-5)
    assert np.getbufsize() == before


def relu(size: int) -> FusionOp:
    text = f"""func.func @main(%a: memref<{size}xf32>, %b: memref<{size}xf32>) {{
      tgraph.fusion(%x = %a) outs(%b) : memref<{size}xf32> {{
        %0 = tgraph.constant<0.0 : f32> : tensor<{size}xf32>
        %1 = tgraph.maximum %x, %0 : tensor<{size}xf32>
        tgraph.yield %1 : tensor<{size}xf32>
      }}
      func.return
    }}"""
    module = Parser(tensorplan.context(), text).parse_module()
    (op,) = (op for op in module.walk() if isinstance(op, FusionOp))
    return op


@pytest.mark.parametrize("size", [1, 100, TILE, 3 * TILE + 5])
def test_extremes_of_a_constant(size: int) -> None:
    x = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    x[-1] = np.nan
    out = np.empty_like(x)
    calls = compile_call(relu(size), [x], [out], Scratch("cpu:0"), native=False)
    for function, arguments in calls:
        function(*arguments)
    np.testing.assert_array_equal(out, np.maximum(x, 0))
