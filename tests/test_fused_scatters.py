"""Tests fusion groups that end in a scatter: neither indices nor updates are stored,
and updates are combined in the order of the reference."""

import numpy as np
import pytest
from levels import inputs, planned_bytes
from modules import parse
from upstream import run_natively, with_each_mlir
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.dialects.tgraph.indexing import ScatterOp
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.structure import FusionOp
from tensorplan.runtime.backends.mlir.executable import Tools
from tensorplan.runtime.executor import Executable


def how(kind: str, window: str, inserted: str, map: str, dim: int, more: str = ""):
    return (
        f'kind = "{kind}", update_window_dims = array<i64{window}>, '
        f"inserted_window_dims = array<i64{inserted}>, scatter_dims_to_operand_dims = "
        f"array<i64{map}>, index_vector_dim = {dim} : i64{more}"
    )


ROWS = how("add", ": 1", ": 0", ": 0", 1)
BATCHING = (
    ", input_batching_dims = array<i64: 1>"
    ", scatter_indices_batching_dims = array<i64: 0>"
)

CASES = {
    # The operand, the indices, the updates, and the scatter.
    "elements": ("7xf32", "300xi8", "300xf32", how("add", "", ": 0", ": 0", 1)),
    "products": ("7xf64", "50xi64", "50xf64", how("multiply", "", ": 0", ": 0", 1)),
    "extremes": ("7xf16", "90xui8", "90xf16", how("maximum", "", ": 0", ": 0", 1)),
    "bytes": ("7xi8", "300xi16", "300xi8", how("minimum", "", ": 0", ": 0", 1)),
    "truths": ("7xi1", "70xi32", "70xi1", how("or", "", ": 0", ": 0", 1)),
    "complex sums": (
        "7xcomplex<f32>",
        "21xi32",
        "21xcomplex<f32>",
        how("add", "", ": 0", ": 0", 1),
    ),
    "rows": ("20x67xbf16", "40xi32", "40x67xbf16", ROWS),
    "last rows": ("20x7xf32", "40xi32", "40x7xf32", ROWS.replace("add", "replace")),
    "columns": ("5x20xf32", "40xi32", "5x40xf32", how("add", ": 0", ": 1", ": 1", 1)),
    "windows that overlap": (
        "9x30xf32",
        "12x1xi32",
        "12x4x30xf32",
        how("add", ": 1, 2", "", ": 0", 1),
    ),
    "batches": (
        "6x5xf32",
        "5x40xi32",
        "5x40xf32",
        how("add", "", ": 0", ": 0", 2, BATCHING),
    ),
    "index vectors without entries": (
        "5x1xf32",
        "25x5x0xi32",
        "25x5xf32",
        how("replace", "", ": 1", "", 2, BATCHING.translate({48: "1", 49: "0"})),
    ),
}


def program(name: str) -> str:
    operand, indices, updates, scatter = CASES[name]
    change = "not" if updates.endswith("xi1") else "negate"
    return f"""
func.func @main(%x: tensor<{operand}>, %i: tensor<{indices}>, %u: tensor<{updates}>)
    -> tensor<{operand}> {{
  %0 = tgraph.abs %i : tensor<{indices}>
  %1 = tgraph.{change} %u : tensor<{updates}>
  %2 = tgraph.scatter %x, %0, %1 {{{scatter}}}
    : (tensor<{operand}>, tensor<{indices}>, tensor<{updates}>) -> tensor<{operand}>
  func.return %2 : tensor<{operand}>
}}""".replace("tgraph.abs", "tgraph.not" if "ui" in indices else "tgraph.abs")


GROUPS = {
    "a histogram": """
func.func @main(%x: tensor<500xf32>) -> tensor<9xf32> {
  %0 = tgraph.convert %x : (tensor<500xf32>) -> tensor<500xi32>
  %1 = tgraph.broadcast_in_dim %0 {broadcast_dimensions = array<i64: 0>}
    : (tensor<500xi32>) -> tensor<500x1xi32>
  %2 = tgraph.exponential %x : tensor<500xf32>
  %3 = tgraph.constant<0.0 : f32> : tensor<9xf32>
  %4 = tgraph.scatter %3, %1, %2 {ELEMENTS}
    : (tensor<9xf32>, tensor<500x1xi32>, tensor<500xf32>) -> tensor<9xf32>
  func.return %4 : tensor<9xf32>
}""".replace("ELEMENTS", how("add", "", ": 0", ": 0", 1)),
    "index vectors of two entries": """
func.func @main(%x: tensor<4x5xf32>, %i: tensor<6x7xi32>, %j: tensor<6x7xi32>)
    -> tensor<4x5xf32> {
  %0 = tgraph.add %i, %j : tensor<6x7xi32>
  %1 = tgraph.broadcast_in_dim %0 {broadcast_dimensions = array<i64: 0, 1>}
    : (tensor<6x7xi32>) -> tensor<6x7x1xi32>
  %2 = tgraph.broadcast_in_dim %i {broadcast_dimensions = array<i64: 0, 1>}
    : (tensor<6x7xi32>) -> tensor<6x7x1xi32>
  %3 = tgraph.concatenate %1, %2 {dimension = 2 : i64}
    : (tensor<6x7x1xi32>, tensor<6x7x1xi32>) -> tensor<6x7x2xi32>
  %4 = tgraph.convert %j : (tensor<6x7xi32>) -> tensor<6x7xf32>
  %5 = tgraph.scatter %x, %3, %4 {ELEMENTS}
    : (tensor<4x5xf32>, tensor<6x7x2xi32>, tensor<6x7xf32>) -> tensor<4x5xf32>
  func.return %5 : tensor<4x5xf32>
}""".replace("ELEMENTS", how("add", "", ": 0, 1", ": 1, 0", 2)),
    "messages in a graph": """
func.func @main(%x: tensor<20x33xf32>, %i: tensor<60xi32>, %j: tensor<60xi32>)
    -> tensor<20x33xf32> {
  %0 = tgraph.gather %x, %i {offset_dims = array<i64: 1>,
    collapsed_slice_dims = array<i64: 0>, start_index_map = array<i64: 0>,
    index_vector_dim = 1 : i64, slice_sizes = array<i64: 1, 33>}
    : (tensor<20x33xf32>, tensor<60xi32>) -> tensor<60x33xf32>
  %1 = tgraph.multiply %0, %0 : tensor<60x33xf32>
  %2 = tgraph.scatter %x, %j, %1 {ROWS}
    : (tensor<20x33xf32>, tensor<60xi32>, tensor<60x33xf32>) -> tensor<20x33xf32>
  func.return %2 : tensor<20x33xf32>
}""".replace("ROWS", ROWS),
}

TEXTS = {**{name: program(name) for name in CASES}, **GROUPS}


def assert_close(name: str, got: np.ndarray, want: np.ndarray) -> None:
    """Only exponentials are not exact."""
    assert got.dtype == want.dtype
    tolerance = 1e-6 if name == "a histogram" else 0
    x, y = (array.astype(np.complex128) for array in (got, want))
    np.testing.assert_allclose(x, y, rtol=tolerance)


def values_of(module: ModuleOp) -> list[np.ndarray]:
    """Random arguments. Indices are out of bounds, too."""
    rng = np.random.default_rng(0)
    return [
        rng.integers(-1, 8, x.shape).astype(x.dtype)
        if x.dtype.kind in "iu" or index
        else x
        for index, x in enumerate(inputs(module))
    ]


@pytest.mark.parametrize("name", TEXTS)
def test_updates_and_indices_are_not_stored(name: str) -> None:
    module = parse(TEXTS[name])
    planned = tensorplan.plan(module)
    (fusion,) = (op for op in planned.walk() if isinstance(op, FusionOp))
    group = fusion.group()
    assert group
    assert isinstance(group.root, ScatterOp)
    assert not planned_bytes(planned)
    values = values_of(module)
    (want,) = run_reference(module, values)
    for native in (True, False):
        run = Executable(planned, native=native)
        assert run.scratch_bytes == 0 or not native
        (got,) = run(*values)
        assert_close(name, got, want)


@with_each_mlir
def test_lowered_groups_scatter(tools: Tools) -> None:
    for name in ("elements", "windows that overlap", "batches", *GROUPS):
        module = parse(TEXTS[name])
        values = values_of(module)
        (want,) = run_reference(module, values)
        (got,) = run_natively(tensorplan.plan(module), values, tools)
        assert_close(name, got, want)


@pytest.mark.parametrize("read", ["", "index", "update"])
def test_operand_is_overwritten_if_nothing_else_reads_it(read: str) -> None:
    index = "%x_1" if read == "index" else "%y_1"
    update = "%x_1" if read == "update" else "%y_1"
    module = parse(f"""
func.func @main(%x: tensor<9xf32>, %y: tensor<9xf32>) -> tensor<9xf32> {{
  %s = tgraph.fusion(%x_1 = %x, %y_1 = %y)
    : (tensor<9xf32>, tensor<9xf32>) -> tensor<9xf32> {{
    %0 = tgraph.convert {index} : (tensor<9xf32>) -> tensor<9xi32>
    %1 = tgraph.negate {update} : tensor<9xf32>
    %2 = tgraph.scatter %x_1, %0, %1 {{{how("add", "", ": 0", ": 0", 1)}}}
      : (tensor<9xf32>, tensor<9xi32>, tensor<9xf32>) -> tensor<9xf32>
    tgraph.yield %2 : tensor<9xf32>
  }}
  func.return %s : tensor<9xf32>
}}""")
    (fusion,) = (op for op in module.walk() if isinstance(op, FusionOp))
    assert fusion.group()
    assert fusion.overwritable() == ([] if read else [0])
    convert = fusion.body.block.first_op
    assert convert
    convert.operands[0] = fusion.body.block.args[0]
    assert 0 not in fusion.overwritable()  # the answer from before is not kept


def test_several_scatters_repeat_updates_and_indices() -> None:
    """Each of two groups computes the updates and the indices, as each gather does in
    the gradient of the distances between rows of a graph."""
    text = """
func.func @main(%x: tensor<200x8xf32>, %i: tensor<200xi32>)
    -> (tensor<9x8xf32>, tensor<9x8xf32>) {
  %u = tgraph.multiply %x, %x : tensor<200x8xf32>
  %j = tgraph.negate %i : tensor<200xi32>
  %v = tgraph.negate %u : tensor<200x8xf32>
  %z = tgraph.constant<0.0 : f32> : tensor<9x8xf32>
  %0 = tgraph.scatter %z, %j, %u {ROWS}
    : (tensor<9x8xf32>, tensor<200xi32>, tensor<200x8xf32>) -> tensor<9x8xf32>
  %1 = tgraph.scatter %z, %j, %v {ROWS}
    : (tensor<9x8xf32>, tensor<200xi32>, tensor<200x8xf32>) -> tensor<9x8xf32>
  func.return %0, %1 : tensor<9x8xf32>, tensor<9x8xf32>
}""".replace("ROWS", ROWS)
    module = parse(text)
    planned = tensorplan.plan(module)
    assert not planned_bytes(planned)
    values = values_of(module)
    want = run_reference(module, values)
    for got in zip(Executable(planned)(*values), want, strict=True):
        np.testing.assert_array_equal(*got)
