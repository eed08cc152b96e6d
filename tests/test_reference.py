"""Tests the reference interpreter: its conventions, and its values against jax.lax."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from one_op import operation, reference, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.dtypes import Array
from tensorplan.dialects.tgraph import elementwise
from tensorplan.dialects.tgraph.reference.interpreter import run_reference


def parse(text: str) -> ModuleOp:
    module = Parser(tensorplan.context(), text).parse_module()
    module.verify()
    return module


STATE = """
!t = tensor<2xf32>
func.func @main(%a: !tgraph.variable<!t>, %x: !t,
                %b: !tgraph.variable<!t> {tgraph.result = 1 : i32})
    -> (!t, tensor<2xi1>) {
  %old = tgraph.read %a : !t
  %sum = tgraph.add %old, %x outs(%b) : !t
  %new = tgraph.read %b : !t
  tgraph.assign %a, %new : !t
  %still = tgraph.multiply %old, %old : !t
  %is = tgraph.compare %old, %x {direction = "GT"} : (!t, !t) -> tensor<2xi1>
  func.return %still, %is : !t, tensor<2xi1>
}
"""


def test_variables_and_the_order_of_results() -> None:
    a, x, b = (np.array(v, np.float32) for v in ([1, 2], [3, 1], [7, 7]))
    still, new_b, is_greater, new_a = run_reference(parse(STATE), [a, x, b])
    assert still.tolist() == [1, 4]
    assert new_b.tolist() == new_a.tolist() == [4, 3]
    assert is_greater.tolist() == [False, True]
    assert is_greater.dtype == bool
    assert a.tolist() == [1, 2]
    assert b.tolist() == [7, 7]


def test_fusion_computes_its_body() -> None:
    module = parse("""
!t = tensor<2x3xf32>
!row = tensor<3xf32>
func.func @main(%x: !t, %y: !row) -> !t {
  %r = tgraph.fusion(%a = %x, %b = %y) : (!t, !row) -> !t {
    %0 = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 1>}
      : (!row) -> !t
    %1 = tgraph.subtract %a, %0 : !t
    tgraph.yield %1 : !t
  }
  func.return %r : !t
}
""")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (result,) = run_reference(module, [x, x[0]])
    assert result.tolist() == (x - x[0]).tolist()


def test_wrong_inputs_are_refused() -> None:
    module = parse(STATE)
    x = np.zeros(2, np.float32)
    with pytest.raises(ValueError, match="number of inputs is 1, expected 3"):
        run_reference(module, [x])
    with pytest.raises(ValueError, match=r"input 1 has shape \(3,\), expected \(2,\)"):
        run_reference(module, [x, np.zeros(3, np.float32), x])
    with pytest.raises(TypeError, match="input 2 has elements of type float64"):
        run_reference(module, [x, x, np.zeros(2)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @other() { func.return }", "no function @main .* has @other"),
        (
            "func.func @main(%x: memref<2xf32>) { tgraph.negate %x outs(%x) : "
            "memref<2xf32> func.return }",
            "tgraph.negate is on memrefs, expected tensors",
        ),
        (
            'func.func @main() { "test.op"() : () -> () func.return }',
            "test.op is not supported by the reference interpreter",
        ),
        (
            "func.func @main(%v: !tgraph.variable<tensor<f32>> "
            "{tgraph.result = 3 : i32}) { func.return }",
            "tgraph.result is 3, expected 0: ",
        ),
        (
            "func.func @main(%x: tensor<?xf32>) { func.return }",
            "has unknown sizes",
        ),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(LocatedError, match=message):
        run_reference(parse(text), [])


def test_integers() -> None:
    x = np.array([7, -7, 7, -7, -(2**31), 5, 0, 2**31 - 1], np.int32)
    y = np.array([2, 2, -2, -2, -1, 0, 0, -1], np.int32)
    for cls, want in (
        (elementwise.DivideOp, [3, -3, -3, 3, -(2**31), -1, -1, -(2**31) + 1]),
        (elementwise.RemainderOp, [1, -1, 1, -1, 0, 5, 0, 0]),
        (elementwise.AddOp, [9, -5, 5, -9, 2**31 - 1, 5, 0, 2**31 - 2]),
    ):
        op = operation(cls, [tensor(x.shape, "int32")] * 2, {})
        assert reference(op, [x, y]).tolist() == want
    convert = operation(
        elementwise.ConvertOp, [tensor((3,), "float32")], {}, tensor((3,), "int8")
    )
    assert reference(convert, [np.array([-1.7, 1.7, 0], np.float32)]).tolist() == [
        -1,
        1,
        0,
    ]


# Values against jax.lax. Each case is a function and the shapes and types of its random
# inputs.


def _cases() -> dict[str, tuple[Callable[..., Any], list[Any]]]:
    try:
        import jax
        from jax import lax
        from jax import numpy as jnp
    except ImportError:
        return {}

    f4, i4 = np.float32, np.int32
    bf16 = jnp.bfloat16

    def gradients(function: Callable[..., Any], *to: int) -> Callable[..., Any]:
        """The function and its gradients, for a loss with a different weight for each
        result."""

        def both(*arrays: Any) -> Any:
            def loss(*arrays: Any) -> Any:
                result = function(*arrays)
                weights = jnp.arange(result.size, dtype=f4).reshape(result.shape)
                return jnp.sum(jnp.sin(weights) * result)

            return function(*arrays), jax.grad(loss, to)(*arrays)

        return both

    def conv(labels: tuple[str, str, str], **how: Any) -> Callable[..., Any]:
        return gradients(
            lambda x, w: lax.conv_general_dilated(
                x, w, dimension_numbers=labels, **how
            ),
            0,
            1,
        )

    def pool(init: float, kind: Any, padding: Any) -> Callable[..., Any]:
        return gradients(
            lambda x: lax.reduce_window(
                x, f4(init), kind, (1, 3, 2, 1), (1, 2, 2, 1), padding
            ),
            0,
        )

    def dot(batch: Any, contract: Any) -> Callable[..., Any]:
        return gradients(lambda x, y: lax.dot_general(x, y, (contract, batch)), 0, 1)

    nhwc, nchw = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")
    image, square = ((2, 9, 8, 4), f4), [(2, 1), (1, 2)]
    index = ((5, 2), i4)
    table = ((6, 5, 3), f4)
    return {
        "dot": (dot(((), ()), ((1,), (0,))), [((3, 4), f4), ((4, 5), f4)]),
        "dot-batch": (
            dot(((2, 0), (0, 1)), ((1,), (3,))),
            [((2, 3, 4), f4), ((4, 2, 5, 3), f4)],
        ),
        "dot-bf16": (
            lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ()))),
            [((3, 64), bf16), ((64, 5), bf16)],
        ),
        "conv": (
            conv(nhwc, window_strides=(1, 1), padding="SAME"),
            [image, ((3, 3, 4, 6), f4)],
        ),
        "conv-stride": (
            conv(nhwc, window_strides=(2, 3), padding=square),
            [image, ((3, 2, 4, 6), f4)],
        ),
        "conv-nchw": (
            conv(nchw, window_strides=(2, 2), padding=[(0, 1), (2, 0)]),
            [((2, 4, 9, 8), f4), ((6, 4, 3, 3), f4)],
        ),
        "conv-dilated": (
            conv(
                nhwc,
                window_strides=(1, 2),
                padding=[(-1, 2), (3, -1)],
                lhs_dilation=(2, 3),
                rhs_dilation=(2, 1),
            ),
            [image, ((2, 3, 4, 6), f4)],
        ),
        "conv-groups": (
            conv(nhwc, window_strides=(1, 2), padding="SAME", feature_group_count=2),
            [image, ((3, 3, 2, 6), f4)],
        ),
        "conv-depthwise": (
            conv(nhwc, window_strides=(1, 1), padding="VALID", feature_group_count=4),
            [image, ((3, 3, 1, 8), f4)],
        ),
        "conv-batch-groups": (
            conv(nhwc, window_strides=(1, 1), padding="SAME", batch_group_count=2),
            [((4, 5, 6, 3), f4), ((3, 3, 3, 4), f4)],
        ),
        "conv-1d": (
            conv(("NWC", "WIO", "NWC"), window_strides=(2,), padding=[(1, 1)]),
            [((2, 9, 3), f4), ((3, 3, 4), f4)],
        ),
        "max-pool": (pool(-np.inf, lax.max, "SAME"), [image]),
        "min-pool": (pool(np.inf, lax.min, "VALID"), [image]),
        "max-pool-padded": (
            pool(-np.inf, lax.max, [(0, 0), (1, 1), (1, 0), (0, 0)]),
            [image],
        ),
        "average-pool": (pool(0, lax.add, "SAME"), [image]),
        "window-dilated": (
            lambda x: lax.reduce_window(
                x, f4(0), lax.add, (2, 3), (1, 2), [(1, 2), (0, 3)], (2, 3), (3, 1)
            ),
            [((5, 6), f4)],
        ),
        "pad": (
            gradients(lambda x: lax.pad(x, f4(2), [(1, 2, 1), (-1, 3, 2)]), 0),
            [((4, 5), f4)],
        ),
        "pad-cut": (
            lambda x: lax.pad(x, f4(2), [(-3, -2, 1), (2, -3, 2)]),
            [((4, 5), f4)],
        ),
        "rows": (gradients(lambda t, i: t[i[:, 0]], 0), [table, index]),
        "points": (gradients(lambda t, i: t[i[:, 0], i[:, 1]], 0), [table, index]),
        "points-last": (lambda t, i: t[:, i[:, 0], i[:, 1]], [table, index]),
        "along-axis": (
            gradients(lambda t, i: jnp.take_along_axis(t, i, 1), 0),
            [((5, 7), f4), ((5, 3), i4)],
        ),
        "windows": (
            gradients(
                lambda t, i: lax.gather(
                    t,
                    i,
                    lax.GatherDimensionNumbers(
                        offset_dims=(1, 2, 3),
                        collapsed_slice_dims=(),
                        start_index_map=(1, 0),
                    ),
                    (2, 3, 2),
                    mode="clip",
                ),
                0,
            ),
            [table, index],
        ),
        "scatter-windows": (
            lambda t, i, u: lax.scatter_add(
                t,
                i,
                u,
                lax.ScatterDimensionNumbers(
                    update_window_dims=(0, 1),
                    inserted_window_dims=(2,),
                    scatter_dims_to_operand_dims=(0, 1),
                ),
            ),
            [table, index, ((2, 3, 5), f4)],
        ),
        "scatter-add": (
            gradients(lambda t, i, u: t.at[i[:, 0], i[:, 1]].add(u), 0, 2),
            [table, index, ((5, 3), f4)],
        ),
        "scatter-set": (
            lambda t, u: t.at[np.array([4, 0, 9, 2])].set(u),
            [table, ((4, 5, 3), f4)],
        ),
        "scatter-max": (
            lambda t, i, u: t.at[i[:, 0]].max(u),
            [table, index, ((5, 5, 3), f4)],
        ),
        "scatter-multiply": (
            lambda t, i, u: t.at[i[:, 1], :, 1].mul(u),
            [table, index, ((5, 5), f4)],
        ),
        "integers": (
            lambda x, y: (lax.div(x, y), lax.rem(x, y), jnp.sign(x), x // 3, x**3),
            [((50,), i4), ((50,), i4)],
        ),
        "softmax-bf16": (lambda x: jax.nn.softmax(x, -1), [((4, 9), bf16)]),
        "reductions": (
            lambda x: (x.sum((0, 2)), x.max(1), x.min(), (x > 0).all(2), x.prod(0)),
            [table],
        ),
        "convert": (
            lambda x: (x.astype(i4), x > 0, (x > 0).astype(f4), x.astype(bf16)),
            [table],
        ),
    }


CASES = _cases()


@pytest.mark.skipif(not CASES, reason="needs jax")
@pytest.mark.parametrize("name", CASES)
def test_values_equal_jax(name: str) -> None:
    import jax

    function, specs = CASES[name]
    rng = np.random.default_rng(0)
    arrays: list[Array] = [
        rng.integers(-2, 7, shape).astype(dtype)
        if dtype is np.int32
        else np.asarray(3 * rng.standard_normal(shape)).astype(dtype)
        for shape, dtype in specs
    ]
    want = [np.asarray(w) for w in jax.tree.leaves(jax.jit(function)(*arrays))]
    module = tensorplan.from_jax(function, *arrays).module
    got = run_reference(module, arrays)
    planned = tensorplan.compile(module)(*(a.copy() for a in arrays))
    assert len(got) == len(want)
    for w, *results in zip(want, got, planned, strict=True):
        for result in results:
            assert result.dtype == w.dtype
            if w.dtype.kind in "biu":
                np.testing.assert_array_equal(result, w)
                continue
            tolerance = 1e-5 if w.dtype.itemsize == 4 else 2e-2
            w64, r64 = w.astype(np.float64), result.astype(np.float64)
            scale = max(1.0, float(np.abs(w64).max(initial=0)))
            np.testing.assert_allclose(r64, w64, rtol=tolerance, atol=tolerance * scale)
