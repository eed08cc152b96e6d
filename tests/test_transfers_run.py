"""Tests that programs with transfers compute the same values, whenever transfers copy.

The executor copies when a transfer starts. The tests also copy at the wait: in a sound
plan, this makes no difference. The reference is the program without spilling, which
other tests compare with the interpreter.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_files import MODELS, marked
from modules import parse, run
from spilled_programs import function_of
from upstream import needs_mlir
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

import tensorplan
from tensorplan.analysis.sizes import argument_bytes
from tensorplan.dialects.diagnostics import LocatedError, name_of
from tensorplan.dialects.dtypes import Array
from tensorplan.dialects.memory import asynchronous, dma_start
from tensorplan.dialects.target_memory import TARGET
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.passes import driver
from tensorplan.passes.convert.tgraph_to_linalg import ConvertTGraphToLinalg
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.plan.overlap_copies import PlanOverlapCopies
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.passes.plan.spill import PlanSpill
from tensorplan.passes.plan.strip_memory_spaces import PlanStripMemorySpaces
from tensorplan.runtime.backends.mlir.executable import MlirExecutable
from tensorplan.runtime.executor import Executable

PLAN = PlanMemory(reuse_outputs=False)
CAPACITIES = {
    "lstm_scan_train": 4200,
    "gpt2_scan_train": 20_000,
    "lenet_train": 400_000,
}
"""The capacity of the fast memory for each model: a little more than half of its arena,
in bytes."""


@cache
def on_memrefs(name: str) -> ModuleOp:
    module = tensorplan.read(MODELS / f"{name}.mlir")
    passes = PlanPipeline(reuse_outputs=False).passes()
    end = next(n for n, p in enumerate(passes) if isinstance(p, PlanSpill))
    driver.run(tensorplan.context(), module, passes[:end])
    return module


@cache
def with_transfers(name: str) -> ModuleOp:
    """The plan for a fast memory of `CAPACITIES[name]` bytes and a slower memory."""
    module = on_memrefs(name).clone()
    given, _ = argument_bytes(function_of(module), StringAttr("cpu:0"), {})
    copies = '#dlti.map<"bandwidth" = 1, "asynchronous" = true>'
    only = '["memref.copy", "memref.dma_*"]'
    target = parse(f"""module attributes {{{TARGET} = #dlti.target_system_spec<
      "cpu:0" = #dlti.target_device_spec<"capacity" = {given + CAPACITIES[name]},
        "copies" = #dlti.map<"cpu:1" = {copies}>>,
      "cpu:1" = #dlti.target_device_spec<"capacity" = {1 << 30}, "readers" = {only},
        "writers" = {only}, "copies" = #dlti.map<"cpu:0" = {copies}>>>}} {{}}""")
    module.attributes[TARGET] = target.attributes[TARGET]
    planned = run(module, PlanSpill(), PlanOverlapCopies(), PLAN)
    assert starts_of(planned)
    return planned


def starts_of(module: ModuleOp) -> Sequence[Operation]:
    return [op for op in module.walk() if isinstance(op, memref.DmaStartOp)]


def late(module: ModuleOp) -> ModuleOp:
    """The plan with copies at the waits instead of the starts."""
    module = module.clone()
    for start in starts_of(module):
        trait = asynchronous(start)
        assert trait is not None
        (wait,) = trait.waits_of(start)
        start.detach()
        Rewriter.insert_op(start, InsertPoint.before(wait))
    return module


def inputs(module: ModuleOp) -> Sequence[Array]:
    """Random positive arguments, since second moments must not be negative."""
    rng = np.random.default_rng(0)
    return [
        np.asarray(
            rng.uniform(0.01, 0.3, i.shape)
            if np.dtype(i.dtype).kind == "f"
            else rng.integers(0, 4, i.shape)
        ).astype(i.dtype)
        for i in signature(module).inputs
    ]


def values(module: ModuleOp, threads: int = 1, **options: Any) -> Sequence[Array]:
    """The results of a run. The order of sums depends on the number of threads."""
    return list(Executable(module, threads=threads, **options)(*inputs(module)))


def assert_same(found: Sequence[Array], expected: Sequence[Array]) -> None:
    for x, y in zip(found, expected, strict=True):
        assert np.array_equal(x, y)


@pytest.mark.parametrize("name", marked(CAPACITIES))
@pytest.mark.parametrize("native", [False, True])
def test_values_equal_those_without_spilling(name: str, native: bool) -> None:
    expected = values(run(on_memrefs(name), PLAN), native=native)
    assert all(np.isfinite(array).all() for array in expected)
    planned = with_transfers(name)
    assert_same(values(planned, native=native), expected)
    assert_same(values(late(planned), native=native), expected)
    assert_same(values(planned, native=native, sanitize=True), expected)
    in_threads = values(planned, 2, native=native, concurrent=True)
    for x, y in zip(in_threads, expected, strict=True):  # other order of sums
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5 * float(np.abs(y).max()))
    stripped = run(planned, PlanStripMemorySpaces())
    assert not starts_of(stripped)
    assert_same(values(stripped, native=native), expected)


def test_delayed_copy_changes_values() -> None:
    """Otherwise, these tests could not detect bytes that are reused before the wait."""
    planned = with_transfers("lenet_train")
    expected = values(planned)
    changed = 0
    for number in range(len(starts_of(planned))):
        other = planned.clone()
        last = function_of(other).body.block.last_op
        assert last is not None
        start = starts_of(other)[number]
        start.detach()
        Rewriter.insert_op(start, InsertPoint.before(last))
        found = zip(values(other), expected, strict=True)
        changed += not all(np.array_equal(x, y) for x, y in found)
    assert changed


@needs_mlir
def test_mlir_compiles_plans_without_memory_spaces() -> None:
    planned = with_transfers("lstm_scan_train")
    lowered = run(planned, ConvertTGraphToLinalg(), PlanStripMemorySpaces())
    found = MlirExecutable(lowered, signature(planned), optimized=False)
    for x, y in zip(found(*inputs(planned)), values(planned), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


PARTS = """
!x = memref<8x4xf32, "cpu:0">
!s = memref<4xf32, "cpu:1">
!m = memref<4x4xf32, strided<[4, 1], offset: 8>, "cpu:0">
!tag = memref<2xi32>
func.func @main(%x: !x, %y: !x {tgraph.result = 0 : i32}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  %tag = memref.alloca() : !tag
  tgraph.negate %x outs(%y) : !x
  scf.for %i = %c0 to %c8 step %c2 {
    %a = memref.alloc() : !s
    memref.dma_start %x[%i, %c0], %a[%c0], %c4, %tag[%c1] : !x, !s, !tag
    memref.dma_wait %tag[%c1], %c4 : !tag
    memref.dma_start %a[%c0], %y[%i, %c0], %c4, %tag[%c0] : !s, !x, !tag
    memref.dma_wait %tag[%c0], %c4 : !tag
    memref.dealloc %a : !s
  }
  %b = memref.alloc() : !s
  memref.dma_start %x[%c0, %c1], %b[%c2], %c2, %tag[%c0] : !x, !s, !tag
  memref.dma_wait %tag[%c0], %c2 : !tag
  memref.dma_start %x[%c6, %c2], %b[%c0], %c2, %tag[%c0] : !x, !s, !tag
  memref.dma_wait %tag[%c0], %c2 : !tag
  %part = memref.subview %y[2, 0] [4, 4] [1, 1] : !x to !m
  memref.dma_start %b[%c0], %part[%c1, %c0], %c4, %tag[%c0] : !s, !m, !tag
  memref.dma_wait %tag[%c0], %c4 : !tag
  memref.dealloc %b : !s
  func.return
}"""


def test_transfers_of_parts() -> None:
    """Transfers move consecutive elements from any index on, as MLIR writes them."""
    module = run(tensorplan.read(PARTS), PLAN)
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    expected = np.where(np.arange(8)[:, None] % 2, -x, x)
    expected[3] = [*x[6, 2:], *x[0, 1:3]]
    found: list[Array] = [Executable(module)(x)[0]]
    found.append(Executable(module, sanitize=True)(x)[0])
    found.append(Executable(module, threads=2, concurrent=True)(x)[0])
    for each in found:
        np.testing.assert_array_equal(each, expected)


@needs_mlir
def test_transfers_of_parts_in_mlir() -> None:
    module = run(tensorplan.read(PARTS), PLAN)
    lowered = run(module, ConvertTGraphToLinalg(), PlanStripMemorySpaces())
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    (found,) = MlirExecutable(lowered, signature(module), optimized=False)(x)
    np.testing.assert_array_equal(found, Executable(module)(x)[0])


def tile(row: int, column: int) -> str:
    """Lines that copy one tile of a matrix in and out."""
    n = f"{row}_{column}"
    tile = f'memref<8x8xf32, strided<[32, 1], offset: {32 * row + column}>, "cpu:1">'
    part = f"[{row}, {column}] [8, 8] [1, 1] : !x to {tile}"
    return f"""
      %from{n} = memref.subview %x{part}
      %to{n} = memref.subview %y{part}
      %a{n} = memref.alloc() : !t
      "memref.copy"(%from{n}, %a{n}) : ({tile}, !t) -> ()
      %b{n} = memref.alloc() : !t
      tgraph.exponential %a{n} outs(%b{n}) : !t
      "memref.copy"(%b{n}, %to{n}) : (!t, {tile}) -> ()"""


TILES = f"""
!t = memref<8x8xf32, "cpu:0">
!x = memref<16x32xf32, "cpu:1">
func.func @main(%x: !x, %y: !x {{tgraph.result = 0 : i32}}) {{
  {"".join(tile(row, column) for row in (0, 8) for column in (0, 8, 16, 24))}
  func.return
}}"""


def test_transfers_of_tiles_are_strided() -> None:
    module = tensorplan.read(TILES)
    copies = '#dlti.map<"bandwidth" = 1, "asynchronous" = true>'
    target = parse(f"""module attributes {{{TARGET} = #dlti.target_system_spec<
      "cpu:0" = #dlti.target_device_spec<"capacity" = 1024,
        "copies" = #dlti.map<"cpu:1" = {copies}>>,
      "cpu:1" = #dlti.target_device_spec<"capacity" = {1 << 30},
        "copies" = #dlti.map<"cpu:0" = {copies}>>>}} {{}}""")
    module.attributes[TARGET] = target.attributes[TARGET]
    planned = run(module, PlanOverlapCopies(), PLAN)
    strides = [len(dma.strides) for op in planned.walk() if (dma := dma_start(op))]
    assert strides
    assert {*strides} == {2}
    x = np.linspace(-1, 1, 512, dtype=np.float32).reshape(16, 32)
    for native, threads in ((True, 1), (False, 1), (True, 2)):
        run_it = Executable(
            planned, native=native, threads=threads, concurrent=threads > 1
        )
        (found,) = run_it(x)
        np.testing.assert_allclose(found, np.exp(x), rtol=1e-6)


STRIDED = """
func.func @main(%x: memref<8xf32, "cpu:0">, %y: memref<8xf32, "cpu:1">) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %tag = memref.alloca() : memref<1xi32>
  memref.dma_start %x[%c0], %y[%c0], %c4, %tag[%c0], %c4, %c4
    : memref<8xf32, "cpu:0">, memref<8xf32, "cpu:1">, memref<1xi32>
  memref.dma_wait %tag[%c0], %c4 : memref<1xi32>
  func.return
}"""
COLUMN = """
!c = memref<8xf32, strided<[2]>, "cpu:0">
func.func @main(%x: memref<8x2xf32, "cpu:0">, %y: memref<8xf32, "cpu:1">) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %tag = memref.alloca() : memref<1xi32>
  %c = memref.subview %x[0, 0] [8, 1] [1, 1] : memref<8x2xf32, "cpu:0"> to !c
  memref.dma_start %c[%c0], %y[%c0], %c4, %tag[%c0]
    : !c, memref<8xf32, "cpu:1">, memref<1xi32>
  memref.dma_wait %tag[%c0], %c4 : memref<1xi32>
  func.return
}"""


@pytest.mark.parametrize("text", [STRIDED, COLUMN])
def test_strides_of_unknown_memref_are_refused(text: str) -> None:
    """MLIR does not define whether the strides are those of the source or target."""
    module = tensorplan.read(text)
    with pytest.raises(LocatedError, match=r"at strides, expected consecutive"):
        Executable(module)
    with pytest.raises(
        LocatedError, match=r"expected (consecutive ones|elements that)"
    ):
        run(module, PlanStripMemorySpaces())


ANY = """
func.func @main(%x: memref<8xf32>, %i: index, %j: index, %n: index,
                %y: memref<8xf32> {tgraph.result = 0 : i32}) {
  %c0 = arith.constant 0 : index
  %tag = memref.alloca() : memref<1xi32>
  memref.dma_start %x[%i], %y[%j], %n, %tag[%c0]
    : memref<8xf32>, memref<8xf32>, memref<1xi32>
  memref.dma_wait %tag[%c0], %n : memref<1xi32>
  func.return
}"""


@pytest.mark.parametrize(
    ("at", "name"),
    [
        ((7, 0, 4), "4 elements from number 7 of its source"),
        ((0, 7, 4), "4 elements from number 7 of its target"),
        ((0, 7, 1), ""),
        ((-6, 0, 4), "4 elements from number -6 of its source"),
        ((0, -1, 1), "1 elements from number -1 of its target"),
        ((0, 0, -1), "-1 elements from number 0 of its source"),
        ((0, 0, 9), "9 elements from number 0 of its source"),
        ((8, 8, 0), ""),
    ],
)
def test_elements_out_of_range_are_refused(at: tuple[int, int, int], name: str) -> None:
    run_it = Executable(tensorplan.read(ANY))
    x, (i, j, n) = np.arange(1, 9, dtype=np.float32), at
    if not name:
        (found,) = run_it(x, *at)
        assert np.array_equal(found[j : j + n], x[i : i + n])
        return
    with pytest.raises(IndexError, match=f"{name} on, expected some of 0 to 8"):
        run_it(x, *at)


def test_elements_of_other_types_are_refused() -> None:
    other = ANY.replace("%y: memref<8xf32>", "%y: memref<8xi32>")
    module = tensorplan.read(
        other.replace("f32>, memref<8xf32>", "f32>, memref<8xi32>")
    )
    message = "moves elements of f32 to a memref of i32, expected the same type"
    for refuse in (Executable, lambda m: run(m, PlanStripMemorySpaces())):
        with pytest.raises(LocatedError, match=message):
            refuse(module)


def test_lowered_transfer_keeps_its_location() -> None:
    before = tensorplan.read(ANY)
    (start,) = (op for op in before.walk() if name_of(op) == "memref.dma_start")
    stripped = run(before, PlanStripMemorySpaces())
    made = [op for op in stripped.walk() if op.location == start.location]
    assert {name_of(op) for op in made} == {
        *("arith.constant", "arith.muli", "arith.addi"),
        *("memref.reinterpret_cast", "memref.copy"),
    }


X, Y, TAG = 'memref<8xf32, "cpu:0">', 'memref<8xf32, "cpu:1">', "memref<1xi32>"
INVALID = {
    "two memrefs": f"(%x, %n, %y, %n) : ({X}, index, {Y}, index) -> ()",
    "no number": f"(%x, %n, %y, %t, %n) : ({X}, index, {Y}, {TAG}, index) -> ()",
    "no index of a memref": f"(%x, %y, %n, %n, %t, %n) : ({X}, {Y}, index, index, "
    f"{TAG}, index) -> ()",
    "no index of the tag": f"(%x, %n, %y, %n, %n, %t) : ({X}, index, {Y}, index, "
    f"index, {TAG}) -> ()",
    "no rank": f"(%x, %n, %u, %n, %n, %t, %n) : ({X}, index, memref<*xf32>, index, "
    f"index, {TAG}, index) -> ()",
    "one number for strides": f"(%x, %n, %y, %n, %n, %t, %n, %n) : ({X}, index, {Y}, "
    f"index, index, {TAG}, index, index) -> ()",
}


@pytest.mark.parametrize("name", INVALID)
def test_unknown_operand_lists_are_refused(name: str) -> None:
    """xDSL's definition of the operation differs from MLIR's, so xDSL does not verify
    it."""
    text = (
        f"func.func @main(%x: {X}, %y: {Y}, %t: {TAG}, %u: memref<*xf32>, %n: index)"
        "{\n"
        f'"memref.dma_start"{INVALID[name]}\n'
        f'"memref.dma_wait"(%t, %n, %n) : ({TAG}, index, index) -> ()\nfunc.return\n}}'
    )
    module = tensorplan.read(text)
    run(module, PLAN)  # plan-check only emits a remark
    with pytest.raises(LocatedError, match="has operands other than two memrefs"):
        run(module, PlanStripMemorySpaces())


def test_plan_check_refuses_unknown_operand_lists_without_a_wait() -> None:
    module = tensorplan.read(
        f"func.func @main(%x: {X}, %y: {Y}, %n: index) {{\n"
        f"%t = memref.alloca() : {TAG}\n"
        f"memref.dma_start %x[%n, %n], %y[%n], %n, %t[%n] : {X}, {Y}, {TAG}\n"
        "func.return\n}"
    )
    with pytest.raises(LocatedError, match="has operands other than two memrefs"):
        run(module, PLAN)


def test_saved_program_with_transfers(tmp_path: Path) -> None:
    planned = with_transfers("lstm_scan_train")
    Executable(planned).save(tmp_path / "program.tp")
    loaded = tensorplan.load(tmp_path / "program.tp")
    assert_same(list(loaded(*inputs(planned))), values(planned))
