"""Compares the rules of `tgraph-gradient` with central differences and with JAX."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from modules import parse, run
from programs import Program, programs
from sampling import examples
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.dialects.dtypes import Array
from tensorplan.dialects.tgraph import (
    TGraph,
    bodies,
    matrices,
    random,
    reducing,
    shaping,
    structure,
)
from tensorplan.dialects.tgraph import elementwise as ew
from tensorplan.dialects.tgraph.base import TensorOp
from tensorplan.dialects.tgraph.callbacks import HostCallbackOp
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.passes.tgraph.gradient import TGraphGradient
from tensorplan.passes.tgraph.gradients.site import RULES


def check_differences(module: ModuleOp, arrays: Sequence[Array], count: int) -> None:
    """Compares the gradients of the first `count` results, in f64, with central
    differences along a random direction."""
    rng = np.random.default_rng(1)
    differentiated = run(module, TGraphGradient(of=tuple(range(count))))
    slots = signature(module).inputs
    floats = [n for n, slot in enumerate(slots) if slot.dtype.kind == "f"]
    plain = run_reference(module, arrays)[:count]
    has_heads = any(y.ndim for y in plain)
    heads = [
        np.asarray(rng.standard_normal(y.shape) if has_heads else 1.0) for y in plain
    ]
    got = run_reference(differentiated, [*arrays, *(heads if has_heads else [])])
    returned = len(run_reference(module, arrays)) - sum(s.is_variable for s in slots)
    gradients = got[returned : returned + len(floats)]
    directions = [np.asarray(rng.standard_normal(arrays[n].shape)) for n in floats]

    def weighted(step: float) -> float:
        moved = list(arrays)
        for n, direction in zip(floats, directions, strict=True):
            moved[n] = arrays[n] + step * direction
        results = run_reference(module, moved)[:count]
        return sum(float(np.sum(h * y)) for h, y in zip(heads, results, strict=True))

    for n, gradient in zip(floats, gradients, strict=True):
        assert gradient.shape == slots[n].shape
    slope = sum(
        float(np.sum(g * d)) for g, d in zip(gradients, directions, strict=True)
    )
    step = 1e-6
    differences = (weighted(step) - weighted(-step)) / (2 * step)
    scale = max(1.0, abs(slope), abs(weighted(0.0)))
    assert abs(slope - differences) <= 1e-6 * scale


# For every rule: the arguments and the body of a program in f64.

T = "tensor<3x4xf64>"
B = "tensor<3x4xi1>"
C = "tensor<3x4xcomplex<f64>>"
M = "tensor<2x3x3xf64>"


def unary(name: str) -> tuple[str, str]:
    return f"%x: {T}", f"%r = tgraph.{name} %x : {T}"


def binary(name: str) -> tuple[str, str]:
    return f"%x: {T}, %y: {T}", f"%r = tgraph.{name} %x, %y : {T}"


def view(name: str, attributes: str, result: str) -> tuple[str, str]:
    body = f"%r = tgraph.{name} %x {{{attributes}}} : ({T}) -> {result}"
    return f"%x: {T}", body


def dims(name: str, *values: int) -> str:
    return f"{name} = array<i64{':' if values else ''} {', '.join(map(str, values))}>"


POSITIVE = {"log", "log_plus_one", "rsqrt", "sqrt", "power"}

PROGRAMS: dict[str, tuple[str, str]] = {
    **{
        name: unary(name)
        for name in (
            "abs cosine exponential exponential_minus_one log log_plus_one logistic "
            "negate rsqrt sine sqrt tanh ceil floor sign erf erfc cbrt tan "
            "round_nearest_afz round_nearest_even"
        ).split()
    },
    **{
        name: binary(name)
        for name in (
            "add subtract multiply divide maximum minimum power remainder atan2"
        ).split()
    },
    **{
        f"{name} of complex numbers": (
            f"%x: {T}, %y: {T}",
            f"%z = tgraph.complex %x, %y : ({T}, {T}) -> {C}\n{body}\n"
            f"%a = tgraph.real %w : ({C}) -> {T}\n"
            f"%b = tgraph.imag %w : ({C}) -> {T}\n"
            f"%r = tgraph.multiply %a, %b : {T}",
        )
        for name, body in {
            **{
                kind: f"%w = tgraph.{kind} %z : {C}"
                for kind in ("cosine", "exponential", "log", "sqrt", "tanh")
            },
            "products": (
                f"%c = tgraph.convert %y : ({T}) -> {C}\n"
                f"%p = tgraph.multiply %z, %z : {C}\n"
                f"%q = tgraph.divide %p, %c : {C}\n%w = tgraph.subtract %q, %z : {C}"
            ),
            **{
                kind: f'%w = tgraph.fft %z {{fft_type = "{kind}", length = '
                f"array<i64: {length}>}} : {C}"
                for kind, length in (("FFT", "4"), ("IFFT", "3, 4"))
            },
        }.items()
    },
    **{
        f"fft of real numbers {size}": (
            f"%x: tensor<3x{size}xf64>",
            f'%z = tgraph.fft %x {{fft_type = "RFFT", length = array<i64: {given}>}} : '
            f"(tensor<3x{size}xf64>) -> tensor<3x{half}xcomplex<f64>>\n"
            f"%w = tgraph.multiply %z, %z : tensor<3x{half}xcomplex<f64>>\n"
            f'%r = tgraph.fft %w {{fft_type = "IRFFT", length = array<i64: {given}>}} '
            f": (tensor<3x{half}xcomplex<f64>>) -> tensor<3x{size}xf64>",
        )
        for size, half, given in ((1, 1, "1"), (2, 2, "2"), (5, 3, "5"), (4, 3, "3, 4"))
    },
    **{
        f"cholesky {lower}": (
            f"%x: {M}",
            f"%t = tgraph.transpose %x {{permutation = array<i64: 0, 2, 1>}} : {M}\n"
            "%d = tgraph.dot_general %x, %t {lhs_batching_dimensions = array<i64: 0>, "
            "rhs_batching_dimensions = array<i64: 0>, "
            "lhs_contracting_dimensions = array<i64: 2>, "
            f"rhs_contracting_dimensions = array<i64: 1>}} : {M}\n"
            f"%r = tgraph.cholesky %d {{lower = {lower}}} : {M}",
        )
        for lower in ("true", "false")
    },
    **{
        f"triangular_solve {left} {lower} {unit} {transpose}": (
            f"%a: {M}, %x: {M}",
            f"%r = tgraph.triangular_solve %a, %x {{left_side = {left}, lower = "
            f'{lower}, unit_diagonal = {unit}, transpose_a = "{transpose}"}} : {M}',
        )
        for left, lower, unit, transpose in (
            ("true", "true", "false", "NO_TRANSPOSE"),
            ("true", "false", "true", "TRANSPOSE"),
            ("false", "true", "true", "ADJOINT"),
            ("false", "false", "false", "NO_TRANSPOSE"),
        )
    },
    "square": (f"%x: {T}", f"%r = tgraph.multiply %x, %x : {T}"),
    "clamp": (
        f"%x: {T}, %low: {T}, %high: {T}",
        f"%r = tgraph.clamp %low, %x, %high : {T}",
    ),
    "select": (
        f"%x: {T}, %y: {T}",
        f'%c = tgraph.compare %x, %y {{direction = "LT"}} : ({T}, {T}) -> {B}\n'
        f"%s = tgraph.sine %x : {T}\n"
        f"%r = tgraph.select %c, %s, %y : ({B}, {T}, {T}) -> {T}",
    ),
    "convert": (
        f"%x: {T}",
        f"%s = tgraph.convert %x : ({T}) -> tensor<3x4xi32>\n"
        f"%t = tgraph.convert %s : (tensor<3x4xi32>) -> {T}\n"
        f"%u = tgraph.convert %x : ({T}) -> {T}\n"
        f"%r = tgraph.multiply %u, %t : {T}",
    ),
    "broadcast_in_dim": (
        "%x: tensor<4x1x3xf64>",
        f"%r = tgraph.broadcast_in_dim %x {{{dims('broadcast_dimensions', 3, 1, 0)}}} "
        ": (tensor<4x1x3xf64>) -> tensor<3x5x2x4xf64>",
    ),
    "reshape": (
        f"%x: {T}",
        f"%r = tgraph.reshape %x : ({T}) -> tensor<2x6xf64>",
    ),
    "transpose": view("transpose", dims("permutation", 1, 0), "tensor<4x3xf64>"),
    "transpose 3": (
        "%x: tensor<2x3x4xf64>",
        f"%r = tgraph.transpose %x {{{dims('permutation', 2, 0, 1)}}} "
        ": (tensor<2x3x4xf64>) -> tensor<4x2x3xf64>",
    ),
    "reverse": view("reverse", dims("dimensions", 1), T),
    "slice": view(
        "slice",
        f"{dims('start_indices', 1, 0)}, {dims('limit_indices', 3, 4)}, "
        f"{dims('strides', 1, 3)}",
        "tensor<2x2xf64>",
    ),
    "empty slice": view(
        "slice",
        f"{dims('start_indices', 1, 2)}, {dims('limit_indices', 3, 2)}, "
        f"{dims('strides', 1, 1)}",
        "tensor<2x0xf64>",
    ),
    "concatenate": (
        f"%x: {T}, %y: tensor<3x2xf64>",
        "%r = tgraph.concatenate %x, %y, %x {dimension = 1 : i64} "
        f": ({T}, tensor<3x2xf64>, {T}) -> tensor<3x10xf64>",
    ),
    "pad": (
        f"%x: {T}, %v: tensor<f64>",
        f"%r = tgraph.pad %x, %v {{{dims('low', 1, -2)}, {dims('high', -1, 3)}, "
        f"{dims('interior', 0, 2)}}} : ({T}, tensor<f64>) -> tensor<3x11xf64>",
    ),
    "full_like": (
        f"%x: {T}",
        f"%f = tgraph.full_like %x {{value = 2.0 : f64}} : {T}\n"
        f"%r = tgraph.multiply %f, %x : {T}",
    ),
    "device_copy": (
        '%x: tensor<4xf64, "cpu:0">',
        '%c = tgraph.device_copy %x : (tensor<4xf64, "cpu:0">) '
        '-> tensor<4xf64, "cpu:1">\n'
        '%r = tgraph.sine %c : tensor<4xf64, "cpu:1">',
    ),
    **{
        f"reduce {kind}": view(
            "reduce", f'kind = "{kind}", {dims("dimensions", 0)}', "tensor<4xf64>"
        )
        for kind in ("add", "multiply", "maximum", "minimum")
    },
    "reduce to a scalar": view(
        "reduce", f'kind = "multiply", {dims("dimensions", 0, 1)}', "tensor<f64>"
    ),
    "dot_general": (
        "%x: tensor<2x3x4x5xf64>, %y: tensor<5x6x2x4xf64>",
        f"%r = tgraph.dot_general %x, %y {{{dims('lhs_batching_dimensions', 0)}, "
        f"{dims('rhs_batching_dimensions', 2)}, "
        f"{dims('lhs_contracting_dimensions', 2, 3)}, "
        f"{dims('rhs_contracting_dimensions', 3, 0)}}} : "
        "(tensor<2x3x4x5xf64>, tensor<5x6x2x4xf64>) -> tensor<2x3x6xf64>",
    ),
    "convolution": (
        "%x: tensor<2x5x6x4xf64>, %y: tensor<3x2x2x6xf64>",
        '%r = tgraph.convolution %x, %y {dim_labels = "b01f_01io->b01f", '
        f"{dims('window_strides', 1, 2)}, {dims('padding_low', 1, -1)}, "
        f"{dims('padding_high', 2, 1)}, {dims('lhs_dilation', 2, 1)}, "
        f"{dims('rhs_dilation', 1, 2)}, feature_group_count = 2 : i64, "
        "batch_group_count = 1 : i64} : "
        "(tensor<2x5x6x4xf64>, tensor<3x2x2x6xf64>) -> tensor<2x10x2x6xf64>",
    ),
    **{
        f"reduce_window {kind}": (
            "%x: tensor<5x6xf64>",
            f'%r = tgraph.reduce_window %x {{kind = "{kind}", '
            f"{dims('window_dimensions', 3, 2)}, {dims('window_strides', 2, 1)}, "
            f"{dims('padding_low', 1, 0)}, {dims('padding_high', 1, 1)}, "
            f"{dims('base_dilations', 1, 1)}, {dims('window_dilations', 1, 1)}}} : "
            "(tensor<5x6xf64>) -> tensor<3x6xf64>",
        )
        for kind in ("add", "maximum", "minimum")
    },
    # The start in the first dimension is out of bounds, so it is clamped.
    "dynamic_slice": (
        f"%x: {T}",
        "%i = tgraph.constant<2 : i32> : tensor<i32>\n"
        f"%r = tgraph.dynamic_slice %x, %i, %i {{{dims('slice_sizes', 2, 2)}}} "
        f": ({T}, tensor<i32>, tensor<i32>) -> tensor<2x2xf64>",
    ),
    "dynamic_update_slice": (
        f"%x: {T}, %u: tensor<2x2xf64>",
        "%i = tgraph.constant<2 : i32> : tensor<i32>\n"
        "%r = tgraph.dynamic_update_slice %x, %u, %i, %i "
        f": ({T}, tensor<2x2xf64>, tensor<i32>, tensor<i32>) -> {T}",
    ),
    # The last start is out of bounds, so it is clamped.
    "gather": (
        "%x: tensor<6x5xf64>",
        "%i = tgraph.constant<dense<[[0, 1], [0, 1], [9, -2]]> : tensor<3x2xi32>> "
        ": tensor<3x2xi32>\n"
        f"%r = tgraph.gather %x, %i {{{dims('offset_dims', 1)}, "
        f"{dims('collapsed_slice_dims', 1)}, {dims('start_index_map', 0, 1)}, "
        f"index_vector_dim = 1 : i64, {dims('slice_sizes', 2, 1)}}} : "
        "(tensor<6x5xf64>, tensor<3x2xi32>) -> tensor<3x2xf64>",
    ),
    # The second and the third update have the same place. The last update is out of
    # bounds, so it is dropped.
    **{
        f"scatter {kind}": (
            "%x: tensor<6x5xf64>, %u: tensor<4x5xf64>",
            "%i = tgraph.constant<dense<[0, 3, 3, 6]> : tensor<4xi32>> "
            ": tensor<4xi32>\n"
            f'%r = tgraph.scatter %x, %i, %u {{kind = "{kind}", '
            f"{dims('update_window_dims', 1)}, {dims('inserted_window_dims', 0)}, "
            f"{dims('scatter_dims_to_operand_dims', 0)}, "
            "index_vector_dim = 1 : i64} : "
            "(tensor<6x5xf64>, tensor<4xi32>, tensor<4x5xf64>) -> tensor<6x5xf64>",
        )
        for kind in ("add", "replace")
    },
}


def module_of(arguments: str, body: str) -> ModuleOp:
    """A function that returns the sine of `%r`, so second derivatives are not zero."""
    *_, type = body.rsplit("-> " if "-> " in body.splitlines()[-1] else " : ", 1)
    return parse(
        f"func.func @main({arguments}) -> {type} {{\n{body}\n"
        f"%sine = tgraph.sine %r : {type}\nfunc.return %sine : {type}\n}}"
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_rules_agree_with_central_differences(name: str) -> None:
    module = module_of(*PROGRAMS[name])
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(slot.shape) for slot in signature(module).inputs]
    if name.partition(" ")[0] in POSITIVE:
        arrays = [np.abs(array) + 0.1 for array in arrays]
    check_differences(module, arrays, 1)
    if name == "reduce multiply":
        arrays[0][1, 1:] = arrays[0][2, 2] = 0  # one zero, or two
        check_differences(module, arrays, 1)


@pytest.mark.parametrize("name", ["dot_general", "convolution"])
def test_gradients_of_contractions_of_narrow_operands(name: str) -> None:
    """The gradients of contractions of f32 into f64 equal those of f64 operands, but
    have the operands' type."""
    arguments, body = PROGRAMS[name]
    narrow = module_of(
        arguments.replace("f64", "f32"),
        body.replace("f64>, ", "f32>, ").replace("f64>)", "f32>)"),
    )
    wide = module_of(arguments, body)
    rng = np.random.default_rng(0)
    x, y, head = (
        rng.standard_normal(slot.shape).astype(np.float32)
        for slot in (*signature(narrow).inputs, signature(narrow).results[0])
    )
    results = [
        run_reference(
            run(module, TGraphGradient(of=(0,))),
            [x.astype(dtype), y.astype(dtype), head.astype(np.float64)],
        )
        for module, dtype in ((narrow, np.float32), (wide, np.float64))
    ]
    got, want = results
    assert [gradient.dtype.name for gradient in got[1:]] == ["float32", "float32"]
    for x, y in zip(got, want, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


# Operations without gradients: they have no float operand or result, read only a shape,
# or do not occur before fusion.
WITHOUT_RULE = {
    *(ew.AndOp, ew.CompareOp, ew.IsFiniteOp, ew.NotOp, ew.OrOp, ew.XorOp),
    *(ew.CountLeadingZerosOp, ew.PopcntOp, random.RngBitGeneratorOp),
    *(ew.ShiftLeftOp, ew.ShiftRightArithmeticOp, ew.ShiftRightLogicalOp),
    *(shaping.ConstantOp, shaping.FullLikeOp, shaping.IotaOp, shaping.SizeOp),
    structure.FusionOp,
}
# Operations that tgraph-gradient refuses to differentiate.
NOT_DIFFERENTIABLE = {
    *(bodies.ReduceByOp, bodies.SortOp, ew.BitcastConvertOp, HostCallbackOp),
    *(op for op in matrices.MATRIX_OPS if op not in RULES),
    *(reducing.SelectAndScatterOp, structure.IfOp, structure.WhileOp),
}


def test_every_operation_has_a_rule_and_every_rule_is_tested() -> None:
    ops = {op for op in TGraph.operations if issubclass(op, TensorOp)}
    assert ops - WITHOUT_RULE - NOT_DIFFERENTIABLE == set(RULES)
    tested = {type(op) for p in PROGRAMS.values() for op in module_of(*p).walk()}
    assert set(RULES) <= tested


@settings(max_examples=examples(300))
@given(program=programs(max_ops=12))
def test_random_programs_agree_with_central_differences(program: Program) -> None:
    module = parse(str(program.module).replace("f32", "f64"))
    terminator = next(op for op in module.walk() if op.name == "func.return")
    count = len(terminator.operands)
    assume(count > 0)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(slot.shape) for slot in signature(module).inputs]
    results = run_reference(module, arrays)[:count]
    assume(all(np.abs(y).max(initial=0) < 100 for y in results))
    check_differences(module, arrays, count)


# Against JAX. The rules agree with JAX's also where a derivative jumps.


def _cases() -> dict[str, tuple[Callable[..., Any], list[Any]]]:
    try:
        import jax
        from jax import lax
        from jax import numpy as jnp
    except ImportError:
        return {}

    f4, i4 = np.float32, np.int32
    image, index = ((2, 9, 8, 4), f4), ((5, 2), i4)
    table = ((6, 5, 3), f4)
    nhwc = ("NHWC", "HWIO", "NHWC")

    def conv(**how: Any) -> Callable[..., Any]:
        def function(x: Any, w: Any) -> Any:
            return lax.conv_general_dilated(x, w, dimension_numbers=nhwc, **how)

        return function

    def pool(init: float, kind: Any, padding: Any) -> Callable[..., Any]:
        return lambda x: lax.reduce_window(
            x, f4(init), kind, (1, 3, 2, 1), (1, 2, 2, 1), padding
        )

    def attention(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.softmax(q @ k.transpose(0, 2, 1) / 3) @ v

    def layer_norm(x: Any, scale: Any) -> Any:
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + 1e-5) * scale

    batch = ((2, 4, 5), f4)
    return {
        "mlp": (
            lambda x, w, b: jnp.tanh(x @ w + b),
            [((3, 4), f4), ((4, 5), f4), ((5,), f4)],
        ),
        "ties": (
            lambda x: (lax.max(jnp.floor(x) * 0 + x, x), jnp.max(jnp.sign(x) * x * 0)),
            [((5,), f4)],
        ),
        "maximum-of-equals": (lambda x: lax.max(x, 0 * x), [((3, 4), f4)]),
        "clip": (lambda x: lax.clamp(f4(-1), x, f4(1)), [((3, 4), f4)]),
        "attention": (attention, [batch, batch, batch]),
        "layer-norm": (layer_norm, [((3, 8), f4), ((8,), f4)]),
        "gelu": (lambda x: jax.nn.gelu(x), [((3, 8), f4)]),
        "conv": (
            conv(window_strides=(1, 1), padding="SAME"),
            [image, ((3, 3, 4, 6), f4)],
        ),
        "conv-dilated": (
            conv(
                window_strides=(1, 2),
                padding=[(-1, 2), (3, -1)],
                lhs_dilation=(2, 3),
                rhs_dilation=(2, 1),
            ),
            [image, ((2, 3, 4, 6), f4)],
        ),
        "conv-transposed": (
            conv(
                window_strides=(1, 1),
                padding=[(2, 1), (1, 3)],
                lhs_dilation=(2, 3),
                rhs_dilation=(1, 2),
            ),
            [image, ((3, 2, 4, 6), f4)],
        ),
        "conv-transposed-stride": (
            conv(
                window_strides=(2, 1),
                padding=[(-1, 2), (3, -1)],
                lhs_dilation=(1, 3),
                rhs_dilation=(2, 1),
            ),
            [image, ((2, 3, 4, 6), f4)],
        ),
        "conv-stride": (
            conv(window_strides=(2, 3), padding=[(2, 1), (1, 2)]),
            [image, ((3, 2, 4, 6), f4)],
        ),
        "conv-groups": (
            conv(window_strides=(1, 2), padding="SAME", feature_group_count=2),
            [image, ((3, 3, 2, 6), f4)],
        ),
        "conv-depthwise": (
            conv(window_strides=(1, 1), padding="VALID", feature_group_count=4),
            [image, ((3, 3, 1, 8), f4)],
        ),
        "conv-batch-groups": (
            conv(window_strides=(1, 1), padding="SAME", batch_group_count=2),
            [((4, 5, 6, 3), f4), ((3, 3, 3, 4), f4)],
        ),
        "max-pool": (pool(-np.inf, lax.max, "SAME"), [image]),
        "average-pool": (pool(0, lax.add, "SAME"), [image]),
        "window-dilated": (
            lambda x: lax.reduce_window(
                x, f4(0), lax.add, (2, 3), (1, 2), [(1, 2), (0, 3)], (2, 3), (3, 1)
            ),
            [((5, 6), f4)],
        ),
        "rows": (lambda t, i: t[i[:, 0]], [table, index]),
        "points": (lambda t, i: t[i[:, 0] % 6, i[:, 1] % 5], [table, index]),
        "along-axis": (
            lambda t, i: jnp.take_along_axis(t, i, 1),
            [((5, 7), f4), ((5, 3), i4)],
        ),
        "scatter-add": (
            lambda t, i, u: t.at[i[:, 0], i[:, 1]].add(u),
            [table, index, ((5, 3), f4)],
        ),
        "scatter-set": (
            lambda t, u: t.at[np.array([4, 0, 9, 2])].set(u),
            [table, ((4, 5, 3), f4)],
        ),
    }


CASES = _cases()


@pytest.mark.thorough
@pytest.mark.skipif(not CASES, reason="needs jax")
@pytest.mark.parametrize("name", CASES)
def test_gradients_agree_with_jax(name: str) -> None:
    import jax

    function, specs = CASES[name]
    rng = np.random.default_rng(0)
    arrays: list[Array] = [
        rng.integers(-2, 7, shape).astype(dtype)
        if dtype is np.int32
        else rng.standard_normal(shape).astype(dtype)
        for shape, dtype in specs
    ]

    def first(*arrays: Any) -> Any:
        return jax.tree.leaves(function(*arrays))[0]

    y = jax.eval_shape(first, *arrays)
    head = rng.standard_normal(y.shape).astype(y.dtype)
    pull_back = jax.jit(lambda arrays, head: jax.vjp(first, *arrays)[1](head))
    pulled = zip(pull_back(arrays, head), arrays, strict=True)
    want = [np.asarray(g) for g, array in pulled if array.dtype.kind == "f"]
    module = run(tensorplan.from_jax(first, *arrays).module, TGraphGradient(of=(0,)))
    _, *got = run_reference(module, [*arrays, *([head] if y.ndim else [])])
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5 * np.abs(w).max())
