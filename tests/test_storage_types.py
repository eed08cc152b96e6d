"""Tests storage types (f8, f6, f4, i4, i2), which are moved, converted, and computed
with as f32 or i8.

The expected values are those of ml_dtypes in NumPy, which rounds after each operation.
"""

from pathlib import Path

import numpy as np
import pytest
from upstream import TOOLS, run_natively
from xdsl.ir import Attribute

import tensorplan
from tensorplan.dialects.dtypes import numpy_dtype
from tensorplan.dialects.tgraph.elements import computed_type, holds, is_stored
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.frontends.mlir_text import parse_attribute
from tensorplan.passes import driver
from tensorplan.passes.tgraph.gradient import TGraphGradient
from tensorplan.runtime.executor import Executable

ml_dtypes = pytest.importorskip("ml_dtypes")

FLOATS = (
    *("f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E3M4", "f8E4M3", "f8E4M3B11FNUZ"),
    *("f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ", "f8E8M0FNU"),
)
INTEGERS = "i2", "ui2", "i4", "ui4"
REST = sorted({*FLOATS, *INTEGERS} - {"f8E4M3FN", "ui4"})

PROGRAM = """
func.func @main(%x: tensor<4x6xT>, %at: tensor<i32>) -> (tensor<6x9xT>, tensor<2x6xT>,
    tensor<8x6xT>, tensor<4x6xT>, tensor<4x4xT>, tensor<4x4xf32>, tensor<4xT>,
    tensor<4x6xf16>, tensor<4x6xi1>, tensor<4x6xT>, tensor<4x6xT>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<ONE> : tensor<T>
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x6xT>) -> tensor<6x4xT>
  %0 = stablehlo.pad %t, %one, low = [0, 2], high = [0, 3], interior = [0, 0]
    : (tensor<6x4xT>, tensor<T>) -> tensor<6x9xT>
  %1 = stablehlo.dynamic_slice %x, %at, %zero, sizes = [2, 6]
    : (tensor<4x6xT>, tensor<i32>, tensor<i32>) -> tensor<2x6xT>
  %2 = stablehlo.concatenate %x, %x, dim = 0
    : (tensor<4x6xT>, tensor<4x6xT>) -> tensor<8x6xT>
  %3 = stablehlo.multiply %x, %x : tensor<4x6xT>
  %4 = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0]
    : (tensor<4x6xT>, tensor<6x4xT>) -> tensor<4x4xT>
  %5 = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0]
    : (tensor<4x6xT>, tensor<6x4xT>) -> tensor<4x4xf32>
  %6 = stablehlo.reduce(%x init: %one) applies stablehlo.maximum across dimensions = [1]
    : (tensor<4x6xT>, tensor<T>) -> tensor<4xT>
  %7 = stablehlo.convert %x : (tensor<4x6xT>) -> tensor<4x6xf16>
  %8 = stablehlo.compare GT, %x, %3 : (tensor<4x6xT>, tensor<4x6xT>) -> tensor<4x6xi1>
  %9 = stablehlo.select %8, %x, %3 : tensor<4x6xi1>, tensor<4x6xT>
  %10 = "stablehlo.sort"(%x) <{dimension = 1 : i64}> ({
    ^bb0(%a: tensor<T>, %b: tensor<T>):
      %less = stablehlo.compare LT, %a, %b : (tensor<T>, tensor<T>) -> tensor<i1>
      stablehlo.return %less : tensor<i1>
  }) : (tensor<4x6xT>) -> tensor<4x6xT>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10 : tensor<6x9xT>, tensor<2x6xT>,
    tensor<8x6xT>, tensor<4x6xT>, tensor<4x4xT>, tensor<4x4xf32>, tensor<4xT>,
    tensor<4x6xf16>, tensor<4x6xi1>, tensor<4x6xT>, tensor<4x6xT>
}"""


def element(text: str) -> Attribute:
    return parse_attribute(text, tensorplan.context())


def wanted(x: np.ndarray, at: int) -> list[np.ndarray]:
    dtype, one = x.dtype, np.ones((), x.dtype)
    wide = x.astype(np.float32)
    product = (wide * wide).astype(dtype)
    sums = wide @ wide.T
    if "int" in dtype.name:  # sums wrap around
        product = (wide * wide).astype(np.int8).astype(dtype)
    greater = wide > product.astype(np.float32)
    return [
        np.pad(x.T, ((0, 0), (2, 3)), constant_values=one),
        x[at : at + 2],
        np.concatenate([x, x]),
        product,
        sums.astype(np.int8).astype(dtype)
        if "int" in dtype.name
        else sums.astype(dtype),
        sums,
        np.maximum(wide.max(1), 1).astype(dtype),
        x.astype(np.float16),
        greater,
        np.where(greater, x, product),
        np.sort(wide, 1).astype(dtype),
    ]


@pytest.mark.parametrize(
    "name",
    ["f8E4M3FN", "ui4"]
    + [pytest.param(name, marks=pytest.mark.thorough) for name in REST],
)
def test_values(name: str, tmp_path: Path) -> None:
    pytest.importorskip("jaxlib")
    dtype = numpy_dtype(element(name))
    low = 1 if name == "f8E8M0FNU" else 0 if name.startswith("u") else -2
    numbers = np.random.default_rng(0).integers(low, low + 3 + (low < 0), (4, 6))
    inputs = numbers.astype(np.float32).astype(dtype), np.int32(1)
    text = PROGRAM.replace("xT>", f"x{name}>").replace("<T>", f"<{name}>")
    text = text.replace("ONE", "1" if name in INTEGERS else "1.0")
    model = tensorplan.from_stablehlo(text)
    planned = tensorplan.plan(model.module)
    tensorplan.save(tensorplan.compile(planned), tmp_path / "saved")
    runs = [
        run_reference(model.module, list(inputs)),
        *(Executable(planned, native=native)(*inputs) for native in (True, False)),
        tensorplan.load(tmp_path / "saved")(*inputs),
    ]
    if TOOLS and name in INTEGERS:
        runs.append(run_natively(planned, [*map(np.asarray, inputs)]))
    for results in runs:
        for index, pair in enumerate(zip(results, wanted(inputs[0], 1), strict=True)):
            have, want = pair
            assert have.dtype == want.dtype, index
            wide = [x.astype(np.float32) for x in pair]
            np.testing.assert_array_equal(*wide, err_msg=f"result {index}")


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_have_native_code(name: str) -> None:
    t, f = f"tensor<40x{name}>", "tensor<40xf32>"
    planned = tensorplan.plan(
        tensorplan.read(f"""func.func @main(%q: {t}, %s: {f}) -> ({f}, {t}) {{
  %0 = tgraph.convert %q : ({t}) -> {f}
  %1 = tgraph.multiply %0, %s : {f}
  %2 = tgraph.convert %s : ({f}) -> {t}
  func.return %1, %2 : {f}, {t}
}}""")
    )
    low = 0 if name.startswith("u") else -2
    scales = np.linspace(low, low + 3, 40, dtype=np.float32)
    numbers = np.trunc(scales).astype(numpy_dtype(element(name)))
    run = Executable(planned)
    assert not run.fallbacks
    product, rounded = run(numbers, scales)
    np.testing.assert_array_equal(product, np.trunc(scales) * scales)
    assert rounded.tobytes() == numbers.tobytes()


def test_conversions() -> None:
    """All types are converted to all others through f32, or through i8 between
    integers. Numbers beyond the range of i4 become its limits, and NaN becomes 0."""
    names = ("f32", "f8E4M3FN", "f8E5M2", "f4E2M1FN", "f8E8M0FNU", "i4", "ui2", "i32")
    given = np.array([0.25, 1, 2, 100, -9, np.nan, -np.inf], np.float32)
    types = [f"tensor<7x{name}>" for name in names]
    lines = [
        f"  %{n} = tgraph.convert %x : ({source}) -> {target}"
        for n, target in enumerate(types)
        for source in ("SOURCE",)
    ]
    results = ", ".join(f"%{n}" for n in range(len(names)))
    for source, type in zip(names, types, strict=True):
        text = (
            f"func.func @main(%x: {type}) -> ({', '.join(types)}) {{\n"
            + "\n".join(lines).replace("SOURCE", type)
            + f"\n  func.return {results} : {', '.join(types)}\n}}"
        )
        is_integer = "i" in source
        low = 0 if source.startswith("u") or "8M0" in source else -1
        numbers = np.clip(given, low, 3) if is_integer or low == 0 else given
        x = np.nan_to_num(numbers).astype(numpy_dtype(element(source)))
        module = tensorplan.read(text)
        want = run_reference(module, [x])
        for native in (True, False):
            have = Executable(tensorplan.plan(module), native=native)(x)
            for name, left, right in zip(names, have, want, strict=True):
                count = 3 if native and "i" in name else 7  # the rest overflows
                pair = left[:count].tobytes(), right[:count].tobytes()
                assert pair[0] == pair[1], (source, name, native)
    bounded = tensorplan.from_stablehlo(
        """func.func @main(%x: tensor<7xf32>) -> tensor<7xi4> {
          %0 = "stablehlo.convert"(%x) : (tensor<7xf32>) -> tensor<7xi4>
          func.return %0 : tensor<7xi4>
        }"""
    )
    (have,) = tensorplan.compile(bounded)(given)
    assert have.astype(int).tolist() == [0, 1, 2, 7, -8, 0, -8]


def test_contraction_reads_stored_weights() -> None:
    """Weights of f8 are never stored as f32."""
    module = tensorplan.from_stablehlo(
        """func.func @main(%x: tensor<8x64xf32>, %w: tensor<64x32xf8E4M3FN>)
            -> tensor<8x32xf32> {
          %0 = "stablehlo.convert"(%w) : (tensor<64x32xf8E4M3FN>) -> tensor<64x32xf32>
          %1 = "stablehlo.dot"(%x, %0)
            : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
          func.return %1 : tensor<8x32xf32>
        }"""
    )
    planned = tensorplan.plan(module)
    assert "tgraph.convert" not in str(planned.module)
    assert tensorplan.report(planned)["pools"] == []
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8, 64)).astype(np.float32)
    w = rng.normal(size=(64, 32)).astype(ml_dtypes.float8_e4m3fn)
    (have,) = tensorplan.compile(planned)(x, w)
    np.testing.assert_allclose(have, x @ w.astype(np.float32), rtol=1e-5, atol=1e-5)


def test_gradient() -> None:
    """Gradients of values stored in f8 are rounded to f8, as in JAX."""
    module = tensorplan.read(
        """func.func @main(%x: tensor<4xf8E5M2>) -> tensor<4xf8E5M2> {
          %0 = tgraph.convert %x : (tensor<4xf8E5M2>) -> tensor<4xf32>
          %1 = tgraph.convert %x : (tensor<4xf8E5M2>) -> tensor<4xf32>
          %2 = tgraph.multiply %0, %1 : tensor<4xf32>
          %3 = tgraph.reduce %2 {kind = "add", dimensions = array<i64: 0>}
            : (tensor<4xf32>) -> tensor<f32>
          %4 = tgraph.gradient %3 wrt %x : tensor<f32> wrt tensor<4xf8E5M2>
          func.return %4 : tensor<4xf8E5M2>
        }"""
    )
    driver.run(tensorplan.context(), module, [TGraphGradient()])
    x = np.array([1, -3, 0.5, 0], ml_dtypes.float8_e5m2)
    (have,) = run_reference(module, [x])
    assert have.astype(float).tolist() == [2, -6, 1, 0]


def test_rules() -> None:
    types = {name: element(name) for name in (*FLOATS, *INTEGERS, "f32", "i8", "bf16")}
    assert {name for name, type in types.items() if is_stored(type)} == {
        *FLOATS,
        *INTEGERS,
    }
    assert computed_type(types["f4E2M1FN"]) == types["f32"]
    assert computed_type(types["ui4"]) == element("ui8")
    assert all(holds(types["f32"], types[name]) for name in (*FLOATS, *INTEGERS))
    assert not holds(types["f8E5M2"], types["f8E4M3FN"])
    assert not holds(types["f8E5M2FNUZ"], types["f8E5M2"])  # the latter has infinities
    assert not holds(types["i4"], types["ui4"])


def test_operations_that_depend_on_the_bit_width() -> None:
    """The extension of the sign is neither counted nor shifted in."""
    for name, kind in (("i4", "int4"), ("ui4", "uint4")):
        t = f"tensor<4x{name}>"
        module = tensorplan.from_stablehlo(f"""
func.func @main(%x: {t}, %n: {t}) -> ({t}, {t}, {t}) {{
  %0 = "stablehlo.popcnt"(%x) : ({t}) -> {t}
  %1 = "stablehlo.count_leading_zeros"(%x) : ({t}) -> {t}
  %2 = "stablehlo.shift_right_logical"(%x, %n) : ({t}, {t}) -> {t}
  func.return %0, %1, %2 : {t}, {t}, {t}
}}""")
        numbers = [8, 15, 0, 5] if kind == "uint4" else [-8, -1, 0, 5]
        arrays = [np.array(x).astype(kind) for x in (numbers, [1, 1, 1, 4])]
        for results in (
            tensorplan.compile(module, threads=1)(*arrays),
            run_reference(module.module, arrays),
        ):
            listed = [list(map(int, result)) for result in results]
            assert listed == [[1, 4, 0, 2], [0, 0, 4, 1], [4, 7, 0, 0]]
