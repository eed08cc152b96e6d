"""Tests programs without a plan, served by allocators, and programs sharing pools."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.dtypes import Array
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.runtime.allocators import ALLOCATORS
from tensorplan.runtime.executor import Executable, PlanViolation
from tensorplan.runtime.pool import ALIGNMENT, Pool, Scratch


def parse(text: str) -> ModuleOp:
    module = Parser(tensorplan.context(), text).parse_module()
    module.verify()
    return module


# A chain of five operations on four buffers, of which two are live at a time.
CHAIN = """
!t = memref<1024xf32, "cpu:0">
func.func @main(%x: !t, %r: !t {tgraph.result = 0 : i32}) {
  %a = memref.alloc() : !t
  tgraph.tanh %x outs(%a) : !t
  %b = memref.alloc() {alignment = 1024 : i64} : !t
  tgraph.tanh %a outs(%b) : !t
  memref.dealloc %a : !t
  %c = memref.alloc() : !t
  tgraph.tanh %b outs(%c) : !t
  memref.dealloc %b : !t
  %d = memref.alloca() : !t
  tgraph.tanh %c outs(%d) : !t
  memref.dealloc %c : !t
  tgraph.tanh %d outs(%r) : !t
  func.return
}
"""
X = np.linspace(-2, 2, 1024, dtype=np.float32)


def chain_of_x() -> Array:
    want = X
    for _ in range(5):
        want = np.tanh(want)
    return want


@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize("sanitize", [False, True])
def test_program_without_a_plan(
    allocator: str, sanitize: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if allocator != "bfc":  # others have large regions, and a sanitized run reads them
        small = partial(ALLOCATORS[allocator], allocate_size=1 << 24)
        monkeypatch.setitem(ALLOCATORS, allocator, small)
    program = Executable(parse(CHAIN), sanitize=sanitize, allocator=allocator)
    for _ in range(2):
        (got,) = program(X)
        np.testing.assert_allclose(got, chain_of_x(), rtol=1e-6)
    (pool,) = program.pools
    assert pool.bytes == 0
    statistics = pool.allocator.statistics()
    assert statistics.num_allocs == 4
    assert statistics.bytes_in_use == 0
    block = 16384 if allocator == "buddy" else 4096
    assert statistics.peak_bytes_in_use == 2 * block


def test_unknown_allocator() -> None:
    with pytest.raises(ValueError, match="allocator is 'best', expected one of bfc, "):
        Executable(parse(CHAIN), allocator="best")


def test_out_of_memory_is_located() -> None:
    pool = Pool("cpu:0", 0, limit=6000)
    with pytest.raises(LocatedError, match=r"memory on cpu:0: .* biggest: %a 5888"):
        Executable(parse(CHAIN), pools=[pool])
    assert pool.allocator.statistics().bytes_in_use == 0


def test_request_larger_than_a_slab() -> None:
    text = CHAIN.replace("1024xf32", "8192xf32")
    with pytest.raises(LocatedError, match="32768 bytes requested, expected at most"):
        Executable(parse(text), allocator="slab")


def test_use_after_free_is_detected_in_reused_memory() -> None:
    late = CHAIN.replace("tgraph.tanh %d outs(%r)", "tgraph.tanh %a outs(%r)")
    with pytest.raises(PlanViolation, match=r"reads %a .* after it was freed"):
        Executable(parse(late), sanitize=True)
    assert np.isfinite(Executable(parse(late))(X)[0]).all()


# Result 0 is v + x, and then v is v + x, in an arena of SIZE bytes.
STEP = """
!t = memref<16xf32, "cpu:0">
!arena = memref<SIZExi8, "cpu:0">
func.func @main(%v: !t {tgraph.variable, tgraph.result = 1 : i32}, %x: !t,
                %out: !t {tgraph.result = 0 : i32}) {
  %arena = memref.alloc() {alignment = ALIGN : i64} : !arena
  %0 = arith.constant 0 : index
  %sum = memref.view %arena[%0][] : !arena to !t
  tgraph.add %v, %x outs(%sum) : !t
  "memref.copy"(%sum, %out) : (!t, !t) -> ()
  "memref.copy"(%sum, %v) : (!t, !t) -> ()
  memref.dealloc %arena : !arena
  func.return
}
"""


def step(size: int, alignment: int = 64) -> ModuleOp:
    text = STEP.replace("SIZE", str(size)).replace("ALIGN", str(alignment))
    return parse(text)


@pytest.mark.parametrize("sanitize", [False, True])
def test_programs_share_the_largest_arena(sanitize: bool) -> None:
    first = Executable(step(128), sanitize=sanitize)
    small = Executable(step(64), pools=first.pools, sanitize=sanitize)
    ones = np.ones(16, np.float32)
    v = np.zeros(16, np.float32)
    first(v, ones)
    assert [p.bytes for p in first.pools] == [128]
    large = Executable(step(4096, 512), pools=first.pools, sanitize=sanitize)
    (pool,) = large.pools
    assert first.pools == small.pools == [pool]
    assert pool.bytes == 4096
    assert pool.memory.ctypes.data % 512 == 0
    for count, program in enumerate((first, large, small, first), 2):
        out, _ = program(v, ones)
        assert (out == count).all()
        assert (v == count).all()
    sums = pool.memory[:64].view(np.float32)
    if not sanitize:
        assert (sums == 5).all()  # all programs use the same arena


def test_compile_with_pools() -> None:
    module = tensorplan.read(Path("examples/classifier.mlir").read_text())
    first = tensorplan.compile(module)
    second = tensorplan.compile(module, pools=tuple(first.pools))
    assert second.pools == first.pools
    assert first.pools[0].bytes > 0
    arrays = [np.random.default_rng(0).random(x.shape, x.dtype) for x in first.inputs]
    other = [2 - array for array in arrays]
    want = run_reference(module, arrays)[0]
    for _ in range(2):
        second(*other)
        assert np.allclose(first(*arrays)[0], want, rtol=1e-5)
        assert np.allclose(second(*arrays)[0], want, rtol=1e-5)
    with pytest.raises(TypeError, match="pools is 3, expected tuple"):
        tensorplan.compile(module, pools=3)  # pyright: ignore


def test_programs_on_other_devices_do_not_share_pools() -> None:
    there = parse(
        STEP.replace("cpu:0", "cpu:1").replace("SIZE", "64").replace("ALIGN", "64")
    )
    here = Executable(step(64))
    assert [p.device for p in Executable(there, pools=here.pools).pools] == ["cpu:1"]


def test_programs_share_parameters() -> None:
    first, second = Executable(step(64)), Executable(step(64))
    ones = np.ones(16, np.float32)
    first.bind({0: [0.0] * 16})
    second.bind(first.parameters)
    first(ones)
    out, v = second(ones)
    assert (out == 2).all()
    assert v is first.parameters[0]
    second.bind({1: ones})
    assert (second()[0] == 3).all()
    assert (first(ones)[0] == 4).all()
    with pytest.raises(TypeError, match="number of arrays is 2, expected 1"):
        first(v, ones)
    with pytest.raises(ValueError, match="no input 2, expected 0 to 1"):
        first.bind({2: ones})
    with pytest.raises(ValueError, match=r"argument 1 has shape \(3,\)"):
        first.bind({1: ones[:3]})
    frozen = np.zeros(16, np.float32)
    frozen.flags.writeable = False
    first.bind({0: frozen})
    first(ones)
    assert (first(ones)[0] == 2).all()
    assert (frozen == 0).all()


def test_runs_allocate_nothing() -> None:
    program = Executable(parse(CHAIN))
    before = program.pools[0].allocator.statistics()
    out = np.empty_like(X)
    for _ in range(10):
        program(X, out=[out])
    assert program.pools[0].allocator.statistics() == before


def test_growing_scratch_memory_is_seldom_reallocated() -> None:
    scratch = Scratch("", growth=2)
    blocks = [scratch.pool]
    for size in range(1_000, 100_000, 1_000):
        scratch.reset()
        scratch.take((size,), np.dtype(np.uint8))
        assert scratch.peak == -(-size // ALIGNMENT) * ALIGNMENT
        if scratch.pool is not blocks[-1]:
            blocks.append(scratch.pool)
    assert len(blocks) < 10
