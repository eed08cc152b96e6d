"""Tests native Fourier transforms: they give NumPy's values."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from modules import parse
from xdsl.dialects.builtin import (
    ComplexType,
    DenseArrayBase,
    StringAttr,
    TensorType,
    f32,
    f64,
    i64,
)
from xdsl.ir import Block

import tensorplan
from tensorplan.dialects.dtypes import Array
from tensorplan.dialects.tgraph.spectral import FftOp
from tensorplan.runtime.backends.jit import llvm
from tensorplan.runtime.backends.jit.records import Record
from tensorplan.runtime.backends.native import fourier
from tensorplan.runtime.backends.native.elements import part_type
from tensorplan.runtime.calls import Call
from tensorplan.runtime.executor import Executable
from tensorplan.runtime.pool import Scratch

pytestmark = pytest.mark.skipif(not llvm.is_available(), reason="needs llvmlite")

KINDS = ("FFT", "IFFT", "RFFT", "IRFFT")
PRECISE = {4: 1e-6, 8: 1e-14}
"""The error that is allowed, relative to the largest number, by bytes of a part."""

SIZES = [2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 24, 26, 32, 50, 64, 77, 100, 128, 143, 256]
SIZES += [512, 1000, 2048]


def numbers(shape: Sequence[int], part: str, *, is_real: bool) -> Array:
    rng = np.random.default_rng(0)
    real, imag = rng.standard_normal((2, *shape))
    return (real if is_real else real + 1j * imag).astype(
        part if is_real else f"c{2 * int(part[1])}"
    )


def operation(kind: str, length: Sequence[int], x: Array) -> FftOp:
    part = f64 if part_type(x.dtype).itemsize == 8 else f32
    type = TensorType(ComplexType(part) if kind != "RFFT" else part, x.shape)
    operand = Block(arg_types=[type]).args[0]
    properties = {
        "fft_type": StringAttr(kind),
        "length": DenseArrayBase.from_list(i64, list(length)),
    }
    given = FftOp.create(operands=[operand], properties=properties)
    types = given.result_types_of([type])
    return FftOp.create(operands=[operand], properties=properties, result_types=types)


def run(
    kind: str, x: Array, out: Array, length: Sequence[int], threads: int = 1
) -> None:
    """Runs native calls whose scratch memory has arbitrary contents."""
    op = operation(kind, length, x)

    def made(scratch: Scratch) -> list[Call]:
        scratch.reset()
        calls = fourier.calls_of(op, x, out, scratch)
        assert calls is not None
        return calls

    scratch = Scratch("cpu:0", threads)
    made(scratch)
    calls = made(scratch)
    scratch.pool.memory.fill(0xFF)
    assert all(isinstance(function, Record) for function, _ in calls)
    for function, arguments in calls:
        function(*arguments)


def assert_transformed(
    kind: str, x: Array, length: Sequence[int], threads: int = 1
) -> None:
    """Compares with NumPy."""
    axes = tuple(range(-len(length), 0))
    want = getattr(np.fft, f"{kind.lower()}n")(x, list(length), axes)
    part = part_type(x.dtype)
    out = np.empty(want.shape, part if kind == "IRFFT" else f"c{2 * part.itemsize}")
    run(kind, x, out, length, threads)
    assert_close(out, want)


def assert_close(got: Array, want: Array) -> None:
    error = PRECISE[part_type(got.dtype).itemsize] * np.max(np.abs(want))
    np.testing.assert_allclose(got, want, rtol=0, atol=error)


def given(kind: str, batch: Sequence[int], length: Sequence[int], part: str) -> Array:
    shape = [*batch, *length]
    if kind == "IRFFT":
        shape[-1] = shape[-1] // 2 + 1
    return numbers(shape, part, is_real=kind == "RFFT")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_one_transform(kind: str, size: int) -> None:
    for part in ("f4", "f8"):
        assert_transformed(kind, given(kind, (), [size], part), [size])


@pytest.mark.parametrize("batch", [(3,), (17,), (2, 9)])
@pytest.mark.parametrize("size", [6, 9, 16, 64, 75])
@pytest.mark.parametrize("kind", KINDS)
def test_several_transforms(kind: str, size: int, batch: Sequence[int]) -> None:
    assert_transformed(kind, given(kind, batch, [size], "f4"), [size])


@pytest.mark.parametrize("length", [(8, 8), (6, 33), (7, 4, 12), (3, 16, 20)])
@pytest.mark.parametrize("kind", KINDS)
def test_several_dimensions(kind: str, length: Sequence[int]) -> None:
    assert_transformed(kind, given(kind, (2,), length, "f8"), length)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [(256,), (64, 70)])
def test_threads(kind: str, length: Sequence[int]) -> None:
    assert_transformed(kind, given(kind, (50,), length, "f4"), length, threads=2)


@pytest.mark.parametrize("kind", ["FFT", "IFFT"])
def test_in_place(kind: str) -> None:
    for shape in ((16,), (512,), (5, 128), (20, 15)):
        x = given(kind, shape[:-1], shape[-1:], "f4")
        want = getattr(np.fft, kind.lower())(x)
        run(kind, x, x, shape[-1:])
        assert_close(x, want)


@pytest.mark.parametrize("kind", KINDS)
def test_strides(kind: str) -> None:
    for order in ((0, 2, 1), (1, 0, 2), (2, 1, 0)):
        x = np.transpose(given(kind, (6, 21), [24], "f4"), order)
        size = 2 * (x.shape[-1] - 1) if kind == "IRFFT" else x.shape[-1]
        assert_transformed(kind, x, [size])


def test_imaginary_parts_of_both_ends_are_ignored() -> None:
    """As by NumPy, and by XLA."""
    x = np.full(5, 1 + 1j, np.complex64)
    for size in (8, 9):
        out = np.empty(size, np.float32)
        run("IRFFT", x, out, [size])
        assert_close(out, np.fft.irfft(x, size))


def test_large_prime_factors_are_left_to_libraries() -> None:
    x, scratch = given("FFT", (), [34], "f4"), Scratch("cpu:0")
    op = operation("FFT", [34], x)
    assert fourier.calls_of(op, x, x.copy(), scratch) is None


def test_saved_programs(tmp_path: Path) -> None:
    text = """func.func @main(%x: tensor<40xcomplex<f32>>) -> tensor<40xcomplex<f32>> {
      %r = tgraph.fft %x {fft_type = "FFT", length = array<i64: 40>}
          : (tensor<40xcomplex<f32>>) -> tensor<40xcomplex<f32>>
      func.return %r : tensor<40xcomplex<f32>>
    }"""
    path, x = tmp_path / "program.plan", given("FFT", (), [40], "f4")
    compiled = tensorplan.compile(parse(text))
    assert isinstance(compiled, Executable)
    assert not compiled.fallbacks
    tensorplan.save(compiled, path)
    (got,) = tensorplan.load(path)(x)
    assert_close(got, np.fft.fft(x))
