"""Tests that passes and plan-check support the operations of another dialect, `npu`,
through its memory traits: views, destinations, and in-place results."""

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import Builtin, MemRefType, ModuleOp, i1
from xdsl.dialects.func import Func, FuncOp
from xdsl.dialects.memref import MemRef
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    base,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.traits import (
    EffectInstance,
    MemoryEffectKind,
    NoMemoryEffect,
    get_effects,
)

from tensorplan.checking.plan_check import check_plan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.memory import (
    DestinationStyle,
    Elementwise,
    ViewLike,
    destinations,
    effects_on,
    is_view,
    overwrites,
)
from tensorplan.frontends.mlir_text import parse_module
from tensorplan.passes import driver
from tensorplan.passes.plan.in_place import PlanInPlace
from tensorplan.passes.plan.memory import PlanMemory


@irdl_op_definition
class HalfOp(IRDLOperation):
    """The first half of a memory."""

    name = "npu.half"
    source = operand_def(base(MemRefType))
    half = result_def(base(MemRefType))
    traits = traits_def(NoMemoryEffect(), ViewLike())
    assembly_format = "$source attr-dict `:` type($source) `->` type($half)"


@irdl_op_definition
class ReversedOp(IRDLOperation):
    """A memory with its elements in reverse order."""

    name = "npu.reversed"
    source = operand_def(base(MemRefType))
    view = result_def(base(MemRefType))
    traits = traits_def(NoMemoryEffect(), ViewLike())
    assembly_format = "$source attr-dict `:` type($source) `->` type($view)"


@irdl_op_definition
class ScanOp(IRDLOperation):
    """Prefix sums: each element depends on several elements."""

    name = "npu.scan"
    T: ClassVar = base(MemRefType)
    source = operand_def(T)
    out = operand_def(T)
    traits = traits_def(DestinationStyle())
    assembly_format = "$source `,` $out attr-dict `:` type($source) `,` type($out)"


@irdl_op_definition
class AddOp(IRDLOperation):
    name = "npu.add"
    a = operand_def(base(MemRefType))
    b = operand_def(base(MemRefType))
    out = operand_def(base(MemRefType))
    traits = traits_def(Elementwise())
    assembly_format = (
        "$a `,` $b `,` $out attr-dict `:` type($a) `,` type($b) `,` type($out)"
    )


@irdl_op_definition
class OddOp(IRDLOperation):
    """An operation without any memory traits."""

    name = "npu.odd"
    source = operand_def(base(MemRefType))
    assembly_format = "$source attr-dict `:` type($source)"


NPU = Dialect("npu", [HalfOp, ReversedOp, ScanOp, AddOp, OddOp], [])

T = "memref<16xf32>"


def parse(body: str, arguments: str = f"%a: {T}, %r: {T}") -> tuple[Context, ModuleOp]:
    ctx = Context()
    for dialect in (Builtin, Func, MemRef, arith.Arith, NPU):
        ctx.load_dialect(dialect)
    text = f"func.func @f({arguments}) {{\n{body}\nfunc.return\n}}"
    return ctx, parse_module(text, "npu.mlir", ctx)


def scan(source: str, out: str) -> str:
    return f"npu.scan {source}, {out} : {T}, {T}"


def add(a: str, b: str, out: str) -> str:
    return f"npu.add {a}, {b}, {out} : {T}, {T}, {T}"


def new(name: str) -> str:
    return f"{name} = memref.alloc() : {T}"


def free(name: str) -> str:
    return f"memref.dealloc {name} : {T}"


def test_destinations_and_effects_of_operations():
    _, module = parse(
        "\n".join([new("%x"), scan("%a", "%x"), add("%a", "%x", "%x"), free("%x")])
    )
    ops = {op.name: op for op in module.walk()}
    a, x = ops["npu.scan"].operands
    assert destinations(ops["npu.scan"]) == (1,)
    assert overwrites(ops["npu.scan"], x)
    assert not overwrites(ops["npu.scan"], a)
    assert not overwrites(ops["npu.add"], x)  # also reads it
    assert effects_on(ops["npu.add"], a) == (True, False)
    assert effects_on(ops["npu.add"], x) == (True, True)
    assert effects_on(ops["npu.scan"], x) == (False, True)
    assert get_effects(ops["npu.scan"]) == {
        EffectInstance(MemoryEffectKind.READ, a),
        EffectInstance(MemoryEffectKind.WRITE, x),
    }
    assert not any(map(is_view, module.walk()))


def test_buffers_of_a_foreign_dialect_share_bytes():
    """%x and %y share bytes, because %y is written after the last read of a view of
    %x."""
    half = "memref<8xf32>"
    ctx, module = parse(
        f"""
        %x = memref.alloc() : {T}
        npu.scan %a, %x : {T}, {T}
        %h = npu.half %x : {T} -> {half}
        npu.scan %h, %s : {half}, {half}
        %y = memref.alloc() : {T}
        npu.scan %a, %y : {T}, {T}
        npu.scan %y, %r : {T}, {T}
        memref.dealloc %x : {T}
        memref.dealloc %y : {T}
        """,
        f"%a: {T}, %r: {T}, %s: {half}",
    )
    driver.run(ctx, module, [PlanMemory(alignment=1)])
    (pool,) = check_plan(module)
    assert pool.size == 64


def test_buffer_of_an_operation_without_traits_is_live_until_its_dealloc():
    body = [new("%x"), scan("%a", "%x"), f"npu.odd %x : {T}"]
    body += [new("%y"), scan("%a", "%y"), scan("%y", "%r"), free("%y"), free("%x")]
    ctx, module = parse("\n".join(body))
    driver.run(ctx, module, [PlanMemory(alignment=1)])
    (pool,) = check_plan(module)
    assert pool.size == 128


def test_plan_check_follows_foreign_views():
    _, module = parse(f"""
      %arena = memref.alloc() {{tgraph.arena}} : memref<64xi8>
      %c0 = arith.constant 0 : index
      %x = memref.view %arena[%c0][] : memref<64xi8> to {T}
      npu.scan %a, %x : {T}, {T}
      %h = npu.half %x : {T} -> memref<8xf32>
      %y = memref.view %arena[%c0][] : memref<64xi8> to {T}
      npu.scan %a, %y : {T}, {T}
      npu.scan %h, %r : memref<8xf32>, {T}
      memref.dealloc %arena : memref<64xi8>
    """)
    driver.check(module)
    with pytest.raises(LocatedError, match=r"npu\.scan uses buffer %x, whose bytes"):
        check_plan(module)


def test_only_elementwise_results_overwrite_operands():
    body = [new("%x"), new("%y"), new("%z"), scan("%a", "%x"), scan("%x", "%y")]
    body += [add("%y", "%y", "%z"), scan("%z", "%r")]
    body += [free("%x"), free("%y"), free("%z")]
    ctx, module = parse("\n".join(body))
    driver.run(ctx, module, [PlanInPlace()])
    second, addition = [op for op in module.walk() if op.name.startswith("npu")][1:3]
    assert second.operands[0] is not second.operands[1]
    assert len(set(addition.operands)) == 1
    assert sum(isinstance(op, memref.AllocOp) for op in module.walk()) == 2


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Programs whose operations read only written buffers, or views of them."""
    lines: list[str] = []
    live = ["%a"]
    for n in range(draw(st.integers(1, 10))):
        if draw(st.booleans()) or len(live) == 1:
            target = f"%b{n}"
            lines.append(new(target))
        else:
            target = draw(st.sampled_from(live[1:]))
        readable = [b for b in live if b != target]
        a, b = (draw(st.sampled_from(readable)) for _ in range(2))
        if draw(st.booleans()):
            lines.append(f"%v{n} = npu.reversed {b} : {T} -> {T}")
            b = f"%v{n}"
        is_sum = draw(st.booleans())
        lines.append(add(a, b, target) if is_sum else scan(a, target))
        if target not in live:
            live.append(target)
        if len(live) > 2 and draw(st.booleans()):
            dead = draw(st.sampled_from(live[1:]))
            live.remove(dead)
            lines.append(free(dead))
    lines += [scan(live[-1], "%r"), *map(free, live[1:])]
    return "\n".join(lines)


def run(module: ModuleOp) -> np.ndarray:
    """The final contents of %r. Reads of freed memory raise KeyError."""
    (func,) = (op for op in module.walk() if isinstance(op, FuncOp))
    memory: dict[SSAValue, np.ndarray] = {
        arg: np.arange(16, dtype=np.float32) % 5 for arg in func.body.block.args
    }
    for op in func.body.block.ops:
        match op:
            case memref.AllocOp():
                memory[op.memref] = np.full(16, np.nan, np.float32)
            case memref.DeallocOp():
                del memory[op.memref]
            case ReversedOp():
                memory[op.view] = memory[op.source][::-1]
            case ScanOp():  # gives NaN if its operand is its destination
                memory[op.out][:] = np.nan
                memory[op.out][:] = np.cumsum(memory[op.source]) % 7
            case AddOp():
                for i in range(16):
                    memory[op.out][i] = (memory[op.a][i] + memory[op.b][i]) % 7
            case _:
                pass
    return memory[func.body.block.args[1]]


@given(programs())
def test_in_place_results_have_the_same_values(text: str):
    ctx, module = parse(text)
    want = run(module)
    before = sum(isinstance(op, memref.AllocOp) for op in module.walk())
    driver.run(ctx, module, [PlanInPlace()])
    np.testing.assert_array_equal(run(module), want)
    after = [op for op in module.walk() if isinstance(op, memref.AllocOp)]
    frees = [op for op in module.walk() if isinstance(op, memref.DeallocOp)]
    assert len(after) == len(frees) <= before
    again = module.clone()
    driver.run(ctx, again, [PlanInPlace()])
    assert again.is_structurally_equivalent(module)
    driver.run(ctx, module, [PlanMemory()])  # ends with plan-check


def test_operations_without_memory_traits_have_no_destinations():
    _, module = parse(f"%c = arith.constant 1 : {i1}")
    assert all(destinations(op) == () for op in module.walk())
