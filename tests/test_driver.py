"""The driver: pipelines are taken apart, and what passes leave is checked."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

import tensorplan
from tensorplan import frontends
from tensorplan.passes import driver, get_all_passes


def parse(text: str) -> ModuleOp:
    return frontends.read(text.encode(), "t.mlir", tensorplan.context())


@dataclass(frozen=True)
class Nothing(ModulePass):
    name = "test-nothing"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pass


@dataclass(frozen=True)
class SwapFirstOps(ModulePass):
    name = "test-swap-first-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        block = next(iter(op.ops)).regions[0].block
        first = block.first_op
        assert first is not None
        second = first.next_op
        assert second is not None
        first.detach()
        block.insert_op_after(first, second)


@dataclass(frozen=True)
class Twice(ModulePass):
    name = "test-twice"

    def passes(self) -> Sequence[ModulePass]:
        return [Nothing(), Nothing()]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise AssertionError("a pipeline is taken apart")


def test_pipelines_are_taken_apart() -> None:
    seen: list[str] = []
    driver.run(
        tensorplan.context(),
        ModuleOp([]),
        [Nothing(), Twice()],
        after=lambda pass_, module, seconds: seen.append(pass_.name),
    )
    assert seen == ["test-nothing"] * 3


def test_a_pass_that_breaks_the_order_is_caught() -> None:
    module = parse(
        """func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.negate %a : tensor<4xf32>
  %1 = tgraph.abs %0 : tensor<4xf32>
  func.return %1 : tensor<4xf32>
}"""
    )
    module.verify()
    message = "t.mlir:3:8: tgraph.abs: operand 0 is used before it is defined"
    with pytest.raises(VerifyException, match=re.escape(message)):
        driver.run(tensorplan.context(), module, [SwapFirstOps()])
    module.verify()  # xDSL itself does not notice


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # Visible: from blocks that dominate, and from around a region.
        (
            """func.func @f(%c: i1, %x: i32) {
  %a = arith.addi %x, %x : i32
  cf.cond_br %c, ^left, ^right
^left:
  %b = arith.addi %a, %a : i32
  scf.if %c {
    %d = arith.addi %b, %x : i32
  }
  cf.br ^right
^right:
  %e = arith.addi %a, %a : i32
  func.return
}""",
            None,
        ),
        # Not visible: from a block that may not have run.
        (
            """func.func @f(%c: i1, %x: i32) {
  cf.cond_br %c, ^left, ^right
^left:
  %b = arith.addi %x, %x : i32
  cf.br ^right
^right:
  %e = arith.addi %b, %b : i32
  func.return
}""",
            "t.mlir:7:8: arith.addi: operand 0 is used before it is defined",
        ),
        # Not visible: from inside a region, or from around an isolated one.
        (
            """func.func @f(%c: i1, %x: i32) {
  "scf.if"(%c) ({
    %b = arith.addi %x, %x : i32
    %e = arith.addi %b, %g : i32
    scf.yield
  }, {
  }) : (i1) -> ()
  %g = arith.addi %x, %x : i32
  func.return
}""",
            "t.mlir:4:10: arith.addi: operand 1 is used before it is defined",
        ),
    ],
)
def test_definitions_come_before_uses(text: str, message: str | None) -> None:
    module = parse(text)
    if message is None:
        driver.check(module)
        return
    with pytest.raises(VerifyException, match=re.escape(message)):
        driver.check(module)


def test_every_registered_pass_loads_under_its_name() -> None:
    for name, factory in get_all_passes().items():
        assert factory().name == name
        assert (factory().__doc__ or "").strip(), f"{name} has no docstring"
