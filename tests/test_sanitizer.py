"""Tests sanitized runs: sound programs compute the same values, and errors of unsound
programs name the buffer, the operation and the location."""

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.dialects.dtypes import Array
from tensorplan.dialects.tgraph.elementwise import ElementwiseOp, TanhOp
from tensorplan.frontends import reading
from tensorplan.runtime.backends.numpy.base import KERNELS
from tensorplan.runtime.calls import Call
from tensorplan.runtime.executor import Executable, PlanViolation
from tensorplan.runtime.pool import Scratch


def parse(text: str) -> ModuleOp:
    module = reading.read(text.encode(), "plan.mlir", tensorplan.context())
    module.verify()
    return module


# %b is computed while %a is still live, and is then used together with %a.
TWO = """\
!t = memref<16xf32, "cpu:0">
!arena = memref<SIZExi8, "cpu:0">
func.func @main(%x: !t, %r: !t {tgraph.result = 0 : i32}) {
  %arena = memref.alloc() {alignment = 64 : i64} : !arena
  %at_a = arith.constant 0 : index
  %at_b = arith.constant OFFSET : index
  %a = memref.view %arena[%at_a][] : !arena to !t
  %b = memref.view %arena[%at_b][] : !arena to !t
  tgraph.negate %x outs(%a) : !t
  BODY
  memref.dealloc %arena : !arena
  func.return
}
"""
OVERLAP = """\
  tgraph.exponential %x outs(%b) : !t
  tgraph.tanh %b outs(%b) : !t
  tgraph.add %a, %x outs(%r) : !t
"""
READ_AGAIN = """\
  tgraph.tanh %a outs(%r) : !t
  tgraph.exponential %x outs(%b) : !t
  tgraph.tanh %b outs(%r) : !t
"""


def two(body: str, offset: int, size: int = 192) -> ModuleOp:
    text = TWO.replace("BODY", body.strip()).replace("OFFSET", str(offset))
    return parse(text.replace("SIZE", str(size)))


X = np.linspace(-1, 1, 16, dtype=np.float32)


def violation(module: ModuleOp) -> PlanViolation:
    with pytest.raises(PlanViolation) as caught:
        Executable(module, sanitize=True)(X)
    return caught.value


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize(
    ("body", "offset"), [(OVERLAP, 64), (OVERLAP, 128), (READ_AGAIN, 0)]
)
def test_sound_plan_computes_the_same_values(
    body: str, offset: int, native: bool
) -> None:
    module = two(body, offset)
    (want,) = Executable(module, native=native)(X)
    sanitized = Executable(module, native=native, sanitize=True)
    for _ in range(2):
        (got,) = sanitized(X)
        assert np.array_equal(got, want)


def test_overlapping_buffers() -> None:
    module = two(OVERLAP, 32)
    assert np.isfinite(Executable(module)(X)[0]).all()  # but wrong
    error = violation(module)
    assert str(error) == (
        "plan.mlir:12:3: tgraph.add (step 8) reads %a (bytes [0, 64) of the arena on "
        "cpu:0), but byte 32 was overwritten by tgraph.tanh (step 7) at plan.mlir:11:3,"
        " in %b (bytes [32, 96) of the arena on cpu:0)"
    )
    assert (error.buffer, error.step, error.op.name) == ("%a", 8, "tgraph.add")


@pytest.mark.parametrize(
    ("body", "offset", "message"),
    [
        (
            "tgraph.add %a, %b outs(%r) : !t",
            64,
            r":10:3: tgraph.add \(step 6\) reads %b .*, but byte 64 was never written",
        ),
        (
            "tgraph.tanh %a outs(%b) : !t",
            64,
            r"result 0 is %r \(bytes \[0, 64\) of argument 1\), but byte 0 was never",
        ),
        (
            "tgraph.tanh %a outs(%b) : !t\n  tgraph.tanh %b outs(%r) : !t",
            32,
            r":10:3: tgraph.tanh \(step 6\) writes %b \(bytes \[32, .* over "
            r"its input %a",
        ),
        (
            "tgraph.tanh %a outs(%r) : !t\n  memref.dealloc %arena : !arena\n"
            "  tgraph.tanh %a outs(%r) : !t",
            64,
            r":12:3: tgraph.tanh \(step 8\) reads %a .* after it was freed",
        ),
    ],
    ids=["unwritten", "unwritten result", "over its input", "freed arena"],
)
def test_unsound_programs(body: str, offset: int, message: str) -> None:
    with pytest.raises(PlanViolation, match=message):
        Executable(two(body, offset), sanitize=True)


BRANCHES = """\
  %flag = arith.constant false
  scf.if %flag {
    THEN
  } else {
    ELSE
  }
  tgraph.negate %a outs(%r) : !t
"""
TO_A = "tgraph.tanh %x outs(%a) : !t"
TO_B = "tgraph.exponential %x outs(%b) : !t"


@pytest.mark.parametrize("last", [TO_A, ""])
def test_both_branches_leave_the_contents_that_are_read(last: str) -> None:
    """%b shares bytes with %a, and is dead before the same branch writes %a."""
    branches = BRANCHES.replace("THEN", last).replace("ELSE", f"{TO_B}\n{TO_A}")
    module = two(branches, 0)
    (got,) = Executable(module, sanitize=True)(X)
    np.testing.assert_allclose(got, -np.tanh(X), rtol=1e-6)


@pytest.mark.parametrize("before", [TO_A, ""])
def test_branch_that_overwrites_the_contents_that_are_read(before: str) -> None:
    branches = BRANCHES.replace("THEN", TO_B).replace("ELSE", f"{before}\n{TO_B}")
    error = violation(two(branches, 0))
    assert "byte 0 was overwritten by scf.if (step 7)" in str(error)


def test_alignment() -> None:
    error = violation(two(OVERLAP, 96))
    assert error.message == (
        "%b (bytes [96, 160) of the arena on cpu:0) has offset 96, expected a multiple "
        "of 64"
    )
    assert error.buffer == "%b"


def test_output_in_place_of_an_input() -> None:
    same = "tgraph.tanh %a outs(%b) : !t\n  tgraph.tanh %b outs(%r) : !t"
    (got,) = Executable(two(same, 0), sanitize=True)(X)
    np.testing.assert_allclose(got, np.tanh(np.tanh(-X)), rtol=1e-6)
    turned = """
      tgraph.reverse %a outs(%b) {dimensions = array<i64: 0>} : (!t) -> !t
      tgraph.tanh %b outs(%r) : !t"""
    Executable(two(turned, 64), sanitize=True)(X)
    error = violation(two(turned, 0))
    assert "tgraph.reverse (step 6) writes %b" in error.message


def test_parts_of_a_buffer() -> None:
    """A copy to the even elements only leaves the odd ones unwritten."""
    halves = """
!half = memref<8xf32, "cpu:0">
!even = memref<8xf32, strided<[2]>, "cpu:0">
!odd = memref<8xf32, strided<[2], offset: 1>, "cpu:0">
!t = memref<16xf32, "cpu:0">
func.func @main(%x: !half, %r: !t {tgraph.result = 0 : i32}) {
  %a = memref.alloc() : !t
  %even = memref.reinterpret_cast %a to offset: [0], sizes: [8], strides: [2]
    : !t to !even
  %odd = memref.reinterpret_cast %a to offset: [1], sizes: [8], strides: [2]
    : !t to !odd
  "memref.copy"(%x, %even) : (!half, !even) -> ()
  "memref.copy"(%x, %odd) : (!half, !odd) -> ()
  "memref.copy"(%a, %r) : (!t, !t) -> ()
  memref.dealloc %a : !t
  func.return
}"""
    x = np.arange(8, dtype=np.float32)
    (got,) = Executable(parse(halves), sanitize=True)(x)
    assert got.tolist() == x.repeat(2).tolist()
    one = halves.replace('  "memref.copy"(%x, %odd) : (!half, !odd) -> ()\n', "")
    with pytest.raises(PlanViolation, match=r"reads %a .* byte 4 was never written"):
        Executable(parse(one), sanitize=True)


def test_operand_read_for_its_shape_may_be_unwritten() -> None:
    module = two("tgraph.full_like %b outs(%r) {value = 1.0 : f32} : (!t) -> !t", 64)
    assert Executable(module, sanitize=True)(X)[0].tolist() == [1] * 16


# Kernels that access memory outside of their operands.


def stray(monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    """Makes tanh also write the byte at `place` relative to the start of its output."""
    tanh = KERNELS[ElementwiseOp]

    def kernel(
        op: TanhOp, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
    ) -> list[Call]:
        memory = outs[0]
        while isinstance(memory.base, np.ndarray):
            memory = memory.base
        at = outs[0].ctypes.data - memory.ctypes.data + place
        return [*tanh(op, inputs, outs, scratch), (memory.__setitem__, (at, 77))]

    monkeypatch.setitem(KERNELS, TanhOp, kernel)


SPREAD = """\
  tgraph.tanh %x outs(%b) : !t
  tgraph.add %a, %b outs(%r) : !t
"""


@pytest.mark.parametrize(
    ("place", "where"),
    [
        (-128, r"byte 0 of the arena on cpu:0, which is in %a \(bytes \[0, 64\)"),
        (-1, "byte 127 of the arena on cpu:0, which is in no buffer"),
        (64, "byte 192 of the arena on cpu:0, which is in no buffer"),
    ],
)
def test_kernel_that_writes_out_of_bounds(
    monkeypatch: pytest.MonkeyPatch, place: int, where: str
) -> None:
    stray(monkeypatch, place)
    module = two(SPREAD, 128, 256)
    Executable(module, native=False)(X)  # a plain run does not detect it
    program = Executable(module, native=False, sanitize=True)
    message = rf"plan.mlir:10:3: tgraph.tanh \(step 6\) has changed {where}"
    with pytest.raises(PlanViolation, match=message):
        program(X)


def test_kernel_that_reads_out_of_bounds_gets_poison(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tanh = KERNELS[ElementwiseOp]

    def kernel(
        op: TanhOp, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
    ) -> list[Call]:
        beyond = np.lib.stride_tricks.as_strided(inputs[0], (17,))[1:]
        return tanh(op, [beyond], outs, scratch)

    monkeypatch.setitem(KERNELS, TanhOp, kernel)
    module = two("tgraph.tanh %a outs(%r) : !t", 128, 256)
    poisoned = Executable(module, native=False, sanitize=True)(X)[0]
    assert poisoned[-1] == np.tanh(np.full(1, 0xA5A5A5A5, np.uint32).view(np.float32))
    after = two("tgraph.tanh %a outs(%r) : !t", 64, 128)
    assert np.isnan(Executable(after, native=False, sanitize=True)(X)[0][-1])
