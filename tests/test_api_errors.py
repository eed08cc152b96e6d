"""Tests that public functions raise only the errors that their docstrings name."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from xdsl.utils.exceptions import ParseError

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError

ERRORS = Path(__file__).parent.parent / "lit_tests" / "errors"

PROGRAM = """
  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = tgraph.negate %a : tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }
"""
FEWER_SIZES = "func.func @f(%a: tensor<?xf32, #tgraph.dims<n, m>>) { func.return }"
DEEP = '"a.b"() ({\n' * 3000 + "}) : () -> ()\n" * 3000
NOT_THERE = Path("no/such/file")


READERS = ["read", "from_stablehlo", "from_onnx", "from_tflite"]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("source", "error"),
    [
        (42, TypeError),
        (None, TypeError),
        ([], TypeError),
        (memoryview(b"x"), TypeError),
        (NOT_THERE, OSError),
        (Path(), OSError),
        (Path("a\0b"), ValueError),
        (str(ERRORS), (ValueError, OSError)),
        (b"", (ParseError, LocatedError)),
        (b"\xff\xfe", LocatedError),
        (b"ML\xefR", LocatedError),
        (b"ML\xefRgarbage", LocatedError),
        (b"\x08\x07garbage", (ParseError, LocatedError)),
    ],
    ids=range(13),
)
def test_invalid_sources(reader: str, source: Any, error: Any) -> None:
    with pytest.raises(error):
        getattr(tensorplan, reader)(source)


@pytest.mark.parametrize("reader", ["read", "from_stablehlo"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("abc", "expected an operation such as func.func, found 'abc'"),
        ("%0 = a.b %x", "the custom syntax of a.b is not known, expected the generic"),
    ],
)
def test_text_that_is_not_mlir(reader: str, text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        getattr(tensorplan, reader)(text)


@pytest.mark.parametrize("reader", ["read", "from_stablehlo"])
@pytest.mark.parametrize(
    "text",
    ["", "%", '"' * 3, "(" * 5000, "module {", "a\0b", "\ud800", "stablehlo.add", DEEP],
    ids=range(9),
)
def test_invalid_texts(reader: str, text: str) -> None:
    with pytest.raises((ParseError, LocatedError)):
        getattr(tensorplan, reader)(text)


PLANNERS: list[Callable[[Any], object]] = [
    tensorplan.plan,
    tensorplan.compile,
    tensorplan.report,
    tensorplan.explain,
    tensorplan.frontier,
]


@pytest.mark.parametrize("function", PLANNERS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "source", [FEWER_SIZES, *sorted(ERRORS.glob("plan-*.mlir"))], ids=str
)
def test_invalid_modules(function: Callable[[Any], object], source: Any) -> None:
    """Programs that some function refuses raise only these errors in every function."""
    try:
        function(tensorplan.read(source))
    except (ParseError, LocatedError):
        pass


def test_report_of_an_invalid_module() -> None:
    with pytest.raises(LocatedError, match="has 2 sizes, expected 1"):
        tensorplan.report(tensorplan.read(ERRORS / "symbolic-count.mlir"))


@pytest.mark.parametrize("name", ["plan", "compile", "explain", "frontier"])
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"alignment": 63}, ValueError, "alignment is 63, expected a power of two"),
        ({"alignment": "x"}, TypeError, "alignment is 'x', expected int"),
        ({"alignment": 1.5}, TypeError, "alignment is 1.5, expected int"),
        ({"strategy": 3}, TypeError, "strategy is 3, expected str"),
        ({"strategy": "x"}, ValueError, "strategy is 'x', expected one of"),
        ({"budget": 1.5}, TypeError, "budget is 1.5, expected int | str | None"),
        ({"budget": "x"}, ValueError, "budget is 'x', expected bytes such as 4096"),
        ({"bounds": 3}, TypeError, "bounds is 3, expected str"),
        ({"hints": 3}, TypeError, "hints is 3, expected str"),
        ({"groups": "a=b"}, TypeError, "groups is 'a=b', expected tuple"),
        ({"reuse_outputs": 3}, TypeError, "reuse_outputs is 3, expected bool"),
        ({"device": 3}, TypeError, "device is 3, expected str"),
        ({"streams": 0}, ValueError, "streams is 0, expected 1 or more"),
    ],
    ids=str,
)
def test_invalid_options(name: str, options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        getattr(tensorplan, name)(tensorplan.read(PROGRAM), **options)


@pytest.mark.parametrize(
    "sizes", [3, "n=1", [("n", 1)], {"n": "a"}, {"n": 2.5}, {"n": None}], ids=str
)
def test_invalid_sizes(sizes: Any) -> None:
    with pytest.raises(TypeError, match=r"sizes? .*, expected a"):
        tensorplan.from_onnx(b"", sizes=sizes)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"donate_argnums": 5}, ValueError),
        ({"donate_argnums": "a"}, TypeError),
        ({"parameter_argnums": -1}, ValueError),
        ({"parameter_argnums": 1.5}, TypeError),
        ({"parameter_argnums": 0, "donate_argnums": 0}, ValueError),
    ],
    ids=str,
)
def test_invalid_argument_numbers(options: Any, error: Any) -> None:
    pytest.importorskip("jax")
    with pytest.raises(error):
        tensorplan.from_jax(lambda a: a + 1, np.ones(4, np.float32), **options)


@pytest.mark.parametrize(
    ("package", "extra", "function"),
    [
        ("jax", "jax", lambda: tensorplan.from_jax(abs, np.ones(4))),
        ("onnx", "onnx", lambda: tensorplan.from_onnx(b"\x08\x07")),
        ("tflite", "tflite", lambda: tensorplan.from_tflite(b"\0\0\0\0TFL3")),
        ("torch.export", "torch", lambda: tensorplan.from_torch(None)),
    ],
    ids=["jax", "onnx", "tflite", "torch"],
)
def test_error_for_a_missing_package(
    package: str,
    extra: str,
    function: Callable[[], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(LocatedError, match=rf"pip install '\.\[{extra}\]'"):
        function()


def test_error_in_a_module_with_a_mesh() -> None:
    """A callback makes JAX write an `sdy.mesh`, which also is a symbol, beside the
    function."""
    jax = pytest.importorskip("jax")

    def reduced(x: Any) -> Any:
        jax.debug.callback(lambda: None)
        return jax.lax.linalg.tridiagonal(x)[0]

    with pytest.raises(LocatedError, match=r"^[^\n]*ssytrd_ffi is not [^\n]*$"):
        tensorplan.from_jax(reduced, np.eye(4, dtype=np.float32))


@pytest.mark.parametrize("function", ["from_jax", "jit"])
def test_argument_numbers_are_integers(function: str) -> None:
    pytest.importorskip("jax")

    def double(x: Any) -> Any:
        return 2 * x

    def made() -> object:
        if function == "jit":
            return tensorplan.jit(double, donate_argnums=cast("Any", "x"))
        x = np.ones(4, np.float32)
        return tensorplan.from_jax(double, x, donate_argnums=cast("Any", ["x"]))

    with pytest.raises(TypeError, match="argument number is 'x', expected an integer"):
        made()
