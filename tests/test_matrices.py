"""Tests linear algebra: kernels compared with the reference, and LAPACK's failures."""

from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from modules import parse, run

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.dtypes import Array
from tensorplan.dialects.tgraph.matrices import TRANSPOSES, MatrixOp
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.passes.convert.tgraph_to_linalg import ConvertTGraphToLinalg
from tensorplan.runtime.backends.dispatch import compile_call
from tensorplan.runtime.backends.native import lapack
from tensorplan.runtime.pool import Scratch

pytest.importorskip("scipy")

ELEMENTS = {
    "f32": np.float32,
    "f64": np.float64,
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
}


def numbers(shape: tuple[int, ...], element: str) -> Array:
    rng = np.random.default_rng(0)
    values = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    dtype = ELEMENTS[element]
    return (values if np.dtype(dtype).kind == "c" else values.real).astype(dtype)


def program(op: str, attributes: str, operands: str, results: str, element: str) -> str:
    """A program of one operation. `E` is replaced by the element type, `R` by the type
    of its real parts, and `C` by the complex type of these."""
    part = element.removeprefix("complex<").removesuffix(">")
    types = [f"tensor<{t}>" for t in operands.split()]
    made = [f"tensor<{t}>" for t in results.split()]
    names = [f"%{n}" for n in range(len(types))]
    arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
    values = [f"%r{n}" for n in range(len(made))]
    text = f"""
func.func @main({arguments}) -> ({", ".join(made)}) {{
  {", ".join(values)} = tgraph.{op} {", ".join(names)} {{{attributes}}}
      : ({", ".join(types)}) -> ({", ".join(made)})
  func.return {", ".join(values)} : {", ".join(made)}
}}"""
    for letter, name in (("E", element), ("R", part), ("C", f"complex<{part}>")):
        text = text.replace(f"x{letter}>", f"x{name}>")
    return text


CASES = {
    "cholesky": ("", "2x4x4xE", "2x4x4xE"),
    "cholesky upper": ("lower = false", "4x4xE", "4x4xE"),
    "lu": ("", "2x5x3xE", "2x5x3xE 2x3xi32 2x5xi32"),
    "lu wide": ("", "3x5xE", "3x5xE 3xi32 3xi32"),
    "qr": ("", "2x5x3xE", "2x5x3xE 2x3xE"),
    "qr wide": ("", "3x5xE", "3x5xE 3xE"),
    "householder_product": ("", "2x5x3xE 2x2xE", "2x5x3xE"),
    "hessenberg": ("", "2x5x5xE", "2x5x5xE 2x4xE"),
    "eigh": ("", "2x4x4xE", "2x4x4xE 2x4xR"),
    "eigh upper": ("lower = false", "4x4xE", "4x4xE 4xR"),
    "eig": ("", "2x4x4xE", "2x4xC 2x4x4xC 2x4x4xC"),
    "svd": ("", "2x5x3xE", "2x5x3xE 2x3xR 2x3x3xE"),
    "svd full": ("full_matrices = true", "3x5xE", "3x3xE 3xR 5x5xE"),
    "svd values": ("wanted = array<i64: 1>", "2x5x3xE", "2x3xR"),
    "svd left": ("wanted = array<i64: 0, 1>", "5x3xE", "5x3xE 3xR"),
    "eigh values": ("wanted = array<i64: 1>", "2x4x4xE", "2x4xR"),
    "eig values": ("wanted = array<i64: 0>", "2x4x4xE", "2x4xC"),
    "eig right": ("wanted = array<i64: 0, 2>", "4x4xE", "4xC 4x4xC"),
    "lu without an order": ("wanted = array<i64: 0, 1>", "5x3xE", "5x3xE 3xi32"),
    "triangular_solve": ("", "2x4x4xE 2x4x3xE", "2x4x3xE"),
    "triangular_solve right": (
        'left_side = false, lower = false, transpose_a = "ADJOINT"',
        "3x3xE 4x3xE",
        "4x3xE",
    ),
    "triangular_solve ones": (
        'unit_diagonal = true, transpose_a = "TRANSPOSE"',
        "4x4xE 4x3xE",
        "4x3xE",
    ),
}


def case(name: str, element: str) -> tuple[str, list[Array]]:
    op = name.split()[0]
    attributes, operands, results = CASES[name]
    arrays = [
        numbers(tuple(map(int, type.split("x")[:-1])), element)
        for type in operands.split()
    ]
    if op == "cholesky":
        (x,) = arrays
        arrays = [x @ np.swapaxes(x, -1, -2).conj()]
    return program(op, attributes, operands, results, element), arrays


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "element",
    [
        "complex<f64>",
        *(pytest.param(x, marks=pytest.mark.thorough) for x in list(ELEMENTS)[:3]),
    ],
)
def test_kernels_agree_with_the_reference(name: str, element: str) -> None:
    """Values are equal up to rounding, and eigenvectors and singular vectors up to a
    phase."""
    text, arrays = case(name, element)
    want = run_reference(parse(text), arrays)
    run = tensorplan.compile(parse(text))
    got = run(*arrays)
    assert run.scratch_bytes == 0
    rtol = 2e-3 if element.count("32") else 1e-10
    if name.startswith(("eig", "svd")):
        compare = [np.abs(x) for x in got], [np.abs(x) for x in want]
    else:
        compare = got, want
    for x, y in zip(*compare, strict=True):
        np.testing.assert_allclose(x, y, rtol, rtol)
    for x, y in zip(got, want, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "rows": np.copy,
    "columns": lambda x: np.swapaxes(np.swapaxes(x, -1, -2).copy(), -1, -2),
    "parts of rows": lambda x: np.repeat(x, 2, -2)[..., ::2, :],
    "gaps": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "batches inside": lambda x: np.moveaxis(np.moveaxis(x, 0, -1).copy(), -1, 0),
}


@cache
def triangular_solve(
    options: str, side: int, size: tuple[int, int], element: str
) -> MatrixOp:
    b = f"2x{size[0]}x{size[1]}xE"
    text = program("triangular_solve", options, f"2x{side}x{side}xE {b}", b, element)
    return next(x for x in parse(text).walk() if isinstance(x, MatrixOp))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("other", LAYOUTS)
@pytest.mark.parametrize("element", ["f32", "complex<f64>"])
def test_triangular_solves_in_any_layout(layout: str, other: str, element: str) -> None:
    """Compares native calls with NumPy's. `a` has the layout `layout`; the right side
    and the result have `other`."""
    pytest.importorskip("llvmlite")
    for size in ((5, 3), (3, 1), (1, 4)):
        flags = ("false", "true")
        for left, lower, unit, name in product(flags, flags, flags, TRANSPOSES):
            side = size[0] if left == "true" else size[1]
            options = (
                f"left_side = {left}, lower = {lower}, "
                f'unit_diagonal = {unit}, transpose_a = "{name}"'
            )
            op = triangular_solve(options, side, size, element)
            a = numbers((2, side, side), element) + 2 * np.eye(side)
            a = LAYOUTS[layout](a.astype(ELEMENTS[element]))
            b, got, want = (LAYOUTS[other](numbers((2, *size), element)) for _ in "123")
            scratch = Scratch("cpu:0")
            lapack.calls_of(op, [a, b], [got], scratch)
            scratch.reset()
            calls = lapack.calls_of(op, [a, b], [got], scratch)
            calls += compile_call(op, [a, b], [want], Scratch("cpu:0"), native=False)
            for function, arguments in calls:
                function(*arguments)
            np.testing.assert_allclose(got, want, 2e-5, 2e-5)


@pytest.mark.parametrize("name", ["eig", "eigh", "svd"])
@pytest.mark.parametrize("element", ["f64", "complex<f64>"])
def test_factors_give_the_matrix(name: str, element: str) -> None:
    text, (x,) = case(name, element)
    if name == "eigh":
        x = x + np.swapaxes(x, -1, -2).conj()
    got = tensorplan.compile(parse(text))(x)
    if name == "svd":
        u, s, vh = got
        np.testing.assert_allclose(u * s[..., None, :] @ vh, x, 1e-10, 1e-10)
        return
    values, vectors = (got[1], got[0]) if name == "eigh" else (got[0], got[2])
    np.testing.assert_allclose(
        x @ vectors, vectors * values[..., None, :], 1e-10, 1e-10
    )
    if name == "eig":
        left = np.swapaxes(got[1], -1, -2).conj()
        np.testing.assert_allclose(left @ x, values[..., None] * left, 1e-10, 1e-10)


@pytest.mark.parametrize("element", ["f64", "complex<f64>"])
def test_schur_forms(element: str) -> None:
    """The kernel's form and the reference's give the matrix. They may differ."""
    x = numbers((2, 5, 5), element)
    text = program("schur", "", "2x5x5xE", "2x5x5xE 2x5x5xE", element)
    for t, z in (tensorplan.compile(parse(text))(x), run_reference(parse(text), [x])):
        np.testing.assert_allclose(z @ t @ z.conj().mT, x, 1e-10, 1e-10)
        np.testing.assert_allclose(z @ z.conj().mT, np.eye(5)[None] + 0 * x, 0, 1e-10)
        below = np.abs(np.diagonal(t, -1, -2, -1)) > 1e-10
        assert not (below[:, 1:] & below[:, :-1]).any()
        assert below.any() == (element == "f64")
        np.testing.assert_allclose(np.tril(t, -2), 0 * x, 0, 1e-10)


@pytest.mark.parametrize("name", ["cholesky", "eig", "eigh", "svd"])
def test_only_the_matrix_that_fails_is_nan(name: str) -> None:
    text, (x,) = case(name, "f32")
    x[1] = -np.eye(*x.shape[1:]) if name == "cholesky" else np.nan
    for result in tensorplan.compile(parse(text))(x):
        assert np.isfinite(result[0]).all()
        assert np.isnan(result[1]).any()


def test_a_saved_program_calls_lapack(tmp_path: Path) -> None:
    text, arrays = case("qr", "f32")
    run = tensorplan.compile(parse(text))
    tensorplan.save(run, tmp_path / "a.plan")
    loaded = tensorplan.load(tmp_path / "a.plan")
    for x, y in zip(loaded(*arrays), run(*arrays), strict=True):
        np.testing.assert_array_equal(x, y)


def test_linear_algebra_has_no_upstream_form() -> None:
    planned = tensorplan.plan(parse(case("qr", "f32")[0]))
    with pytest.raises(
        LocatedError, match=(r"tgraph\.qr has no equivalent in " r"upstream MLIR")
    ):
        run(planned, ConvertTGraphToLinalg())


@pytest.mark.parametrize(
    ("name", "shapes", "message"),
    [
        ("cholesky", "2x3xf32|2x3xf32", "expected square matrices"),
        ("cholesky", "3xf32|3xf32", "expected two dimensions or more"),
        ("cholesky", "3x3xi32|3x3xi32", "expected elements of type f32, f64"),
        ("triangular_solve", "3x3xf32 4x2xf32|4x2xf32", "expected tensor<4x4xf32>"),
        ("lu", "2x3xf32|2x3xf32 3xi32 2xi32", "expected tensor<2xi32>"),
        ("householder_product", "2x3xf32 2xf32|2x3xf32", "no more columns than rows"),
    ],
)
def test_invalid_shapes(name: str, shapes: str, message: str) -> None:
    operands, results = shapes.split("|")
    with pytest.raises(Exception, match=message):
        parse(program(name, "", operands, results, "f32")).verify()


@pytest.mark.parametrize("wanted", ["", ": 3", ": 1, 0", ": 0, 0"])
def test_invalid_factors(wanted: str) -> None:
    text = program("svd", f"wanted = array<i64{wanted}>", "2x2xf32", "2xf32", "f32")
    with pytest.raises(Exception, match=r"expected some of \[0, 1, 2\], in this order"):
        parse(text).verify()


def test_an_unknown_transposition() -> None:
    text = program(
        "triangular_solve",
        'transpose_a = "HALF"',
        "2x2xf32 2x2xf32",
        "2x2xf32",
        "f32",
    )
    with pytest.raises(Exception, match="transpose_a is 'HALF'"):
        parse(text).verify()


@pytest.mark.parametrize(
    ("routine", "element"), [("sormqr", "f32"), ("zunmqr", "complex<f64>")]
)
def test_products_with_q(routine: str, element: str) -> None:
    """Multiplies by `q` and by its adjoint, on both sides."""
    choices = list(product(("true", "false"), repeat=2))
    left, right, packed = (f"tensor<2x{s}x{element}>" for s in ("5x4", "4x5", "5x3"))
    calls = [
        f'%{n} = "stablehlo.custom_call"(%a, %t, {value}) '
        f'<{{call_target_name = "lapack_{routine}_ffi"}}> {{mhlo.backend_config = '
        f"{{left = {side}, transpose = {turned}}}}} : "
        f"({packed}, tensor<2x3x{element}>, {type}) -> {type}"
        for n, (side, turned) in enumerate(choices)
        for value, type in [("%x", left) if side == "true" else ("%y", right)]
    ]
    text = (
        f"func.func @main(%a: {packed}, %t: tensor<2x3x{element}>, %x: {left}, "
        f"%y: {right}) -> ({left}, {left}, {right}, {right}) {{\n"
        + "\n".join(calls)
        + f"\nfunc.return %0, %1, %2, %3 : {left}, {left}, {right}, {right}\n}}"
    )
    x, y = numbers((2, 5, 4), element), numbers((2, 4, 5), element)
    vectors, scales = np.linalg.qr(numbers((2, 5, 3), element), "raw")
    packed_columns = np.ascontiguousarray(vectors.mT)
    v = np.tril(packed_columns, -1) + np.eye(5, 3)
    q = np.broadcast_to(np.eye(5), (2, 5, 5))
    for n in range(3):
        outer = v[..., n : n + 1] @ v[..., n : n + 1].conj().mT
        q = q @ (np.eye(5) - scales[:, n, None, None] * outer)
    adjoint = q.conj().mT
    results = tensorplan.compile(tensorplan.from_stablehlo(text))(
        packed_columns, scales, x, y
    )
    for got, wanted in zip(
        results, (adjoint @ x, q @ x, y @ adjoint, y @ q), strict=True
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("routine", "element"), [("sgtsv", "f32"), ("zgtsv", "complex<f64>")]
)
def test_tridiagonal_systems(routine: str, element: str) -> None:
    """The solver has to exchange rows, and the last of three matrices is singular."""
    lines, right = (f"tensor<{s}x{element}>" for s in ("3x5", "3x5x2"))
    types = ", ".join((lines, lines, lines, right))
    text = (
        f"func.func @main(%l: {lines}, %d: {lines}, %u: {lines}, %x: {right}) -> "
        f"({right}, tensor<3xi32>) {{\n"
        '%0:5 = "stablehlo.custom_call"(%l, %d, %u, %x) '
        f'<{{call_target_name = "lapack_{routine}_ffi"}}> : ({types}) -> '
        f"({types}, tensor<3xi32>)\n"
        f"func.return %0#3, %0#4 : {right}, tensor<3xi32>\n}}"
    )
    lower, middle, upper = numbers((3, 3, 5), element)
    middle[0, 1] = middle[2, 0] = upper[2, 0] = 0
    x = numbers((3, 5, 2), element)
    model = tensorplan.from_stablehlo(text)
    solved, failed = run_reference(model.module, [lower, middle, upper, x])
    matrices = np.stack(
        [
            np.diag(low[1:], -1) + np.diag(own) + np.diag(high[:-1], 1)
            for low, own, high in zip(lower, middle, upper, strict=True)
        ]
    )
    np.testing.assert_allclose(matrices[:2] @ solved[:2], x[:2], rtol=1e-3, atol=1e-5)
    assert failed.astype(bool).tolist() == [False, False, True]
