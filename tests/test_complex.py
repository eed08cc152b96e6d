"""Compares kernels for complex numbers and Fourier transforms with the reference
interpreter and with NumPy."""

from pathlib import Path

import numpy as np
import pytest
from modules import parse, run

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.dtypes import Array
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.passes.convert.tgraph_to_linalg import ConvertTGraphToLinalg
from tensorplan.passes.tgraph.gradient import TGraphGradient
from tensorplan.runtime.backends.jit import llvm
from tensorplan.runtime.backends.numpy import functions

RNG = np.random.default_rng(0)

UNARY = (
    "cosine exponential exponential_minus_one log log_plus_one logistic negate rsqrt "
    "sine sqrt tan tanh"
).split()
BINARY = "add subtract multiply divide power".split()


def numbers(*shape: int, dtype: type = np.complex64) -> Array:
    parts = RNG.standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1]).astype(dtype)


def elementwise(part: str) -> str:
    t = f"tensor<3x5xcomplex<{part}>>"
    lines = [f"%{name} = tgraph.{name} %x : {t}" for name in UNARY]
    lines += [f"%{name} = tgraph.{name} %x, %y : {t}" for name in BINARY]
    values = ", ".join(f"%{name}" for name in (*UNARY, *BINARY))
    types = ", ".join([t] * len([*UNARY, *BINARY]))
    body = "\n  ".join(lines)
    return f"""
func.func @main(%x: {t}, %y: {t}) -> ({types}) {{
  {body}
  func.return {values} : {types}
}}"""


@pytest.mark.parametrize(("part", "dtype"), [("f32", "c8"), ("f64", "c16")])
def test_elementwise_operations(part: str, dtype: str) -> None:
    text = elementwise(part)
    arrays = [numbers(3, 5).astype(dtype) for _ in range(2)]
    want = run_reference(parse(text), arrays)
    rtol = 1e-5 if part == "f32" else 1e-12
    for x, y in zip(tensorplan.compile(parse(text))(*arrays), want, strict=True):
        assert x.dtype == y.dtype == np.dtype(dtype)
        np.testing.assert_allclose(x, y, rtol)


INFINITE, MIXED = complex(np.inf, np.inf), complex(np.inf, 1)
QUOTIENTS = {
    (1, INFINITE): 0,
    (INFINITE, 1): INFINITE,
    (MIXED, 2): complex(np.inf, np.nan),
    (1j, complex(-0.0, 0)): complex(np.nan, -np.inf),
    (np.nan, 1): complex(np.nan, np.nan),
    (3 + 4j, 2j): 2 - 1.5j,
}


def test_quotients_follow_c99() -> None:
    """Quotients follow C99, also by infinity and by zero, where NumPy's are NaN."""
    arrays = [np.array(x, np.complex64) for x in zip(*QUOTIENTS, strict=True)]
    t = f"tensor<{len(QUOTIENTS)}xcomplex<f32>>"
    module = parse(f"""func.func @main(%x: {t}, %y: {t}) -> {t} {{
  %0 = tgraph.divide %x, %y : {t}
  func.return %0 : {t}
}}""")
    (got,) = tensorplan.compile(module)(*arrays)
    np.testing.assert_array_equal(got, np.array(list(QUOTIENTS.values()), got.dtype))
    (reference,) = run_reference(module, arrays)
    np.testing.assert_array_equal(reference, got)


def test_small_and_large_numbers(tmp_path: Path) -> None:
    """1 + x is not rounded, and zero times infinity does not give NaN, also in a saved
    program."""
    x = np.array([1e-20, 1e-3 + 0j, -0.5 + 0.5j, 30 - 2j, -100 + 1j, 200], np.complex64)
    wide = x.astype(np.complex128)
    exponential = np.expm1(wide)
    exponential[-1] = np.inf
    near = np.log1p(wide)
    near[0] = wide[0]
    want = {
        "log_plus_one": near,
        "exponential_minus_one": exponential,
        "logistic": 1 / (1 + np.exp(-wide)),
    }
    for name, expected in want.items():
        t = "tensor<6xcomplex<f32>>"
        module = parse(f"""func.func @main(%x: {t}) -> {t} {{
  %0 = tgraph.{name} %x : {t}
  func.return %0 : {t}
}}""")
        run = tensorplan.compile(module)
        tensorplan.save(run, tmp_path / name)
        loaded = tensorplan.load(tmp_path / name)
        for (got,) in (run(x), loaded(x), run_reference(module, [x])):
            np.testing.assert_allclose(got, expected, 2e-6, 1e-40, err_msg=name)


C, F = "tensor<3x4xcomplex<f64>>", "tensor<3x4xf64>"
MIXED_OPERATIONS = f"""
func.func @main(%x: {C}, %y: {F}, %c: tensor<3x4xi1>)
    -> ({C}, {F}, tensor<4x3xcomplex<f64>>, tensor<3xcomplex<f64>>, {C},
        tensor<3x3xcomplex<f64>>, tensor<3x4xi1>) {{
  %i = tgraph.imag %x : ({C}) -> {F}
  %z = tgraph.complex %y, %i : ({F}, {F}) -> {C}
  %s = tgraph.select %c, %x, %z : (tensor<3x4xi1>, {C}, {C}) -> {C}
  %r = tgraph.real %s : ({C}) -> {F}
  %p = tgraph.multiply %s, %z : {C}
  %t = tgraph.transpose %p {{permutation = array<i64: 1, 0>}}
      : ({C}) -> tensor<4x3xcomplex<f64>>
  %sum = tgraph.reduce %p {{kind = "add", dimensions = array<i64: 1>}}
      : ({C}) -> tensor<3xcomplex<f64>>
  %w = tgraph.convert %y : ({F}) -> {C}
  %d = tgraph.dot_general %x, %t {{lhs_batching_dimensions = array<i64>,
      rhs_batching_dimensions = array<i64>, lhs_contracting_dimensions = array<i64: 1>,
      rhs_contracting_dimensions = array<i64: 0>}}
      : ({C}, tensor<4x3xcomplex<f64>>) -> tensor<3x3xcomplex<f64>>
  %e = tgraph.compare %x, %s {{direction = "EQ"}} : ({C}, {C}) -> tensor<3x4xi1>
  func.return %z, %r, %t, %sum, %w, %d, %e : {C}, {F}, tensor<4x3xcomplex<f64>>,
      tensor<3xcomplex<f64>>, {C}, tensor<3x3xcomplex<f64>>, tensor<3x4xi1>
}}"""


def test_other_operations_on_complex_numbers() -> None:
    x = numbers(3, 4, dtype=np.complex128)
    y, c = RNG.standard_normal((3, 4)), RNG.integers(0, 2, (3, 4)).astype(bool)
    z = y + 1j * np.imag(x)
    s = np.where(c, x, z)
    p = s * z
    want = [z, np.real(s), p.T, p.sum(1), y.astype(complex), x @ p.T, x == s]
    got = tensorplan.compile(parse(MIXED_OPERATIONS))(x, y, c)
    for have, reference, expected in zip(
        got, run_reference(parse(MIXED_OPERATIONS), [x, y, c]), want, strict=True
    ):
        assert have.dtype == reference.dtype == expected.dtype
        np.testing.assert_allclose(have, expected, 1e-12)
        np.testing.assert_allclose(reference, expected, 1e-12)


def transform(kind: str, length: list[int], operand: str, result: str) -> str:
    return f"""
func.func @main(%x: tensor<{operand}>) -> tensor<{result}> {{
  %r = tgraph.fft %x {{fft_type = "{kind}", length = array<i64: {str(length)[1:-1]}>}}
      : (tensor<{operand}>) -> tensor<{result}>
  func.return %r : tensor<{result}>
}}"""


@pytest.mark.parametrize("library", ["native", "scipy", "numpy"])
@pytest.mark.parametrize(
    ("kind", "length", "operand", "result"),
    [
        ("FFT", [5], "3x5xcomplex<f32>", "3x5xcomplex<f32>"),
        ("IFFT", [2, 3, 4], "2x3x4xcomplex<f64>", "2x3x4xcomplex<f64>"),
        ("RFFT", [3, 5], "2x3x5xf32", "2x3x3xcomplex<f32>"),
        ("RFFT", [7], "7xf32", "4xcomplex<f32>"),
        ("RFFT", [512], "3x100x512xf32", "3x100x257xcomplex<f32>"),  # computed in parts
        ("IRFFT", [6], "2x4xcomplex<f64>", "2x6xf64"),
        ("IRFFT", [3, 5], "2x3x3xcomplex<f64>", "2x3x5xf64"),
    ],
)
def test_fft(
    kind: str,
    length: list[int],
    operand: str,
    result: str,
    library: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if library != "native":
        monkeypatch.setattr(llvm, "is_available", lambda: False)
    if library == "scipy":
        pytest.importorskip("scipy")
    else:
        monkeypatch.setattr(functions, "_fourier", lambda: None)
    text = transform(kind, length, operand, result)
    shape = [int(size) for size in operand.split("x")[:-1] if size.isdigit()]
    is_real = kind == "RFFT"
    dtype = ("f" if is_real else "c") + ("4" if "f32" in operand else "8")
    dtype = dtype if is_real else {"c4": "c8", "c8": "c16"}[dtype]
    x = numbers(*shape) if not is_real else np.real(numbers(*shape))
    x = x.astype(dtype)
    axes = tuple(range(-len(length), 0))
    sizes = {"s": length} if kind == "IRFFT" else {}
    want = getattr(np.fft, f"{kind.lower()}n")(x, axes=axes, **sizes)
    (got,) = tensorplan.compile(parse(text))(x)
    (reference,) = run_reference(parse(text), [x])
    np.testing.assert_allclose(got, want, 1e-4, 1e-4)
    np.testing.assert_allclose(reference, want, 1e-4, 1e-4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (transform("DCT", [4], "4xf32", "4xf32"), "fft_type is 'DCT'"),
        (transform("FFT", [4], "4xf32", "4xf32"), "expected complex elements"),
        (transform("RFFT", [3], "4xf32", "3xcomplex<f32>"), "expected the last sizes"),
        (transform("RFFT", [2, 4], "4xf32", "3xcomplex<f32>"), "length has 2 sizes"),
        (
            "func.func @main(%x: tensor<3xcomplex<f32>>) -> tensor<3xf32> {\n"
            "%r = tgraph.convert %x : (tensor<3xcomplex<f32>>) -> tensor<3xf32>\n"
            "func.return %r : tensor<3xf32>\n}",
            "expected its tgraph.real",
        ),
    ],
)
def test_invalid_operations_are_refused(text: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        parse(text).verify()


def test_complex_numbers_cannot_be_lowered_to_linalg() -> None:
    planned = tensorplan.plan(parse(elementwise("f32")))
    with pytest.raises(
        LocatedError, match=("complex numbers has no equivalent in upstream MLIR")
    ):
        run(planned, ConvertTGraphToLinalg())


def test_gradient_of_a_non_holomorphic_operation_is_refused() -> None:
    """The gradient of an operation that is not holomorphic is an error, not zero."""
    text = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %z = tgraph.complex %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
  %s = tgraph.sign %z : tensor<4xcomplex<f32>>
  %r = tgraph.imag %s : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}"""
    with pytest.raises(LocatedError, match=r"tgraph\.sign: a complex number is not"):
        run(parse(text), TGraphGradient(of=(0,)))


def test_conjugates_of_jax() -> None:
    """`jax.scipy.linalg.polar` contains conjugates, as `chlo.conj`."""
    polar = pytest.importorskip("jax.scipy.linalg").polar
    x = numbers(4, 4)
    for ours, theirs in zip(tensorplan.jit(polar)(x), polar(x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
