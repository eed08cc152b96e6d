"""Tests gathers in fusion groups: their results are not stored, and their values are
right."""

import numpy as np
import pytest
from levels import inputs, planned_bytes
from modules import parse
from upstream import run_natively, with_each_mlir
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.dialects.tgraph.indexing import GatherOp
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.structure import FusionOp
from tensorplan.runtime.backends.mlir.executable import Tools
from tensorplan.runtime.executor import Executable

Case = tuple[str, str, str, str, str]
"""The types of the operand, the indices and the result; the attributes of the gather;
and the reduced dimensions, if any."""


def how(offset: str, collapsed: str, map: str, dim: int, sizes: str, more: str = ""):
    return (
        f"offset_dims = array<i64{offset}>, collapsed_slice_dims = array<i64"
        f"{collapsed}>, start_index_map = array<i64{map}>, index_vector_dim = {dim} "
        f": i64, slice_sizes = array<i64{sizes}>{more}"
    )


ROWS = how(": 2", ": 0", ": 0", 2, ": 1, 33")
BATCHES = how(
    ": 2",
    "",
    ": 1",
    2,
    ": 1, 2, 5",
    ", operand_batching_dims = array<i64: 0>"
    ", start_indices_batching_dims = array<i64: 0>",
).replace("offset_dims = array<i64: 2>", "offset_dims = array<i64: 2, 3>")

CASES: dict[str, Case] = {
    "rows": ("20x33xf32", "6x7xi32", "6x7x33xf32", ROWS, ""),
    "added rows": ("20x33xf32", "6x7xi32", "6x7x33xf32", ROWS, ": 1"),
    "columns of rows": ("20x33xf32", "6x7xi32", "6x7x33xf32", ROWS, ": 2"),
    "narrow rows": (
        "20x3xf16",
        "70xi8",
        "70x3xf16",
        how(": 1", ": 0", ": 0", 1, ": 1, 3"),
        ": 1",
    ),
    "elements": (
        "100xf64",
        "77x1xi64",
        "77xf64",
        how("", ": 0", ": 0", 1, ": 1"),
        "",
    ),
    "all elements": (
        "100xi32",
        "77x1xui8",
        "77xi32",
        how("", ": 0", ": 0", 1, ": 1"),
        ": 0",
    ),
    "of two dimensions": (
        "9x8x3xf32",
        "2x40xi32",
        "40x3xf32",
        how(": 1", ": 0, 1", ": 1, 0", 0, ": 1, 1, 3"),
        "",
    ),
    "windows before": (
        "5x30xf32",
        "19xi32",
        "4x19xf32",
        how(": 0", ": 1", ": 1", 1, ": 4, 1"),
        "",
    ),
    "complex rows": (
        "20x3xcomplex<f32>",
        "17xi32",
        "17x3xcomplex<f32>",
        how(": 1", ": 0", ": 0", 1, ": 1, 3"),
        "",
    ),
    "complex elements": (
        "20xcomplex<f32>",
        "17xi32",
        "17xcomplex<f32>",
        how("", ": 0", ": 0", 1, ": 1"),
        "",
    ),
    "batches": ("4x6x5xf32", "4x3xi32", "4x3x2x5xf32", BATCHES, ""),
    "batches of sums": ("4x6x5xf32", "4x3xi32", "4x3x2x5xf32", BATCHES, ": 1, 2, 3"),
}


def program(name: str) -> str:
    x, i, y, gather, dims = CASES[name]
    reduced = [int(d) for d in dims.strip(": ").split(",")] if dims else []
    *sizes, element = y.split("x", y.split("xcomplex")[0].count("x") + 1)
    if "complex" in y:
        sizes, element = y.split("xcomplex")[0].split("x"), "complex<f32>"
    kept = "x".join([*(s for d, s in enumerate(sizes) if d not in reduced), element])
    end = f"%s : tensor<{y}>"
    if reduced:
        end = f"%r : tensor<{kept}>"
    reduce = (
        f'%r = tgraph.reduce %s {{kind = "add", dimensions = array<i64{dims}>}} '
        f": (tensor<{y}>) -> tensor<{kept}>"
    )
    return f"""
func.func @main(%x: tensor<{x}>, %i: tensor<{i}>, %z: tensor<{y}>)
    -> {end.split(" : ")[1]} {{
  %g = tgraph.gather %x, %i {{{gather}}}
    : (tensor<{x}>, tensor<{i}>) -> tensor<{y}>
  %n = tgraph.negate %g : tensor<{y}>
  %s = tgraph.add %n, %z : tensor<{y}>
  {reduce if reduced else ""}
  func.return {end}
}}"""


def arguments(name: str) -> list[np.ndarray]:
    """Random arguments, with indices out of bounds, which are clamped."""
    x, i, z = inputs(parse(program(name)))
    info = np.iinfo(i.dtype)
    rng = np.random.default_rng(0)
    at = rng.integers(max(info.min, -9), min(info.max, 130), i.shape)
    return [x, at.astype(i.dtype), z]


@pytest.mark.parametrize("name", CASES)
def test_fused_gathers_agree_with_the_reference(name: str) -> None:
    module = parse(program(name))
    planned = tensorplan.plan(module)
    (group,) = (op for op in planned.walk() if isinstance(op, FusionOp))
    assert any(isinstance(op, GatherOp) for op in group.body.block.ops)
    assert not planned_bytes(planned)
    values = arguments(name)
    (want,) = run_reference(module, values)
    for native in (True, False):
        (got,) = Executable(planned, native=native)(*values)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("rows", [127, 128, 129])
def test_indices_that_cannot_exceed_the_largest_start(rows: int) -> None:
    module = parse(f"""
func.func @main(%x: tensor<{rows}xf32>, %i: tensor<256xi8>) -> tensor<256xf32> {{
  %0 = tgraph.gather %x, %i {{{how("", ": 0", ": 0", 1, ": 1")}}}
    : (tensor<{rows}xf32>, tensor<256xi8>) -> tensor<256xf32>
  %1 = tgraph.negate %0 : tensor<256xf32>
  func.return %1 : tensor<256xf32>
}}""")
    values = [np.arange(rows, dtype=np.float32), np.arange(-128, 128, dtype=np.int8)]
    (want,) = run_reference(module, values)
    (got,) = Executable(tensorplan.plan(module))(*values)
    np.testing.assert_array_equal(got, want)


@with_each_mlir
def test_lowered_fused_gathers_agree_with_the_reference(tools: Tools) -> None:
    names = [name for name in CASES if "complex" not in name and "f16" not in name]
    for name in names[:3]:
        module = parse(program(name))
        (want,) = run_reference(module, arguments(name))
        (got,) = run_natively(tensorplan.plan(module), arguments(name), tools)
        np.testing.assert_array_equal(got, want)


def test_gather_that_would_raise_the_peak_is_stored() -> None:
    """A gather of sixteen rows is stored if fusing it would keep the gathered matrix,
    which has no other reader, live for longer."""
    module = parse(f"""
func.func @main(%x: tensor<64x64xf32>, %i: tensor<16xi32>, %w: tensor<16x64xf32>)
    -> (tensor<16x64xf32>, tensor<64x64xf32>) {{
  %y = tgraph.sine %x : tensor<64x64xf32>
  %g = tgraph.gather %y, %i {{{how(": 1", ": 0", ": 0", 1, ": 1, 64")}}}
    : (tensor<64x64xf32>, tensor<16xi32>) -> tensor<16x64xf32>
  %c = tgraph.cosine %x : tensor<64x64xf32>
  %d = tgraph.dot_general %c, %c {{lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>}}
    : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = tgraph.add %g, %w : tensor<16x64xf32>
  func.return %s, %d : tensor<16x64xf32>, tensor<64x64xf32>
}}""")
    planned = tensorplan.plan(module)
    values = inputs(module)
    values[1] = np.arange(16, dtype=np.int32) * 5 - 7
    for got, want in zip(
        Executable(planned)(*values), run_reference(module, values), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)
    assert planned_bytes(planned) <= 16384


def test_several_groups_repeat_a_gather() -> None:
    """Two groups gather the same rows, in a factorization machine that needs the sums
    of rows and the sums of their squares."""
    module = parse(f"""
func.func @main(%x: tensor<100x32xf32>, %i: tensor<40x8xi32>) -> tensor<40x32xf32> {{
  %g = tgraph.gather %x, %i {{{ROWS.replace("33", "32")}}}
    : (tensor<100x32xf32>, tensor<40x8xi32>) -> tensor<40x8x32xf32>
  %s = tgraph.reduce %g {{kind = "add", dimensions = array<i64: 1>}}
    : (tensor<40x8x32xf32>) -> tensor<40x32xf32>
  %p = tgraph.multiply %g, %g : tensor<40x8x32xf32>
  %t = tgraph.reduce %p {{kind = "add", dimensions = array<i64: 1>}}
    : (tensor<40x8x32xf32>) -> tensor<40x32xf32>
  %q = tgraph.multiply %s, %s : tensor<40x32xf32>
  %r = tgraph.subtract %q, %t : tensor<40x32xf32>
  func.return %r : tensor<40x32xf32>
}}""")
    planned = tensorplan.plan(module)
    assert planned_bytes(planned) <= 40 * 32 * 4
    values = inputs(module)
    (want,) = run_reference(module, values)
    for native in (True, False):
        (got,) = Executable(planned, native=native)(*values)
        np.testing.assert_array_equal(got, want)


GROUPS = {
    "index vectors of two entries": """
func.func @main(%x: tensor<9x8xf32>, %i: tensor<6x7xf32>, %j: tensor<6x7xi8>)
    -> tensor<6x7xf32> {
  %0 = tgraph.floor %i : tensor<6x7xf32>
  %1 = tgraph.convert %0 : (tensor<6x7xf32>) -> tensor<6x7xi32>
  %2 = tgraph.convert %j : (tensor<6x7xi8>) -> tensor<6x7xi32>
  %3 = tgraph.add %1, %2 : tensor<6x7xi32>
  %4 = tgraph.broadcast_in_dim %1 {broadcast_dimensions = array<i64: 0, 1>}
    : (tensor<6x7xi32>) -> tensor<6x7x1xi32>
  %5 = tgraph.broadcast_in_dim %3 {broadcast_dimensions = array<i64: 0, 1>}
    : (tensor<6x7xi32>) -> tensor<6x7x1xi32>
  %6 = tgraph.concatenate %4, %5 {dimension = 2 : i64}
    : (tensor<6x7x1xi32>, tensor<6x7x1xi32>) -> tensor<6x7x2xi32>
  %7 = tgraph.gather %x, %6 {ELEMENTS}
    : (tensor<9x8xf32>, tensor<6x7x2xi32>) -> tensor<6x7xf32>
  %8 = tgraph.subtract %i, %0 : tensor<6x7xf32>
  %9 = tgraph.multiply %7, %8 : tensor<6x7xf32>
  func.return %9 : tensor<6x7xf32>
}""".replace("ELEMENTS", how("", ": 0, 1", ": 1, 0", 2, ": 1, 1")),
    "sums of rows": """
func.func @main(%x: tensor<20x33xf32>, %i: tensor<6x7xui8>) -> tensor<6x33xf32> {
  %0 = tgraph.iota {dimension = 0 : i64} : tensor<7xui8>
  %1 = tgraph.multiply %0, %0 : tensor<7xui8>
  %2 = tgraph.broadcast_in_dim %1 {broadcast_dimensions = array<i64: 1>}
    : (tensor<7xui8>) -> tensor<6x7xui8>
  %3 = tgraph.add %i, %2 : tensor<6x7xui8>
  %4 = tgraph.gather %x, %3 {ROWS}
    : (tensor<20x33xf32>, tensor<6x7xui8>) -> tensor<6x7x33xf32>
  %5 = tgraph.reduce %4 {kind = "add", dimensions = array<i64: 1>}
    : (tensor<6x7x33xf32>) -> tensor<6x33xf32>
  func.return %5 : tensor<6x33xf32>
}""".replace("ROWS", ROWS),
    "indices of indices": """
func.func @main(%x: tensor<20x5xf32>, %p: tensor<30xi32>, %i: tensor<11xi32>)
    -> tensor<11x5xf32> {
  %0 = tgraph.negate %i : tensor<11xi32>
  %1 = tgraph.gather %p, %0 {ELEMENTS}
    : (tensor<30xi32>, tensor<11xi32>) -> tensor<11xi32>
  %2 = tgraph.abs %1 : tensor<11xi32>
  %3 = tgraph.gather %x, %2 {ROWS}
    : (tensor<20x5xf32>, tensor<11xi32>) -> tensor<11x5xf32>
  func.return %3 : tensor<11x5xf32>
}""".replace("ELEMENTS", how("", ": 0", ": 0", 1, ": 1")).replace(
        "ROWS", how(": 1", ": 0", ": 0", 1, ": 1, 5")
    ),
}


@pytest.mark.parametrize("name", GROUPS)
def test_groups_compute_indices(name: str) -> None:
    module = parse(GROUPS[name])
    planned = tensorplan.plan(module)
    (group,) = (op for op in planned.walk() if isinstance(op, FusionOp))
    assert group.group()
    assert not planned_bytes(planned)
    values = _indexed(module)
    (want,) = run_reference(module, values)
    for native in (True, False):
        (got,) = Executable(planned, native=native)(*values)
        np.testing.assert_array_equal(got, want)


def _indexed(module: ModuleOp) -> list[np.ndarray]:
    """Random arguments. Indices are out of bounds, too."""
    rng = np.random.default_rng(0)
    first, *others = inputs(module)
    return [first, *(rng.integers(0, 30, x.shape).astype(x.dtype) for x in others)]


@with_each_mlir
def test_lowered_groups_compute_indices(tools: Tools) -> None:
    for text in GROUPS.values():
        module = parse(text)
        (want,) = run_reference(module, _indexed(module))
        (got,) = run_natively(tensorplan.plan(module), _indexed(module), tools)
        np.testing.assert_array_equal(got, want)


def test_sums_do_not_overwrite_indices_of_columns() -> None:
    """Each of the sums depends on all indices, which have their shape."""
    module = parse(f"""
func.func @main(%x: tensor<16x16xi32>, %i: tensor<16xi32>) -> tensor<16xi32> {{
  %s = tgraph.fusion(%x_1 = %x, %i_1 = %i)
    : (tensor<16x16xi32>, tensor<16xi32>) -> tensor<16xi32> {{
    %0 = tgraph.negate %i_1 : tensor<16xi32>
    %1 = tgraph.gather %x_1, %0 {{{how(": 0", ": 1", ": 1", 1, ": 16, 1")}}}
      : (tensor<16x16xi32>, tensor<16xi32>) -> tensor<16x16xi32>
    %2 = tgraph.reduce %1 {{kind = "add", dimensions = array<i64: 1>}}
      : (tensor<16x16xi32>) -> tensor<16xi32>
    tgraph.yield %2 : tensor<16xi32>
  }}
  func.return %s : tensor<16xi32>
}}""")
    (fusion,) = (op for op in module.walk() if isinstance(op, FusionOp))
    assert fusion.group()
    assert not fusion.overwritable()


def test_what_is_gathered_does_not_overwrite_its_indices() -> None:
    """As `plan-check` has it, which does not know at which positions they are read."""
    module = parse(f"""
func.func @main(%x: tensor<8x8xi32>, %t: tensor<9xi32>) -> tensor<8x8xi32> {{
  %i = tgraph.dot_general %x, %x {{lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>}}
    : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi32>
  %g = tgraph.fusion(%i_1 = %i, %t_1 = %t)
    : (tensor<8x8xi32>, tensor<9xi32>) -> tensor<8x8xi32> {{
    %0 = tgraph.negate %i_1 : tensor<8x8xi32>
    %1 = tgraph.gather %t_1, %0 {{{how("", ": 0", ": 0", 2, ": 1")}}}
      : (tensor<9xi32>, tensor<8x8xi32>) -> tensor<8x8xi32>
    tgraph.yield %1 : tensor<8x8xi32>
  }}
  %r = tgraph.dot_general %g, %g {{lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>}}
    : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi32>
  func.return %r : tensor<8x8xi32>
}}""")
    tensorplan.plan(module)  # checked
