"""Compares blocked copies that permute dimensions with NumPy."""

from itertools import permutations

import numpy as np
import pytest
from modules import parse

import tensorplan
from tensorplan.runtime.backends import parts
from tensorplan.runtime.backends.native import transposing
from tensorplan.support.arrays import Array

pytest.importorskip("llvmlite")

RNG = np.random.default_rng(0)


def copied(out: Array, x: Array, threads: int = 1) -> bool:
    """Copies `x` to `out` in blocks if that pays off, and returns whether it does."""
    if copying := transposing.transpose(out, x):
        for function, arguments in copying.calls(threads):
            function(*arguments)
    return copying is not None


@pytest.mark.parametrize("dtype", ["i1", "u1", "f2", "i2", "f4", "f8", "c8"])
@pytest.mark.parametrize("size", [16, 17, 31, 64, 65, 150])
def test_matrices(dtype: str, size: int) -> None:
    """Rows and columns beyond the last whole block are copied, and nothing else is
    written."""
    x = RNG.integers(0, 100, (size, 37)).astype(dtype)
    around = np.full((39, size + 2), 7, dtype)
    assert copied(around[1:-1, 1:-1], x.T)
    np.testing.assert_array_equal(around[1:-1, 1:-1], x.T)
    around[1:-1, 1:-1] = 7
    assert (around == 7).all()


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_orders(order: tuple[int, ...]) -> None:
    x = RNG.standard_normal((19, 20, 18, 33)).astype("f4")[:, ::-1]
    out = np.empty(x.transpose(order).shape, "f4")
    assert copied(out, x.transpose(order)) == (order[-1] != 3)
    if order[-1] != 3:  # otherwise, the last dimension stays last
        np.testing.assert_array_equal(out, x.transpose(order))


def test_threads_share_a_matrix() -> None:
    x = RNG.standard_normal((700, 900)).astype("f4")
    out = np.empty((900, 700), "f4")
    assert copied(out, x.T, threads=3)
    np.testing.assert_array_equal(out, x.T)


def test_part_narrower_than_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "GRAIN", 1e-3)
    x = np.arange(800, dtype="f4").reshape(40, 20)
    memory = np.full(864, -1, "f4")
    out = memory[:800].reshape(20, 40).T
    assert copied(out, x, threads=2)
    np.testing.assert_array_equal(out, x)
    assert (memory[800:] == -1).all()


def test_copies_that_are_not_blocked() -> None:
    out = np.empty((32, 32), "f4")
    row = np.ones(32, "f4")
    assert not copied(out, np.broadcast_to(row[:, None], (32, 32)))  # broadcast
    assert not copied(out, np.ones((32, 32), "f4"))  # not transposed
    assert not copied(out, np.ones((32, 64), "f4")[:, ::2].T)  # gaps in both
    assert not copied(out[:, :8], np.ones((8, 32), "f4").T)  # less than a block
    assert not copied(out, np.ones((32, 32), "i4").T)  # different element types


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n", [33, 300, 513])
@pytest.mark.parametrize(("dims", "kept"), [("0", "1"), ("1", "0"), ("0, 1", "")])
def test_groups_read_in_order(dims: str, kept: str, n: int, threads: int) -> None:
    """A group reads a transposed operand several times, beside another array, and in
    place. If the result may overwrite the operand, no copy is made."""
    t, r = f"tensor<{n}x{n}xf32>", f"tensor<{f'{n}x' if kept else ''}f32>"
    kept = f": {kept}" if kept else ""
    module = parse(f"""
func.func @main(%v: !tgraph.variable<{t}>, %w: !tgraph.variable<{t}>) -> {t} {{
  %x = tgraph.read %v : {t}
  %y = tgraph.read %w : {t}
  %t = tgraph.transpose %x {{permutation = array<i64: 1, 0>}} : ({t}) -> {t}
  %a = tgraph.add %t, %y : {t}
  %m = tgraph.reduce %a {{kind = "maximum", dimensions = array<i64: {dims}>}}
      : ({t}) -> {r}
  %b = tgraph.broadcast_in_dim %m {{broadcast_dimensions = array<i64{kept}>}}
      : ({r}) -> {t}
  %s = tgraph.subtract %a, %b : {t}
  %d = tgraph.tanh %s : {t}
  tgraph.assign %w, %s : {t}
  %z = tgraph.add %x, %t : {t}
  tgraph.assign %v, %z : {t}
  func.return %d : {t}
}}""")
    x, y = RNG.standard_normal((2, n, n)).astype("f4")
    a = x.T + y
    s = a - a.max(tuple(map(int, dims.split(","))), keepdims=True)
    want = [x + x.T, s]
    run = tensorplan.compile(tensorplan.plan(module), threads=threads)
    got, *states = run(x, y)
    np.testing.assert_allclose(got, np.tanh(s), 1e-6)
    np.testing.assert_array_equal(states, want)
