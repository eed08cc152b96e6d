"""Tests that `canonicalize` preserves gathers and scatters at iota indices."""

import numpy as np
import pytest
from modules import parse, run
from xdsl.transforms.canonicalize import CanonicalizePass

import tensorplan
from tensorplan.dialects.tgraph.indexing import GatherOp, ScatterOp
from tensorplan.dialects.tgraph.reference.interpreter import run_reference

# How an entry of the index vectors is made, for indices of shape 6x5.
ENTRIES = {
    "row": "tgraph.iota {dimension = 0 : i64} : tensor<6x5x1xINT>",
    "column": "tgraph.iota {dimension = 1 : i64} : tensor<6x5x1xINT>",
    "repeated": "tgraph.broadcast_in_dim %n {broadcast_dimensions = array<i64: 0>} "
    ": (tensor<6xINT>) -> tensor<6x5x1xINT>",
    "given": "tgraph.reshape %i : (tensor<6x5xINT>) -> tensor<6x5x1xINT>",
}


def program(entries: list[str], shape: list[int], int: str, kind: str) -> str:
    """Returns a gather and a scatter of single elements at index vectors with these
    entries."""
    dims = ", ".join(map(str, range(len(entries))))
    ones = ", ".join("1" for _ in entries)
    x = f"tensor<{'x'.join(map(str, shape))}xf32>"
    made = "\n".join(f"%e{n} = {ENTRIES[e]}" for n, e in enumerate(entries))
    names = ", ".join(f"%e{n}" for n in range(len(entries)))
    types = ", ".join("tensor<6x5x1xINT>" for _ in entries)
    indices = f"tensor<6x5x{len(entries)}xINT>"
    return f"""
    func.func @main(%x: {x}, %i: tensor<6x5xINT>, %y: tensor<6x5xf32>)
        -> (tensor<6x5xf32>, {x}) {{
      %n = tgraph.iota {{dimension = 0 : i64}} : tensor<6xINT>
      {made}
      %j = tgraph.concatenate {names} {{dimension = 2 : i64}} : ({types}) -> {indices}
      %0 = tgraph.gather %x, %j {{offset_dims = array<i64>,
        collapsed_slice_dims = array<i64: {dims}>, index_vector_dim = 2 : i64,
        start_index_map = array<i64: {dims}>, slice_sizes = array<i64: {ones}>}}
        : ({x}, {indices}) -> tensor<6x5xf32>
      %1 = tgraph.scatter %x, %j, %y {{kind = "{kind}",
        update_window_dims = array<i64>, inserted_window_dims = array<i64: {dims}>,
        scatter_dims_to_operand_dims = array<i64: {dims}>, index_vector_dim = 2 : i64}}
        : ({x}, {indices}, tensor<6x5xf32>) -> {x}
      func.return %0, %1 : tensor<6x5xf32>, {x}
    }}""".replace("INT", int)


@pytest.mark.parametrize("kind", ["add", "replace"])
@pytest.mark.parametrize("int", ["i32", "i8", "ui8"])
@pytest.mark.parametrize(
    ("entries", "shape", "batched"),
    [
        (["row", "given"], [6, 4], 1),
        (["given", "row"], [4, 6], 1),
        (["row", "column", "given"], [6, 5, 3], 2),
        (["column", "given", "repeated"], [5, 3, 6], 2),
        (["row", "row"], [6, 6], 1),  # one index must be left
        (["row", "column"], [6, 5], 1),
        (["row", "repeated", "given"], [6, 6, 3], 1),  # both number the rows
        (["row", "given"], [7, 4], 0),  # more rows than index vectors
        (["row", "given"], [5, 4], 0),  # fewer: some are clamped, or ignored
        (["column", "given"], [6, 4], 0),
        (["given", "given"], [6, 5], 0),
    ],
)
def test_same_values(
    entries: list[str], shape: list[int], batched: int, int: str, kind: str
) -> None:
    module = parse(program(entries, shape, int, kind))
    generator = np.random.default_rng(0)
    x = generator.standard_normal(shape, np.float32)
    i = generator.integers(0 if int == "ui8" else -2, 8, (6, 5))
    i = i.astype({"i32": np.int32, "i8": np.int8, "ui8": np.uint8}[int])
    y = generator.standard_normal((6, 5), np.float32)
    want = run_reference(module, [x, i, y])
    after = run(module, CanonicalizePass())
    for op in after.walk():
        if isinstance(op, GatherOp):
            assert len(op.operand_batching_dims.get_values()) == batched
        if isinstance(op, ScatterOp):
            assert len(op.input_batching_dims.get_values()) == batched
    got = run_reference(after, [x, i, y])
    compiled = tensorplan.compile(tensorplan.plan(after))(x, i, y)
    for expected, *found in zip(want, got, compiled, strict=True):
        for value in found:
            np.testing.assert_array_equal(value, expected)


def test_row_numbers_that_wrap_around_are_not_batched() -> None:
    """i8 wraps around to -128, so it cannot number 200 rows."""
    text = program(["row", "given"], [200, 4], "i8", "add")
    module = parse(text.replace("6x5", "200x1").replace("tensor<6x", "tensor<200x"))
    after = run(module, CanonicalizePass())
    gathers = [op for op in after.walk() if isinstance(op, GatherOp)]
    assert [len(op.operand_batching_dims) for op in gathers] == [0]


def test_labels_by_row_numbers_take_no_more_bytes() -> None:
    """Cross entropy takes no more bytes with `x[arange(n), labels]` than with
    `take_along_axis`."""
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def by_rows(w, x, labels):
        scores = jax.nn.log_softmax(x @ w)
        return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], 1))

    def by_numbers(w, x, labels):
        scores = jax.nn.log_softmax(x @ w)
        return -jnp.mean(scores[jnp.arange(len(x)), labels])

    generator = np.random.default_rng(0)
    w = generator.standard_normal((64, 2048), np.float32)
    x = generator.standard_normal((1024, 64), np.float32)
    labels = generator.integers(-2048, 2048, 1024).astype(np.int32)
    bytes: list[int] = []
    for loss in (by_rows, by_numbers):
        for f in (loss, jax.grad(loss, (0, 1))):
            planned = tensorplan.plan(tensorplan.from_jax(f, w, x, labels))
            bytes.append(sum(p["bytes"] for p in tensorplan.report(planned)["pools"]))
            got = jax.tree.leaves(tensorplan.compile(planned)(w, x, labels))
            for value, want in zip(got, jax.tree.leaves(f(w, x, labels)), strict=True):
                np.testing.assert_allclose(value, want, rtol=1e-4, atol=1e-6)
    assert all(
        after <= before for before, after in zip(bytes[:2], bytes[2:], strict=True)
    )


def test_rows_in_order_are_a_slice() -> None:
    module = parse("""
func.func @main(%x: tensor<5x9x4xf32>) -> tensor<6x5x4xf32> {
  %i = tgraph.iota {dimension = 0 : i64} : tensor<6xi32>
  %0 = tgraph.gather %x, %i {offset_dims = array<i64: 1, 2>,
    collapsed_slice_dims = array<i64: 1>, start_index_map = array<i64: 1>,
    index_vector_dim = 1 : i64, slice_sizes = array<i64: 5, 1, 4>}
    : (tensor<5x9x4xf32>, tensor<6xi32>) -> tensor<6x5x4xf32>
  func.return %0 : tensor<6x5x4xf32>
}""")
    x = np.arange(5 * 9 * 4, dtype=np.float32).reshape(5, 9, 4)
    want = run_reference(module, [x])
    after = run(module, CanonicalizePass())
    assert not any(isinstance(op, GatherOp) for op in after.walk())
    np.testing.assert_array_equal(run_reference(after, [x]), want)
