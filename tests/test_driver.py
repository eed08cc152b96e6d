"""Tests the driver of passes: it flattens pipelines, and checks the IR after each
pass."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects import cf, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp, StringAttr, TensorType, i1, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.structural_keys import StructuralKeys
from tensorplan.dialects.tgraph.base import TensorOp, ints
from tensorplan.frontends import reading
from tensorplan.passes import driver, get_all_passes
from tensorplan.passes.plan.pipeline import PlanPipeline


def parse(text: str) -> ModuleOp:
    return reading.read(text.encode(), "t.mlir", tensorplan.context())


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


def test_pipelines_are_flattened() -> None:
    seen: list[str] = []
    driver.run(
        tensorplan.context(),
        ModuleOp([]),
        [Nothing(), Twice()],
        after=lambda pass_, module, seconds: seen.append(pass_.name),
    )
    assert seen == ["test-nothing"] * 3


def test_use_before_definition_after_a_pass_is_caught() -> None:
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
        # Valid: values of dominating blocks, and of the operations around a region.
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
        # Invalid: a value of a block that does not dominate the use.
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
        # Invalid: a value that is defined after the operation with the region.
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
def test_definitions_must_dominate_uses(text: str, message: str | None) -> None:
    module = parse(text)
    if message is None:
        driver.check(module)
        return
    with pytest.raises(VerifyException, match=re.escape(message)):
        driver.check(module)


BRANCHES = """
func.func @f(%c: i1, %x: i32, %unused: i32) {
  %a = arith.addi %x, %x : i32
  %b = arith.muli %a, %x {mark} : i32
  scf.if %c {
    "test.inner"() : () -> ()
    "test.last"() : () -> ()
  }
  cf.cond_br %c, ^left, ^right
^left:
  "test.first"() : () -> ()
  func.return
^right:
  func.return
}"""


def _change(what: str, func: FuncOp) -> None:
    add, multiply, branch, end = func.body.blocks[0].ops
    first, inner = func.body.blocks[1].first_op, branch.regions[0].block.first_op
    assert isinstance(end, cf.ConditionalBranchOp)
    assert isinstance(branch, scf.IfOp)
    back = func.body.blocks[2].first_op
    assert first is not None
    assert back is not None
    assert inner is not None
    match what:
        case "the value of an attribute":
            multiply.attributes["mark"] = i32
        case "its name":
            multiply.attributes["marked"] = multiply.attributes.pop("mark")
        case "a property":
            func.sym_name = StringAttr("g")
        case "an operand":
            multiply.operands[1] = multiply.operands[0]
        case "the type of a result":
            Rewriter.replace_value_with_new_type(multiply.results[0], i1)
        case "the type of an argument":
            Rewriter.replace_value_with_new_type(func.body.blocks[0].args[2], i1)
        case "the order":
            multiply.detach()
            Rewriter.insert_op(multiply, InsertPoint.before(add))
        case "what is within":
            inner.detach()
            Rewriter.insert_op(inner, InsertPoint.after(branch))
        case "in which block":
            first.detach()
            func.body.blocks[0].add_op(first)
        case "in which region":
            branch.regions[0].move_blocks(branch.false_region)
        case "an operation":
            Rewriter.replace_op(back, scf.YieldOp())
        case "an operation more":
            Rewriter.insert_op(add.clone(), InsertPoint.before(add))
        case "where to go":
            end.successors = end.successors[::-1]
        case _:
            assert what == "nothing"


@pytest.mark.parametrize(
    "what",
    [
        *("nothing", "the value of an attribute", "its name", "a property"),
        *("an operand", "the type of a result", "the type of an argument"),
        *("the order", "what is within", "in which block", "in which region"),
        *("an operation", "an operation more", "where to go"),
    ],
)
def test_only_changed_modules_are_checked_again(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dataclass(frozen=True)
    class Change(ModulePass):
        name = "test-change"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            (func,) = op.ops
            assert isinstance(func, FuncOp)
            _change(what, func)

    checked: list[Operation] = []
    monkeypatch.setattr(
        driver.Verifier, "_check", lambda self, module, *_: checked.append(module)
    )
    ctx = tensorplan.context()
    ctx.allow_unregistered = True
    module = reading.read(BRANCHES.encode(), "t.mlir", ctx)
    driver.run(ctx, module, [Nothing(), Change(), Nothing()])
    assert checked == [module] * (1 if what == "nothing" else 2)


def test_recursion_error_of_a_pass_has_a_location() -> None:
    @dataclass(frozen=True)
    class Recurse(ModulePass):
        name = "test-recurse"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            self.apply(ctx, op)

    module = parse(GROUPED)
    message = "t.mlir:5:10: the program is nested too deeply"
    with pytest.raises(LocatedError, match=re.escape(message)):
        driver.run(tensorplan.context(), module, [Recurse()])


GROUPED = """
func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.negate %a : tensor<4xf32>
  %1 = tgraph.fusion(%x = %0, %y = %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    %2 = tgraph.add %x, %y : tensor<4xf32>
    %3 = tgraph.abs %2 : tensor<4xf32>
    tgraph.yield %3 : tensor<4xf32>
  }
  %4 = tgraph.reverse %1 {dimensions = array<i64: 0>} : tensor<4xf32>
  func.return %4 : tensor<4xf32>
}"""  # noqa: E501


def _break(what: str, func: FuncOp) -> None:
    """Makes one operation invalid, by a change to it, its parent or a nested
    operation."""
    negate, fusion, reverse, end = func.body.block.ops
    add, absolute, inner_end = fusion.regions[0].block.ops
    match what:
        case "a property":
            reverse.properties["dimensions"] = ints([1])
        case "a property less":
            del reverse.properties["dimensions"]
        case "an operand":
            fusion.operands[0] = func.body.block.args[0]
            Rewriter.replace_value_with_new_type(
                fusion.operands[0], TensorType(i32, [4])
            )
        case "the type of an operand":
            Rewriter.replace_value_with_new_type(
                negate.results[0], TensorType(i32, [4])
            )
        case "an operand of the body":
            absolute.operands[0] = negate.results[0]
        case "the type within":
            Rewriter.replace_value_with_new_type(
                absolute.results[0], TensorType(i32, [4])
            )
        case "an argument of the body":
            fusion.regions[0].block.insert_arg(TensorType(i32, [4]), 2)
        case "moved out":
            add.detach()
            Rewriter.insert_op(add, InsertPoint.before(fusion))
            add.operands = [negate.results[0]] * 2
        case "the end":
            end.detach()
            end.erase()
        case _:
            assert what == "the end of the body"
            inner_end.detach()
            inner_end.erase()


@pytest.mark.parametrize(
    "what",
    [
        *("a property", "a property less", "an operand", "the type of an operand"),
        *("an operand of the body", "the type within", "an argument of the body"),
        *("moved out", "the end", "the end of the body"),
    ],
)
def test_operation_that_a_pass_breaks_is_caught(what: str) -> None:
    @dataclass(frozen=True)
    class Break(ModulePass):
        name = "test-break"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            (func,) = op.ops
            assert isinstance(func, FuncOp)
            _break(what, func)

    module = parse(GROUPED)
    with pytest.raises(VerifyException) as caught:
        driver.run(tensorplan.context(), module, [Nothing(), Break()])
    with pytest.raises(VerifyException) as expected:
        driver.check(module)
    assert str(caught.value) == str(expected.value)
    with pytest.raises(VerifyException):
        module.verify()  # by xDSL alone


def _plant(op: Operation) -> Iterator[None]:
    """Plants faults in an operation, one at a time, and undoes each before the next."""
    for named in (op.properties, op.attributes):
        for name, value in list(named.items()):
            del named[name]
            yield
            for other in (i32, ints([7])):
                named[name] = other
                yield
            named[name] = value
    for index, operand in enumerate(op.operands):
        for other in op.operands:
            op.operands[index] = other
            yield
        op.operands[index] = operand
    arguments = [argument for region in op.regions for argument in region.block.args]
    for value in (*op.results, *arguments):
        new: SSAValue = value
        for type_ in (i1, TensorType(i32, [7]), MemRefType(i32, [7]), value.type):
            new = Rewriter.replace_value_with_new_type(new, type_)
            yield
    for region in op.regions:
        region.block.insert_arg(i32, 0)
        yield
        region.block.erase_arg(region.block.args[0])
    yield


@pytest.mark.thorough
@pytest.mark.parametrize(
    "file",
    [
        "examples/train_step.mlir",
        pytest.param("tests/models/lstm_scan_infer.mlir", marks=pytest.mark.slow),
    ],
)
def test_verifier_finds_all_faults_that_full_verification_finds(file: str) -> None:
    """After each pass, all faults are planted into one operation of each new class. The
    driver's verifier, which checks only changed operations, refuses every module that
    full verification refuses."""
    module = parse(Path(file).read_text())
    ctx = tensorplan.context()
    verifier = driver.Verifier()
    verifier.verify(module)
    found, passed = 0, 0
    seen: set[tuple[type[Operation], bool]] = set()
    for pass_ in PlanPipeline().passes():
        pass_.apply(ctx, module)
        verifier.verify(module)
        classes = {(type(op), bool(op.results)): op for op in module.walk()}
        for class_, op in classes.items():
            for _ in _plant(op) if class_ not in seen else ():
                refused = _refuses(module.verify)
                assert _refuses(lambda: verifier.verify(module)) >= refused
                found += refused
                passed += not refused
        seen.update(classes)
    assert found
    assert passed


def _refuses(verify: Callable[[], None]) -> bool:
    try:
        verify()
    except Exception:  # verifiers of xDSL's operations may raise any exception
        return True
    return False


def test_unchanged_tensor_operations_are_not_verified_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @dataclass(frozen=True)
    class Mark(ModulePass):
        name = "test-mark"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            next(o for o in op.walk() if o.name == "tgraph.add").attributes["mark"] = (
                i32
            )

    module = parse(GROUPED)
    verified: list[str] = []
    verify = Operation.verify

    def note(op: Operation, verify_nested_ops: bool = True) -> None:
        if isinstance(op, TensorOp):
            verified.append(op.name)
        verify(op, verify_nested_ops)

    monkeypatch.setattr(Operation, "verify", note)
    driver.run(tensorplan.context(), module, [Nothing()])
    first = ["negate", "add", "abs", "fusion", "reverse"]
    assert verified == [f"tgraph.{name}" for name in first]
    verified.clear()
    driver.run(tensorplan.context(), module, [Mark()])
    assert verified[len(first) :] == ["tgraph.add", "tgraph.fusion"]


def test_every_registered_pass_loads_under_its_name() -> None:
    for name, factory in get_all_passes().items():
        assert factory().name == name
        assert (factory().__doc__ or "").strip(), f"{name} has no docstring"


def test_equal_buffers_and_signatures_are_verified_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @dataclass(frozen=True)
    class Drop(ModulePass):
        name = "test-drop"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            for name in ("memref.dealloc", "memref.alloc"):
                [o for o in op.walk() if o.name == name][-1].detach()

    module = parse("""
    func.func @main(%x: memref<4xf32>) {
      %0 = memref.alloc() : memref<4xf32>
      %1 = memref.alloc() : memref<8xf32>
      %2 = memref.alloc() : memref<4xf32>
      memref.dealloc %0 : memref<4xf32>
      memref.dealloc %1 : memref<8xf32>
      memref.dealloc %2 : memref<4xf32>
      func.return
    }""")
    verified: list[str] = []
    verify = Operation.verify

    def note(op: Operation, verify_nested_ops: bool = True) -> None:
        verified.append(op.name)
        verify(op, verify_nested_ops)

    monkeypatch.setattr(Operation, "verify", note)
    driver.run(tensorplan.context(), module, [Drop()])
    assert verified.count("memref.alloc") == verified.count("memref.dealloc") == 2
    assert verified.count("func.func") == 1


def test_loops_have_no_structural_key(monkeypatch: pytest.MonkeyPatch) -> None:
    module = parse("""
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = tgraph.while %x : (tensor<4xf32>) -> tensor<4xf32> {
      ^bb0(%v: !tgraph.variable<tensor<4xf32>>):
        %1 = tgraph.constant<true> : tensor<i1>
        tgraph.yield %1 : tensor<i1>
      } do {
      ^bb0(%v: !tgraph.variable<tensor<4xf32>>):
        %1 = tgraph.read %v : tensor<4xf32>
        %2 = tgraph.negate %1 : tensor<4xf32>
        tgraph.assign %v, %2 : tensor<4xf32>
        tgraph.yield
      }
      func.return %0 : tensor<4xf32>
    }""")
    keyed: list[str] = []
    of = StructuralKeys.of

    def note(keys: StructuralKeys, op: Operation) -> object:
        keyed.append(op.name)
        return of(keys, op)

    monkeypatch.setattr(StructuralKeys, "of", note)
    driver.check(module)
    assert "tgraph.negate" in keyed
    assert "tgraph.while" not in keyed
