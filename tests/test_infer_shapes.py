"""Tests that tgraph-infer-shapes recovers erased types, for every operation."""

import logging
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import Program, programs
from xdsl.dialects.builtin import ModuleOp, NoneType, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.parser import Parser
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

import tensorplan
from tensorplan.analysis.functions import is_tensor, tensor_functions
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.base import (
    AnyTensor,
    VariableType,
    tensor_type_of,
    with_shape,
)
from tensorplan.dialects.tgraph.elementwise import ConvertOp
from tensorplan.dialects.tgraph.partial import UNKNOWN, is_complete
from tensorplan.dialects.tgraph.shaping import (
    BroadcastInDimOp,
    ConstantOp,
    IotaOp,
    ReshapeOp,
)
from tensorplan.passes import driver
from tensorplan.passes.tgraph.infer_shapes import TGraphInferShapes

MODELS = Path(__file__).parent / "models"


def parse(text: str) -> ModuleOp:
    return Parser(tensorplan.context(), text).parse_module()


def infer(module: ModuleOp, require_static: bool = False) -> None:
    pass_ = TGraphInferShapes(require_static=require_static)
    driver.run(tensorplan.context(), module, [pass_])


def values(module: ModuleOp) -> list[SSAValue]:
    return [
        value
        for _, block in tensor_functions(module)
        for group in (block.args, *(op.results for op in block.ops))
        for value in group
        if is_tensor(value.type)
    ]


def erase(module: ModuleOp, change: Callable[[SSAValue], AnyTensor]) -> ModuleOp:
    """Returns a copy in which each value has the type that `change` returns.

    Variables keep their types, as do values read from or assigned to them.
    """
    copy = module.clone()
    for value in values(copy):
        users = [use.operation.name for use in value.uses]
        owner = getattr(value.owner, "name", "")
        if (
            isinstance(value.type, VariableType)
            or owner == "tgraph.read"
            or "tgraph.assign" in users
        ):
            continue
        Rewriter.replace_value_with_new_type(value, change(value))
    for func in copy.ops:
        assert isinstance(func, FuncOp)
        func.update_function_type()
    return copy


def unknown(type: AnyTensor) -> AnyTensor:
    return TensorType(NoneType(), [UNKNOWN] * type.get_num_dims(), type.encoding)


@pytest.mark.thorough
@pytest.mark.parametrize("path", sorted(MODELS.glob("*.mlir")), ids=lambda p: p.stem)
def test_results_follow_from_arguments(path: Path) -> None:
    pytest.importorskip("jax")
    module = tensorplan.from_stablehlo(path).module

    def change(value: SSAValue) -> AnyTensor:
        type = tensor_type_of(value.type)
        if isinstance(value.owner, ReshapeOp | BroadcastInDimOp | ConstantOp | IotaOp):
            return type  # the result type defines the operation
        if isinstance(value.owner, ConvertOp):
            return with_shape(type, [UNKNOWN] * type.get_num_dims())
        return type if not hasattr(value.owner, "name") else unknown(type)

    erased = erase(module, change)
    assert str(erased) != str(module)
    infer(erased, require_static=True)
    assert str(erased) == str(module)


@given(programs(), st.integers(0, 2**32))
def test_inferred_types_are_right(program: Program, seed: int) -> None:
    rng = random.Random(seed)

    def change(value: SSAValue) -> AnyTensor:
        type = tensor_type_of(value.type)
        sizes = [UNKNOWN if rng.random() < 0.6 else n for n in type.get_shape()]
        element = NoneType() if rng.random() < 0.5 else type.element_type
        return TensorType(element, sizes, type.encoding)

    erased = erase(program.module, change)
    infer(erased)
    for got, want in zip(values(erased), values(program.module), strict=True):
        types = tensor_type_of(got.type), tensor_type_of(want.type)
        assert isinstance(types[0].element_type, type(types[1].element_type) | NoneType)
        for a, b in zip(*(t.get_shape() for t in types), strict=True):
            assert a in (b, UNKNOWN)
    once = str(erased)
    infer(erased)
    assert str(erased) == once


@given(programs(), st.integers(0, 2**32))
def test_wrong_sizes_give_no_traceback(program: Program, seed: int) -> None:
    rng = random.Random(seed)

    def change(value: SSAValue) -> AnyTensor:
        type = tensor_type_of(value.type)
        sizes = [
            rng.choice([n, n, UNKNOWN, UNKNOWN, n + 1, 0, 1]) for n in type.get_shape()
        ]
        return with_shape(type, sizes)

    with suppress(LocatedError, VerifyException):
        infer(erase(program.module, change))


STRIDES = "window_strides = array<i64: 1, 1>"
DILATION = "lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>"
PADDING = "padding_low = array<i64: 1, 0>, padding_high = array<i64: 1, 0>"

BACKWARD = {
    "elementwise": (
        "%r = tgraph.add %a, %b : (tensor<?x3xf32>, tensor<2x?xnone>)"
        " -> tensor<?x?xnone>",
        ["2x3xf32", "2x3xf32"],
    ),
    "compare": (
        '%r = tgraph.compare %a, %b {direction = "LT"} : '
        "(tensor<?xnone>, tensor<?xf32>) -> tensor<4xnone>",
        ["4xf32", "4xf32"],
    ),
    "select": (
        "%p = tgraph.select %a, %b, %b : "
        "(tensor<?xnone>, tensor<3xf32>, tensor<3xf32>) -> tensor<?xnone>",
        ["3xi1", "3xf32"],
    ),
    "transpose": (
        "%r = tgraph.transpose %a {permutation = array<i64: 1, 0>} : "
        "(tensor<?x?xf32>) -> tensor<2x3xf32>",
        ["3x2xf32"],
    ),
    "reshape": (
        "%r = tgraph.reshape %a : (tensor<?x3xf32>) -> tensor<12xf32>",
        ["4x3xf32"],
    ),
    "broadcast of 1": (
        "%r = tgraph.broadcast_in_dim %a {broadcast_dimensions = array<i64: 0>} : "
        "(tensor<?xf32>) -> tensor<1x4xf32>",
        ["1xf32"],
    ),
    "broadcast of 1 or 4: not known": (
        "%r = tgraph.broadcast_in_dim %a {broadcast_dimensions = array<i64: 1>} : "
        "(tensor<?xf32>) -> tensor<1x4xf32>",
        ["?xf32"],
    ),
    "concatenate": (
        "%r = tgraph.concatenate %a, %b {dimension = 0 : i64} : "
        "(tensor<2x?xf32>, tensor<?x3xf32>) -> tensor<7x?xf32>",
        ["2x3xf32", "5x3xf32"],
    ),
    "pad": (
        "%z = tgraph.constant<0.0 : f32> : tensor<f32>\n"
        "%r = tgraph.pad %a, %z {low = array<i64: 1>, high = array<i64: -1>, "
        "interior = array<i64: 2>} : (tensor<?xf32>, tensor<f32>) -> tensor<7xf32>",
        ["3xf32"],
    ),
    "reduce": (
        '%r = tgraph.reduce %a {kind = "add", dimensions = array<i64: 1>} : '
        "(tensor<?x?x?xf32>) -> tensor<2x3xf32>",
        ["2x?x3xf32"],
    ),
    "dot_general": (
        "%r = tgraph.dot_general %a, %b {lhs_batching_dimensions = array<i64: 0>, "
        "rhs_batching_dimensions = array<i64: 0>, "
        "lhs_contracting_dimensions = array<i64: 2>, "
        "rhs_contracting_dimensions = array<i64: 1>} : "
        "(tensor<?x?x5xf32>, tensor<?x?x?xnone>) -> tensor<2x3x4xf32>",
        ["2x3x5xf32", "2x5x4xf32"],
    ),
    "convolution": (
        f'%r = tgraph.convolution %a, %b {{dim_labels = "b01f_01io->b01f", {STRIDES}, '
        f"{PADDING}, {DILATION}, feature_group_count = 2 : i64}} : "
        "(tensor<?x?x?x?xf32>, tensor<3x1x4x?xf32>) -> tensor<2x5x6x8xf32>",
        ["2x5x6x8xf32", "3x1x4x8xf32"],
    ),
    "reduce_window": (
        '%r = tgraph.reduce_window %a {kind = "add", '
        "window_dimensions = array<i64: 2, 3>, window_strides = array<i64: 1, 2>, "
        "padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, "
        "base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>} : "
        "(tensor<?x?xf32>) -> tensor<4x4xf32>",
        ["5x?xf32"],  # with a stride of 2, sizes 9 and 10 both fit
    ),
    "gather": (
        "%r = tgraph.gather %a, %b {offset_dims = array<i64: 1>, "
        "collapsed_slice_dims = array<i64: 0>, start_index_map = array<i64: 0>, "
        "index_vector_dim = 1 : i64, slice_sizes = array<i64: 1, 3>} : "
        "(tensor<9x3xf32>, tensor<?x1xi32>) -> tensor<4x?xnone>",
        ["9x3xf32", "4x1xi32"],
    ),
    "the same operand twice": (
        "%r = tgraph.dot_general %a, %a {lhs_contracting_dimensions = array<i64: 1>, "
        "rhs_contracting_dimensions = array<i64: 0>} : "
        "(tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x4xf32>",
        ["4x4xf32"],
    ),
}


@pytest.mark.parametrize("name", BACKWARD)
def test_arguments_follow_from_results(name: str) -> None:
    body, want = BACKWARD[name]
    # The types of the arguments are written where they are used.
    signature = body.rpartition(" : (")[2].partition(") ->")[0].split(", ")
    names = body.rpartition(" : (")[0].rpartition(" = tgraph.")[2].split(" {")[0]
    given = dict(zip(names.replace(",", "").split()[1:], signature, strict=True))
    args = ", ".join(f"{n}: {given[n]}" for n in ("%a", "%b") if n in given)
    module = parse(f"func.func @main({args}) {{\n{body}\nfunc.return\n}}")
    infer(module)
    func = next(iter(module.ops))
    assert isinstance(func, FuncOp)
    types = [str(type) for type in func.function_type.inputs]
    assert types == [f"tensor<{type}>" for type in want]


def test_inference_through_a_variable() -> None:
    module = parse("""
!t = tensor<?x3xnone>
func.func @main(%v: !tgraph.variable<!t>, %x: tensor<2x?xf32>) {
  %old = tgraph.read %v : !t
  %new = tgraph.add %old, %x : (!t, tensor<2x?xf32>) -> !t
  tgraph.assign %v, %new : !t
  func.return
}
""")
    infer(module, require_static=True)
    assert "%v: !tgraph.variable<tensor<2x3xf32>>, %x: tensor<2x3xf32>" in str(module)


def test_inference_through_a_gradient() -> None:
    module = parse("""
!t = tensor<?x3xf32>
func.func @main(%w: !t, %x: tensor<2x?xf32>) -> (!t, !t) {
  %y = tgraph.add %w, %x : (!t, tensor<2x?xf32>) -> tensor<?x?xf32>
  %l = tgraph.reduce %y {kind = "add", dimensions = array<i64: 0, 1>}
    : (tensor<?x?xf32>) -> tensor<f32>
  %g, %h = tgraph.gradient %l wrt %w, %w : tensor<f32> wrt !t, !t
  func.return %g, %h : !t, !t
}
""")
    infer(module, require_static=True)
    assert "-> (tensor<2x3xf32>, tensor<2x3xf32>)" in str(module)


def test_unknown_types_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    ops = "\n".join(f"%{n + 1} = tgraph.negate %{n} : tensor<?xf32>" for n in range(12))
    module = parse(f"func.func @main(%0: tensor<?xf32>) {{\n{ops}\nfunc.return\n}}")
    with caplog.at_level(logging.INFO, "tensorplan.support.remarks"):
        infer(module)
    (message,) = caplog.messages
    assert "13 types stay unknown in @main: argument 0 of type tensor<?xf32>" in message
    assert message.count("of type") == 10
    assert message.endswith(", ...")
    assert not any(map(is_complete, (tensor_type_of(v.type) for v in values(module))))


def test_time_is_linear_in_a_chain() -> None:
    """Only the last of 2000 operations has a known type. Each is visited a few
    times."""
    ops = "\n".join(
        f"%{n + 1} = tgraph.negate %{n} : tensor<?xf32>" for n in range(2000)
    )
    module = parse(
        f"func.func @main(%0: tensor<?xf32>) {{\n{ops}\n"
        "%r = tgraph.reshape %2000 : (tensor<?xf32>) -> tensor<6xf32>\n"
        "func.return\n}"
    )
    infer(module, require_static=True)
    assert "%0: tensor<6xf32>" in str(module)


def test_inference_through_a_sort() -> None:
    """The size along the sorted dimension is `count`. Other sizes are the operand's."""
    module = parse("""
func.func @main(%x: tensor<?x9xnone>) -> tensor<4x?xf32> {
  %r = tgraph.sort %x {count = 2 : i64, dimension = 1 : i64}
      : (tensor<?x9xnone>) -> tensor<4x?xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = tgraph.compare %a, %b {direction = "LT"}
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    tgraph.yield %c : tensor<i1>
  }
  func.return %r : tensor<4x?xf32>
}
""")
    infer(module, require_static=True)
    func = next(iter(module.ops))
    assert isinstance(func, FuncOp)
    assert str(func.function_type.inputs.data[0]) == "tensor<4x9xf32>"
    assert str(func.function_type.outputs.data[0]) == "tensor<4x2xf32>"
