"""Tests that the memory of a transfer is kept from its start until the wait.

Each form starts a transfer from %x, uses %y before the wait and %z after it. %y must
not share bytes with %x, but %z may.
"""

from typing import cast

import pytest
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Dialect, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    base,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)

import tensorplan
from tensorplan.dialects.memory import Asynchronous
from tensorplan.frontends.mlir_text import parse_module, permissive
from tensorplan.passes import driver
from tensorplan.passes.plan.memory import PlanMemory


@irdl_attr_definition
class Token(ParametrizedAttribute, TypeAttribute):
    name = "npu.token"


@irdl_op_definition
class StartOp(IRDLOperation):
    name = "npu.start"
    source = operand_def(base(MemRefType))
    out = operand_def(base(MemRefType))
    token = result_def(Token)
    traits = traits_def(Asynchronous(waits=("npu.wait",)))


@irdl_op_definition
class WaitOp(IRDLOperation):
    name = "npu.wait"
    token = operand_def(Token)


NPU = Dialect("npu", [StartOp, WaitOp], [Token])

M = "memref<64xf32>"
DMA = f"({M}, index, {M}, index, memref<2xi32>, index, index) -> ()"
MEMREF_DMA = f"({M}, index, {M}, index, index, memref<2xi32>, index) -> ()"
MAPS = (
    "{src_map = affine_map<(d) -> (d)>, dst_map = affine_map<(d) -> (d)>, "
    "tag_map = affine_map<(d) -> (d)>}"
)
GROUP = "(!nvgpu.device.async.token) -> !nvgpu.device.async.token"
COPY = "<{dstElements = 4 : index, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>}>"

FORMS = {  # the operation that starts a transfer, and its wait
    "affine": (
        f'"affine.dma_start"(%x, %c0, %r, %c0, %tag, %c0, %n) {MAPS} : {DMA}',
        '"affine.dma_wait"(%tag, %zero, %n) {tag_map = affine_map<(d) -> (d)>} '
        ": (memref<2xi32>, index, index) -> ()",
    ),
    "memref": (
        f'"memref.dma_start"(%x, %c0, %r, %c0, %n, %tag, %c0) : {MEMREF_DMA}',
        '"memref.dma_wait"(%tag, %c0, %n) : (memref<2xi32>, index, index) -> ()',
    ),
    "nvgpu": (
        f'%t = "nvgpu.device_async_copy"(%r, %c0, %x, %c0) {COPY} '
        f": ({M}, index, {M}, index) -> !nvgpu.device.async.token",
        f'%g = "nvgpu.device_async_create_group"(%t) : {GROUP} '
        '"nvgpu.device_async_wait"(%g) : (!nvgpu.device.async.token) -> ()',
    ),
    "gpu": (
        '%s = "gpu.wait"() : () -> !gpu.async.token '
        f'%t = "gpu.memcpy"(%s, %r, %x) : (!gpu.async.token, {M}, {M}) '
        "-> !gpu.async.token",
        '%u = "gpu.wait"(%t) : (!gpu.async.token) -> !gpu.async.token '
        '"gpu.wait"(%u) : (!gpu.async.token) -> ()',
    ),
    "async": (
        '%t = "async.execute"() <{operandSegmentSizes = array<i32: 0, 0>}> ({ '
        f'"memref.copy"(%x, %r) : ({M}, {M}) -> () "async.yield"() : () -> () '
        "}) : () -> !async.token",
        '"async.await"(%t) : (!async.token) -> ()',
    ),
    "trait": (
        f'%t = "npu.start"(%x, %r) : ({M}, {M}) -> !npu.token',
        '"npu.wait"(%t) : (!npu.token) -> ()',
    ),
}

PROGRAM = """
func.func @main(%r: {M}, %a: {M}, %n: index, %tag: memref<2xi32>) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : index
  %x = memref.alloc() : {M}
  %y = memref.alloc() : {M}
  %z = memref.alloc() : {M}
  "memref.copy"(%a, %x) : ({M}, {M}) -> ()
  {start}
  "memref.copy"(%a, %y) : ({M}, {M}) -> ()
  "memref.copy"(%y, %a) : ({M}, {M}) -> ()
  {wait}
  "memref.copy"(%a, %z) : ({M}, {M}) -> ()
  "memref.copy"(%z, %a) : ({M}, {M}) -> ()
  func.return
}}
"""


def offsets(start: str, wait: str) -> dict[str, int]:
    """The offsets in bytes of the planned buffers, by name."""
    ctx = permissive(tensorplan.context())
    ctx.load_dialect(NPU)
    text = PROGRAM.format(M=M, start=start, wait=wait)
    module = parse_module(text, "test.mlir", ctx)
    driver.run(ctx, module, [PlanMemory()])
    found: dict[str, int] = {}
    for op in module.walk():
        if isinstance(op, memref.ViewOp):
            offset = cast(arith.ConstantOp, op.byte_shift.owner).value
            assert isinstance(offset, IntegerAttr)
            found[op.result.name_hint or ""] = offset.value.data
    return found


@pytest.mark.parametrize("form", FORMS)
def test_memory_is_kept_until_the_wait(form: str):
    at = offsets(*FORMS[form])
    assert at["x"] != at["y"]
    assert at["z"] in (at["x"], at["y"])


@pytest.mark.parametrize("form", FORMS)
def test_buffers_of_transfers_without_a_wait_are_not_planned(form: str):
    start, _ = FORMS[form]
    assert "x" not in offsets(start, "")


def test_wait_for_another_element_of_the_tag_does_not_count():
    start, wait = FORMS["memref"]
    assert "x" not in offsets(start, wait.replace("%c0", "%n"))


def test_wait_that_may_leave_a_group_running_does_not_count():
    start, wait = FORMS["nvgpu"]
    assert "x" not in offsets(
        start, wait.replace("(%g)", "(%g) <{numGroups = 1 : i32}>")
    )


def test_token_with_other_users_is_not_followed():
    start, wait = FORMS["gpu"]
    keep = '"foreign.keep"(%t) : (!gpu.async.token) -> ()'
    assert "x" not in offsets(start, wait + keep)


def test_two_transfers_with_one_tag_need_two_waits():
    start, wait = FORMS["memref"]
    assert "x" not in offsets(start + start, wait)
    assert "x" in offsets(start + start, wait + wait)


def test_unknown_operations_of_a_known_dialect_may_be_asynchronous():
    assert "x" not in offsets(f'"affine.send"(%x) : ({M}) -> ()', "")
    assert "x" not in offsets(f'"linalg.send"(%x) : ({M}) -> ()', "")
