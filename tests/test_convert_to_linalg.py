"""Tests `convert-tgraph-to-linalg`: for every operation, the code that MLIR compiles
computes the values of the reference interpreter.

The cases are those of `test_kernels.py`. Each test puts many cases into one program and
compiles them together.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from kernel_cases import KERNELS, TESTS, Case, cases
from model_files import model_files
from modules import parse
from one_op import reference, tensor
from upstream import lowered, needs_mlir, with_each_mlir
from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    UnitAttr,
    i32,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.dtypes import Array
from tensorplan.dialects.tgraph.base import RESULT, VARIABLE, ints
from tensorplan.dialects.tgraph.elementwise import AddOp, ConvertOp
from tensorplan.dialects.tgraph.reducing import DotGeneralOp
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.dialects.tgraph.structure import FusionOp, YieldOp
from tensorplan.passes import driver
from tensorplan.passes.convert.linalg.reducing import PANEL
from tensorplan.passes.convert.tgraph_to_linalg import ConvertTGraphToLinalg
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.runtime.backends.mlir.executable import (
    MlirExecutable,
    Tools,
    find_tools,
)
from tensorplan.runtime.executor import Executable
from tensorplan.tools.plan_run import main as plan_run

pytestmark = needs_mlir


class Program:
    """A sequence of operations, each with separate arguments."""

    def __init__(self) -> None:
        self.block = Block()
        self.attributes: list[dict[str, Attribute]] = []
        self.inputs: list[Array] = []
        self.results = 0

    def argument(self, type: Attribute, value: Array | None) -> SSAValue:
        if value is not None:
            self.inputs.append(np.ascontiguousarray(value).reshape(value.shape))
        self.attributes.append({})
        return self.block.insert_arg(type, len(self.block.args))

    def result(self, *further: str) -> None:
        """Marks the last argument as a result, with `further` attributes."""
        self.attributes[-1] = {name: UnitAttr() for name in further}
        self.attributes[-1][RESULT] = IntegerAttr(self.results, i32)
        self.results += 1

    def add(self, case: Case, overwritten: int | None = None) -> None:
        """Appends an operation; its result overwrites the input `overwritten`."""
        op = case.operation(on_memrefs=True)
        operands = [
            self.argument(value.type, x)
            for value, x in zip(op.inputs, case.inputs, strict=True)
            if overwritten is None or x is not case.inputs[overwritten]
        ]
        out = op.outs[0].type
        if overwritten is None:
            target = self.argument(out, None)
            self.result()
        else:
            target = self.argument(out, case.inputs[overwritten])
            self.result(VARIABLE)
            operands.insert(overwritten, target)
        op.operands = [*operands, target]
        self.block.add_op(op)

    def module(self) -> ModuleOp:
        self.block.add_op(ReturnOp())
        types = [argument.type for argument in self.block.args]
        function = FuncOp(
            "main", FunctionType.from_lists(types, []), Region(self.block)
        )
        function.properties["arg_attrs"] = ArrayAttr(
            [DictionaryAttr(a) for a in self.attributes]
        )
        return ModuleOp([function])


def check_cases(
    chosen: Sequence[Case], tools: Tools | None = None, named: bool = False
) -> ModuleOp:
    """Compares all cases with the reference interpreter, and returns the module at
    level 4."""
    program = Program()
    wanted: list[Array] = []
    for case in chosen:
        want = reference(case.operation(on_memrefs=False), case.inputs)
        program.add(case)
        wanted.append(want)
        for index in case.operation(on_memrefs=True).overwritable():
            x = case.inputs[index]
            is_same = sum(x is other for other in case.inputs) > 1
            if (x.dtype, x.shape) == (want.dtype, want.shape) and not is_same:
                program.add(case, overwritten=index)
                wanted.append(want)
    module = program.module()
    upstream = lowered(module, named)
    run = MlirExecutable(upstream, signature(module), tools, optimized=False)
    for got, want in zip(run(*program.inputs), wanted, strict=True):
        KERNELS.assert_close(got, want)
    return upstream


@pytest.mark.thorough
@with_each_mlir
@pytest.mark.parametrize("name", TESTS)
def test_some_cases_of_the_kernels(
    name: str, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = cases(name, monkeypatch)
    rng = np.random.default_rng(0)
    count = min(len(found), 12)
    chosen = rng.choice(len(found), count, replace=False)
    check_cases([found[i] for i in chosen], tools)


@pytest.mark.thorough
@with_each_mlir
@pytest.mark.parametrize(
    ("name", "ops"),
    [
        ("test_dot_general", {"linalg.matmul", "linalg.batch_matmul"}),
        ("test_convolution", {"linalg.matmul", "linalg.conv_2d_nhwc_hwcf"}),
    ],
)
def test_named_products(
    name: str, ops: set[str], tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s).astype(np.float32) for s in ((4, 5), (6, 5)))
    transposed: dict[str, Attribute] = {
        f"{side}_{kind}_dimensions": ints(dims)
        for side in ("lhs", "rhs")
        for kind, dims in (("batching", ()), ("contracting", [1]))
    }
    matrices = Case("", DotGeneralOp, [x, y], transposed, None, None)
    chosen = [matrices, *cases(name, monkeypatch)[:40]]
    module = check_cases(chosen, tools, named=True)
    assert ops <= {op.name for op in module.walk()}


@pytest.mark.slow
@pytest.mark.parametrize("name", TESTS)
def test_all_cases_of_the_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = cases(name, monkeypatch)
    for start in range(0, len(found), 100):
        check_cases(found[start : start + 100])


@pytest.mark.thorough
@pytest.mark.parametrize("path", model_files())
def test_models_run_natively(path: Path) -> None:
    pytest.importorskip("jax")
    module = tensorplan.plan(tensorplan.from_stablehlo(path).module)
    io = signature(module)
    rng = np.random.default_rng(0)
    inputs = [
        np.abs(rng.standard_normal(i.shape) * 0.1).astype(i.dtype)
        if np.issubdtype(i.dtype, np.floating)
        else rng.integers(0, 10, i.shape).astype(i.dtype)
        for i in io.inputs
    ]
    want = Executable(module)(*(x.copy() for x in inputs))
    is_small = path.stem.startswith(("lstm", "mlp"))
    run = MlirExecutable(lowered(module), io, optimized=is_small)
    for _ in range(2):  # the second run must not depend on the first one
        for got, expected in zip(run(*inputs), want, strict=True):
            scale = np.max(np.abs(expected), initial=0.0)
            np.testing.assert_allclose(got, expected, rtol=0, atol=2e-4 * scale)


SOFTMAX = """
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %m = tgraph.reduce %x {kind = "maximum", dimensions = array<i64: 1>}
       : (tensor<4x6xf32>) -> tensor<4xf32>
  %b = tgraph.broadcast_in_dim %m {broadcast_dimensions = array<i64: 0>}
       : (tensor<4xf32>) -> tensor<4x6xf32>
  %d = tgraph.subtract %x, %b : tensor<4x6xf32>
  %e = tgraph.exponential %d : tensor<4x6xf32>
  %s = tgraph.reduce %e {kind = "add", dimensions = array<i64: 1>}
       : (tensor<4x6xf32>) -> tensor<4xf32>
  %t = tgraph.broadcast_in_dim %s {broadcast_dimensions = array<i64: 0>}
       : (tensor<4xf32>) -> tensor<4x6xf32>
  %r = tgraph.divide %e, %t : tensor<4x6xf32>
  func.return %r : tensor<4x6xf32>
}
"""


def test_workspace_of_lowered_operations_can_be_planned() -> None:
    source = parse(SOFTMAX)
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    (want,) = run_reference(source, [x])
    module = tensorplan.plan(source)
    kernels = MlirExecutable(lowered(module), signature(module))
    # A maximum and a sum for each row in f32, and the sums' accumulators in f64.
    assert kernels.workspace_bytes == 4 * 4 + 4 * 4 + 4 * 8
    np.testing.assert_allclose(kernels(x)[0], want, rtol=1e-6)

    before = lowered(module)
    driver.run(Context(), before, [PlanMemory()])
    planned = MlirExecutable(before, signature(module))
    assert planned.workspace_bytes == 0
    np.testing.assert_allclose(planned(x)[0], want, rtol=1e-6)


def test_integers_saturate_and_nan_becomes_zero() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1e10, -1e10, 2.9, -2.9], np.float32)
    program = Program()
    for name in ("int8", "uint8", "int32"):
        program.add(Case("", ConvertOp, [x], {}, tensor(x.shape, name), None))
    module = program.module()
    signed, unsigned, wide = MlirExecutable(lowered(module), signature(module))(
        *program.inputs
    )
    assert signed.tolist() == [0, 127, -128, 127, -128, 2, -2]
    assert unsigned.tolist() == [0, 255, 0, 255, 0, 2, 0]
    top = 2**31 - 1
    assert wide.tolist() == [0, top, -top - 1, top, -top - 1, 2, -2]


def test_memory_spaces_are_kept_until_they_are_stripped() -> None:
    module = tensorplan.plan(parse(SOFTMAX))
    driver.run(Context(), module, [ConvertTGraphToLinalg()])
    types = {v.type for op in module.walk() for v in op.results}
    spaces = {str(t.memory_space) for t in types if isinstance(t, MemRefType)}
    assert spaces == {'"cpu:0"'}


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_products_with_many_columns(dtype: str, transposed: bool) -> None:
    """Products with many columns are computed in panels of columns. Panels of a
    transposed operand are copied first."""
    rng = np.random.default_rng(0)
    size = 2 * PANEL + 3
    shape = (2, size, 5) if transposed else (2, 5, size)
    x = np.asarray(rng.integers(-3, 4, (2, 4, 5)), dtype)
    y = np.asarray(rng.integers(-3, 4, shape), dtype)
    properties: dict[str, Attribute] = {
        "lhs_batching_dimensions": ints([0]),
        "rhs_batching_dimensions": ints([0]),
        "lhs_contracting_dimensions": ints([2]),
        "rhs_contracting_dimensions": ints([2 if transposed else 1]),
    }
    check_cases([Case("", DotGeneralOp, [x, y], properties, None, None)])


def test_epilogue_may_overwrite_its_operand() -> None:
    def region() -> Region:
        type = tensor((4, 4), "float32")
        block = Block(arg_types=[type, type])
        x, residual = block.args
        dims: dict[str, Attribute] = {
            "lhs_batching_dimensions": ints(()),
            "rhs_batching_dimensions": ints(()),
            "lhs_contracting_dimensions": ints([1]),
            "rhs_contracting_dimensions": ints([0]),
        }
        product = DotGeneralOp([x, x], result_types=[type], properties=dims)
        total = AddOp([product.result, residual], result_types=[type])
        block.add_ops([product, total, YieldOp(total.result)])
        return Region(block)

    x, y = np.random.default_rng(0).standard_normal((2, 4, 4)).astype(np.float32)
    case = Case("", FusionOp, [x, y], {}, tensor((4, 4), "float32"), region)
    program = Program()
    program.add(case, overwritten=1)
    module = program.module()
    run = MlirExecutable(lowered(module), signature(module))
    np.testing.assert_allclose(run(*program.inputs)[0], x @ x + y, rtol=1e-5)


def test_error_without_mlir(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(LocatedError, match="mlir-opt and mlir-runner are not on PATH"):
        find_tools()


def test_plan_run_compares_outputs_of_mlir(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, expected = tmp_path / "softmax.mlir", tmp_path / "expected.npz"
    program.write_text(SOFTMAX)
    assert plan_run([str(program), "--outputs", str(expected)]) == 0
    arguments = [str(program), "--backend=mlir", "--expect", str(expected)]
    assert plan_run([*arguments, "--steps=2"]) == 0
    assert "all outputs are as expected" in capsys.readouterr().out
