"""Tests passes for inference: simplified norms, folded scales, precomputed values."""

from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax_cpu import run_stablehlo
from programs import Program, programs
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass

import tensorplan
from tensorplan.analysis.functions import (
    Attributes,
    argument_attributes,
    set_argument_attributes,
    tensor_functions,
)
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.dtypes import Array
from tensorplan.dialects.tgraph.base import PARAMETER, PRECOMPUTED, VariableType
from tensorplan.dialects.tgraph.reducing import ConvolutionOp
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.passes import driver
from tensorplan.passes.tgraph.channels_last import TGraphChannelsLast
from tensorplan.passes.tgraph.fold_scale_axis import TGraphFoldScaleAxis
from tensorplan.passes.tgraph.precompute import TGraphPrecompute
from tensorplan.passes.tgraph.simplify_inference import TGraphSimplifyInference
from tensorplan.runtime.executor import Executable

MODELS = Path(__file__).parent / "models"
SIMPLIFY = [TGraphSimplifyInference(), TGraphFoldScaleAxis()]
ALL = [*SIMPLIFY, TGraphPrecompute()]


def parse(text: str) -> ModuleOp:
    return Parser(tensorplan.context(), text).parse_module()


def after(module: ModuleOp, *passes: ModulePass) -> ModuleOp:
    result = module.clone()
    driver.run(tensorplan.context(), result, passes)
    return result


def main(module: ModuleOp) -> FuncOp:
    return next(f for f, _ in tensor_functions(module) if f.sym_name.data == "main")


def count(module: ModuleOp) -> Counter[str]:
    return Counter(
        op.name.removeprefix("tgraph.") for op in main(module).body.block.ops
    )


def arguments(module: ModuleOp, seed: int = 0) -> list[Array]:
    """Returns random arguments. They are positive because some are variances."""
    rng = np.random.default_rng(seed)
    return [
        (np.abs(rng.standard_normal(i.shape)) * 0.5 + 0.1).astype(i.dtype)
        for i in signature(module).inputs
    ]


def run_split(
    module: ModuleOp, split: ModuleOp, inputs: list[Array], *, planned: bool
) -> list[Array]:
    """Runs `@precompute`, then `@main` with the remaining arguments and its results."""
    functions = {f.sym_name.data: f for f, _ in tensor_functions(split)}
    names = [a.name_hint for a in main(module).body.block.args]
    by_name = dict(zip(names, inputs, strict=True))

    def run(entry: str, given: list[Array]) -> list[Array]:
        if planned:
            given = [array.copy() for array in given]
            return list(Executable(tensorplan.plan(split), entry)(*given))
        return run_reference(split, given, entry)

    computed: list[Array] = []
    if func := functions.get("precompute"):
        names = [a.name_hint for a in func.body.block.args]
        computed = run("precompute", [by_name[name] for name in names])
    rest = functions["main"]
    given = [
        computed[number.value.data]
        if isinstance(number := attrs.get(PRECOMPUTED), IntegerAttr)
        else by_name[argument.name_hint]
        for argument, attrs in zip(
            rest.body.block.args, argument_attributes(rest), strict=True
        )
    ]
    return run("main", given)


def check(text: str, *, kept: dict[str, int]) -> ModuleOp:
    """Asserts that the passes change no values, planned or not, and that `@main` keeps
    these numbers of operations. Returns the module after all passes."""
    module = parse(text)
    inputs = arguments(module)
    want = run_reference(module, inputs)
    simple = after(module, *SIMPLIFY)
    for got, value in zip(run_reference(simple, inputs), want, strict=True):
        np.testing.assert_allclose(got, value, rtol=1e-5, atol=1e-5)
    split = after(module, *ALL)
    for planned in (False, True):
        results = run_split(module, split, inputs, planned=planned)
        for got, value in zip(results, want, strict=True):
            np.testing.assert_allclose(got, value, rtol=1e-5, atol=1e-5)
    found = count(split)
    for name in ("broadcast_in_dim", "constant", "func.return"):
        found.pop(name, None)
    assert found == kept
    return split


CONV = """tgraph.convolution %x, %w {dim_labels = "b01f_01io->b01f",
  window_strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>,
  padding_high = array<i64: 1, 1>, lhs_dilation = array<i64: 1, 1>,
  rhs_dilation = array<i64: 1, 1>} : (!x, !w) -> !y"""

TYPES = """
!x = tensor<2x6x6x4xf32>
!w = tensor<3x3x4x8xf32>
!y = tensor<2x6x6x8xf32>
!c = tensor<8xf32>
"""


def spread(name: str, source: str = "!c", target: str = "!y") -> str:
    return (
        f"%{name}_y = tgraph.broadcast_in_dim %{name} "
        f"{{broadcast_dimensions = array<i64: 3>}} : ({source}) -> {target}\n"
    )


BATCH_NORM = {
    "as in the paper": """
  %eps = tgraph.constant<1.0e-3 : f32> : !y
  %v = tgraph.add %var_y, %eps : !y
  %std = tgraph.sqrt %v : !y
  %0 = tgraph.subtract %conv, %mean_y : !y
  %1 = tgraph.divide %0, %std : !y
  %2 = tgraph.multiply %gamma_y, %1 : !y
  %3 = tgraph.add %2, %beta_y : !y
""",
    "with rsqrt, per channel": """
  %eps = tgraph.constant<1.0e-3 : f32> : !c
  %v = tgraph.add %var, %eps : !c
  %i = tgraph.rsqrt %v : !c
  %g = tgraph.multiply %i, %gamma : !c
  %g_y = tgraph.broadcast_in_dim %g {broadcast_dimensions = array<i64: 3>}
    : (!c) -> !y
  %0 = tgraph.subtract %conv, %mean_y : !y
  %1 = tgraph.multiply %0, %g_y : !y
  %3 = tgraph.add %1, %beta_y : !y
""",
    "through dimensions of size 1": """
  %m = tgraph.reshape %mean : (!c) -> tensor<1x1x1x8xf32>
  %m_y = tgraph.broadcast_in_dim %m {broadcast_dimensions = array<i64: 0, 1, 2, 3>}
    : (tensor<1x1x1x8xf32>) -> !y
  %std = tgraph.sqrt %var_y : !y
  %0 = tgraph.subtract %conv, %m_y : !y
  %1 = tgraph.divide %0, %std : !y
  %2 = tgraph.multiply %gamma_y, %1 : !y
  %3 = tgraph.add %2, %beta_y : !y
""",
}


@pytest.mark.parametrize("name", BATCH_NORM)
@pytest.mark.parametrize("bias", [False, True])
def test_batch_norm_is_folded_into_the_convolution(name: str, bias: bool) -> None:
    marked = "{tgraph.parameter}"
    names = ["bias", "gamma", "beta", "mean", "var"]
    args = ", ".join(f"%{n}: !c {marked}" for n in names)
    conv = f"%conv = {CONV}"
    if bias:
        conv = f"%raw = {CONV}\n%conv = tgraph.add %raw, %bias_y : !y"
    check(
        f"{TYPES}func.func @main(%x: !x, %w: !w {marked}, {args}) -> !y {{\n"
        + "".join(map(spread, names))
        + conv
        + BATCH_NORM[name]
        + "%zero = tgraph.constant<0.0 : f32> : !y\n"
        "%r = tgraph.maximum %3, %zero : !y\nfunc.return %r : !y\n}",
        kept={"convolution": 1, "add": 1, "maximum": 1},
    )


def conv_net(body: str, arguments: str = "") -> str:
    return (
        f"{TYPES}func.func @main(%x: !x, %w: !w {{tgraph.parameter}}{arguments}) "
        f"-> !y {{\n{body}\n}}"
    )


def test_a_scale_passes_relu_if_it_is_a_positive_constant() -> None:
    text = """
  %conv = CONV
  %zero = tgraph.constant<0.0 : f32> : !y
  %relu = tgraph.maximum %conv, %zero : !y
  %s = tgraph.constant<NUMBER : f32> : !y
  %r = tgraph.multiply %relu, %s : !y
  func.return %r : !y""".replace("CONV", CONV)
    kept = {"convolution": 1, "maximum": 1}
    check(conv_net(text.replace("NUMBER", "0.5")), kept=kept)
    kept["multiply"] = 1
    check(conv_net(text.replace("NUMBER", "-0.5")), kept=kept)


def test_a_scale_of_the_input_features() -> None:
    x = spread("s", "tensor<4xf32>", "!x") + "%x1 = tgraph.divide %x, %s_y : !x\n"
    body = f"{x}%conv = {CONV.replace('%x', '%x1')}\nfunc.return %conv : !y"
    arguments = ", %s: tensor<4xf32> {tgraph.parameter}"
    check(conv_net(body, arguments), kept={"convolution": 1})
    # The scale stays if the scaled value has another use.
    both = body.replace(
        "func.return",
        "%t = tgraph.slice %x1 {start_indices = array<i64: 0, 0, 0, 0>, "
        "limit_indices = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1, 1, 1>} : "
        "(!x) -> tensor<1x1x1x1xf32>\n"
        "%u = tgraph.reshape %t : (tensor<1x1x1x1xf32>) -> tensor<f32>\n"
        "%v = tgraph.broadcast_in_dim %u {broadcast_dimensions = array<i64>} : "
        "(tensor<f32>) -> !y\n"
        "%r = tgraph.add %conv, %v : !y\nfunc.return",
    ).replace("func.return %conv", "func.return %r")
    kept = {"convolution": 1, "divide": 1, "add": 1, "slice": 1, "reshape": 1}
    check(conv_net(both, arguments), kept=kept)


DOT = """
!a = tensor<3x4x5xf32>
!b = tensor<3x5x4xf32>
!r = tensor<3x4x4xf32>
func.func @main(%x: SIDE_X, %w: SIDE_W {tgraph.parameter},
                %s: tensor<SIZExf32> {tgraph.parameter}) -> !r {
  %y = tgraph.dot_general OPERANDS {
    lhs_batching_dimensions = array<i64: 0>, rhs_batching_dimensions = array<i64: 0>,
    lhs_contracting_dimensions = array<i64: 2>,
    rhs_contracting_dimensions = array<i64: 1>} : (!a, !b) -> !r
  %t = tgraph.broadcast_in_dim %s {broadcast_dimensions = array<i64: DIM>}
    : (tensor<SIZExf32>) -> !r
  %r = tgraph.multiply %y, %t : !r
  func.return %r : !r
}
"""


@pytest.mark.parametrize("weight", [0, 1])
@pytest.mark.parametrize(("dim", "size"), [(0, 3), (1, 4), (2, 4)])
def test_a_scale_of_a_product(weight: int, dim: int, size: int) -> None:
    """A scale is folded if its dimension is a batch dimension or only the weight's."""
    sides = ("!a", "!b")
    text = DOT.replace("SIDE_W", sides[weight]).replace("SIDE_X", sides[1 - weight])
    text = text.replace("OPERANDS", "%w, %x" if weight == 0 else "%x, %w")
    text = text.replace("SIZE", str(size)).replace("DIM", str(dim))
    folded = dim in (0, weight + 1)
    check(
        text, kept={"dot_general": 1} if folded else {"dot_general": 1, "multiply": 1}
    )


def test_always_folds_without_parameters() -> None:
    text = DOT.replace("SIDE_W", "!b").replace("SIDE_X", "!a").replace("DIM", "2")
    text = text.replace("OPERANDS", "%x, %w").replace("SIZE", "4")
    module = parse(text.replace("{tgraph.parameter}", ""))
    assert str(after(module, TGraphFoldScaleAxis())) == str(module)
    always = after(module, TGraphFoldScaleAxis(always=True))
    names = [op.name for op in main(always).body.block.ops]
    assert names.index("tgraph.multiply") < names.index("tgraph.dot_general")
    inputs = arguments(module)
    (want,), (got,) = run_reference(module, inputs), run_reference(always, inputs)
    np.testing.assert_allclose(got, want, rtol=1e-5)


@cache
def resnet18() -> tuple[ModuleOp, ModuleOp]:
    """Returns the model, in which all arguments but the image are parameters, before
    and after the passes."""
    from xdsl.transforms.canonicalize import CanonicalizePass

    module = tensorplan.from_stablehlo(MODELS / "resnet18_infer.mlir").module
    func = main(module)
    last = len(func.body.block.args) - 1
    marked: list[Attributes] = [{PARAMETER: UnitAttr()}] * last
    set_argument_attributes(func, [*marked, {}])
    return module, after(module, CanonicalizePass(), *ALL)


def test_resnet18_keeps_one_operation_per_layer() -> None:
    """The passes fold all 20 batch norms into the convolutions' weights and shifts."""
    pytest.importorskip("jax")
    _, split = resnet18()
    found = count(split)
    assert found["convolution"] == 20
    assert not {"multiply", "subtract", "rsqrt"} & found.keys()


@pytest.mark.slow
def test_resnet18_gives_the_same_values() -> None:
    pytest.importorskip("jax")
    module, split = resnet18()
    rng = np.random.default_rng(0)
    inputs = [
        (np.abs(rng.standard_normal(i.shape)) * 0.1 + 0.01).astype(i.dtype)
        for i in signature(module).inputs
    ]
    want = run_reference(module, inputs)
    got = run_split(module, split, inputs, planned=True)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * np.abs(b).max())


STABLEHLO = """
func.func @main(%x: tensor<2x4x3xf32>, %gamma: tensor<3xf32> {tgraph.parameter},
    %beta: tensor<3xf32> {tgraph.parameter}, %mean: tensor<3xf32> {tgraph.parameter},
    %var: tensor<3xf32> {tgraph.parameter}) -> tensor<SIZESxf32> {
  %0 = "stablehlo.batch_norm_inference"(%x, %gamma, %beta, %mean, %var)
    {epsilon = 1.0e-3 : f32, feature_index = 2 : i64}
    : (tensor<2x4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
    -> tensor<SIZESxf32>
  %1 = stablehlo.negate %0 : tensor<SIZESxf32>
  return %1 : tensor<SIZESxf32>
}
"""


def test_batch_norm_from_stablehlo() -> None:
    pytest.importorskip("jax")
    text = STABLEHLO.replace("SIZES", "2x4x3")
    module = tensorplan.from_stablehlo(text).module
    inputs = arguments(module)
    (want,) = run_stablehlo(text.replace("{tgraph.parameter}", ""), inputs)
    simple = after(module, TGraphSimplifyInference())
    for program in (module, simple):
        np.testing.assert_allclose(run_reference(program, inputs)[0], want, rtol=1e-5)
    assert count(simple)["multiply"] == 3  # two of them per channel
    assert count(simple)["divide"] == 2


def test_unknown_sizes_of_batch_norm() -> None:
    pytest.importorskip("jax")
    module = tensorplan.from_stablehlo(STABLEHLO.replace("SIZES", "?x4x?")).module
    known = tensorplan.from_stablehlo(STABLEHLO.replace("SIZES", "2x4x3")).module
    assert str(module) == str(known)
    open_too = STABLEHLO.replace("SIZES", "?x4x3").replace("<2x4x3", "<?x4x3")
    with pytest.raises(LocatedError, match=r"types stay unknown in @main: argument 0"):
        tensorplan.from_stablehlo(open_too)


@given(programs(), st.integers(0, 255), st.booleans())
def test_precomputing_preserves_values(
    program: Program, marks: int, simplify: bool
) -> None:
    """Values are bitwise equal, or nearly equal after the passes that reorder."""
    module = program.module.clone()
    func = main(module)
    args = func.body.block.args
    for index, argument in enumerate(args):
        argument.name_hint = f"arg{index}"
    set_argument_attributes(
        func,
        [
            {PARAMETER: UnitAttr()}
            if marks >> n & 1 and not isinstance(argument.type, VariableType)
            else {}
            for n, argument in enumerate(args)
        ],
    )
    inputs = arguments(module)
    split = after(module, *(ALL if simplify else ALL[2:]))
    want = run_reference(module, inputs)
    got = run_split(module, split, inputs, planned=False)
    for a, b in zip(got, want, strict=True):
        if simplify:
            scale = np.max(np.abs(b), initial=1, where=np.isfinite(b))
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * scale)
        else:
            np.testing.assert_array_equal(a, b)


def test_nothing_to_precompute() -> None:
    text = """
!t = tensor<4xf32>
func.func @main(%x: !t, %w: !t {tgraph.parameter}) -> !t {
  %t = tgraph.transpose %w {permutation = array<i64: 0>} : !t
  %r = tgraph.add %x, %t : !t
  func.return %r : !t
}"""
    module = parse(text)
    assert str(after(module, TGraphPrecompute())) == str(module)


def conv_bn(layers, x):
    jax = pytest.importorskip("jax")
    for weight, (scale, shift, mean, variance) in layers:
        x = jax.lax.conv_general_dilated(
            *(x, weight, (1, 1), "SAME"), dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift
        x = jax.nn.relu(x)
    return x


def conv_bn_arguments():
    rng = np.random.default_rng(0)
    layers = [
        (
            rng.standard_normal((3, 3, 4, 4), np.float32),
            rng.uniform(0.5, 1.5, (4, 4)).astype(np.float32),
        )
        for _ in range(2)
    ]
    return layers, rng.standard_normal((1, 6, 6, 4), np.float32)


def test_batch_norms_are_folded_into_parameters_of_jax() -> None:
    layers, x = conv_bn_arguments()
    want = np.asarray(conv_bn(layers, x))
    as_it_is, simple = (
        tensorplan.from_jax(conv_bn, layers, x, parameter_argnums=0, simplify=simplify)
        for simplify in (False, True)
    )
    assert list(as_it_is.parameters) == [
        f"args[0][{layer}][{part}]" for layer in (0, 1) for part in (0, 1)
    ]
    assert list(simple.parameters) == [f"precomputed.{n}" for n in range(4)]
    assert not {"multiply", "subtract", "rsqrt"} & count(simple.module).keys()
    for model in (as_it_is, simple):
        (got,) = tensorplan.compile(model)(x)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())


def test_parameters_without_values_stay() -> None:
    """The first layer's parameters have no values, so only the second is simplified."""
    jax = pytest.importorskip("jax")
    (first, second), x = conv_bn_arguments()
    shapes = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), first)
    layers = [shapes, second]
    model = tensorplan.from_jax(conv_bn, layers, x, parameter_argnums=0)
    assert list(model.parameters) == ["precomputed.0", "precomputed.1"]
    assert count(model.module)["rsqrt"] == 1
    marks = [slot.is_parameter for slot in signature(model.module).inputs]
    assert marks == [True, True, False, True, True]
    (got,) = tensorplan.compile(model)(*first, x)
    want = np.asarray(conv_bn([first, second], x))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())
    unknown = tensorplan.from_jax(conv_bn, [shapes], x, parameter_argnums=0)
    plain = tensorplan.from_jax(
        conv_bn, [shapes], x, parameter_argnums=0, simplify=False
    )
    assert str(unknown) == str(plain)
    assert not unknown.parameters


GRADIENT = """
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>, %s: tensor<4xf32>)
    -> tensor<4xf32> {
  %v = tgraph.multiply %w, %s : tensor<4xf32>
  %y = tgraph.multiply %x, %v : tensor<4xf32>
  %loss = tgraph.reduce %y {kind = "add", dimensions = array<i64: 0>}
    : (tensor<4xf32>) -> tensor<f32>
  %g = tgraph.gradient %loss wrt %w : tensor<f32> wrt tensor<4xf32>
  func.return %g : tensor<4xf32>
}
"""


def test_gradients_by_parameters_are_kept() -> None:
    x, w, s = np.arange(12, dtype=np.float32).reshape(3, 4)
    model = tensorplan.from_stablehlo(GRADIENT, parameters={1: w, 2: s})
    assert list(model.parameters) == ["args[1]", "args[2]"]
    np.testing.assert_array_equal(tensorplan.compile(model)(x)[0], x * s)


LAYOUTS = Path(__file__).parents[1] / "lit_tests" / "tgraph-channels-last"


@pytest.mark.parametrize("entry", ["network", "flattened"])
def test_channels_last_keeps_the_values(entry: str) -> None:
    module = parse((LAYOUTS / "network.mlir").read_text())
    last = after(module, TGraphChannelsLast())
    rng = np.random.default_rng(0)
    (shapes,) = (
        [a.type.get_shape() for a in f.body.block.args]  # pyright: ignore
        for f, _ in tensor_functions(module)
        if f.sym_name.data == entry
    )
    inputs = [rng.standard_normal(shape, np.float32) for shape in shapes]
    for got, want in zip(
        run_reference(last, inputs, entry),
        run_reference(module, inputs, entry),
        strict=True,
    ):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_channels_last_is_idempotent() -> None:
    module = after(parse((LAYOUTS / "network.mlir").read_text()), TGraphChannelsLast())
    assert str(after(module, TGraphChannelsLast())) == str(module)


def test_onnx_models_have_their_channels_last() -> None:
    pytest.importorskip("onnx")
    model = tensorplan.from_onnx(MODELS / "onnx" / "resnet18.onnx")
    assert {
        op.labels[0] for op in model.module.walk() if isinstance(op, ConvolutionOp)
    } == {"b01f"}
    # The only transpose is before the first convolution.
    assert count(model.module)["transpose"] == 1
