"""Tests arguments and results of the executor: which are used in place and which are
copied, donation, and runs without allocations."""

from typing import Any

import numpy as np
import pytest
from executables import Dlpack
from traced_memory import growth
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.dtypes import Array
from tensorplan.runtime.executor import Executable

# result 0 = tanh(v + x), and v = v + x, which is result 1.
STEP = """
!t = memref<4xf32, "cpu:0">
func.func @main(%v: !t {tgraph.variable, tgraph.result = 1 : i32}, %x: !t,
                %out: !t {tgraph.result = 0 : i32}) {
  %sum = memref.alloc() : !t
  tgraph.add %v, %x outs(%sum) : !t
  tgraph.tanh %sum outs(%out) : !t
  "memref.copy"(%sum, %v) : (!t, !t) -> ()
  memref.dealloc %sum : !t
  func.return
}
"""
# Two inputs, and two results, which BODY computes.
PAIR = """
!t = memref<4xf32, "cpu:0">
func.func @main(%x: !t, %y: !t, %r: !t {tgraph.result = 0 : i32},
                %s: !t {tgraph.result = 1 : i32}) {
  BODY
  func.return
}
"""


def parse(text: str) -> ModuleOp:
    module = Parser(tensorplan.context(), text).parse_module()
    module.verify()
    return module


def floats(*values: float) -> Array:
    return np.array(values, np.float32)


class Snapshot:
    """Converts to a new array each time."""

    def __init__(self, *values: float):
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return floats(*self.values)


def test_arguments_that_are_used_in_place() -> None:
    step = Executable(parse(STEP), results="view")
    x = floats(1, 1, 1, 1)
    for given in (x, Dlpack(x), x.reshape(2, 2).reshape(4), x[:]):
        v = floats(0, 0, 0, 0)
        _, new = step(v, given)
        assert new is v
        assert v.tolist() == [1, 1, 1, 1]
    assert step.copies == {}
    tensor = Dlpack(floats(0, 0, 0, 0))
    for times in (1, 2):
        step(tensor, x)
        assert tensor.array.tolist() == [times] * 4
    assert step.copies == {}


def test_copies_are_counted() -> None:
    step = Executable(parse(STEP))
    v = floats(0, 0, 0, 0)
    strided = np.ones(8, np.float32)[::2]
    unaligned = np.zeros(17, np.uint8)[1:].view(np.float32)
    snapshot = Snapshot(0, 0, 0, 0)
    for x in (strided, unaligned, [1, 1, 1, 1], snapshot, v):
        step(v, x)
    snapshot.values = (1, 1, 1, 1)
    fixed = floats(0, 0, 0, 0)
    fixed.flags.writeable = False
    _, new = step(fixed, snapshot)
    assert new.tolist() == [1, 1, 1, 1]
    assert fixed.tolist() == [0, 0, 0, 0]
    assert step.copies == {
        "argument 1: not C-contiguous and aligned": 2,
        "argument 1: list is not an array in memory": 1,
        "argument 1: Snapshot is not an array in memory": 2,
        "argument 1: in memory that is written": 1,
        "argument 0: variable that cannot be written": 1,
        "result 0: handed out": 6,
    }


def test_jax_arrays_are_used_in_place_and_never_written() -> None:
    jnp = pytest.importorskip("jax.numpy")
    step = Executable(parse(STEP))
    x = jnp.ones(4, jnp.float32)
    step(floats(0, 0, 0, 0), x)
    assert "result 0: handed out" in step.copies
    assert len(step.copies) == 1
    step(x, x)
    assert x.tolist() == [1, 1, 1, 1]
    assert step.copies["argument 0: variable that cannot be written"] == 1


def test_torch_tensors_are_used_in_place() -> None:
    torch = pytest.importorskip("torch")
    step = Executable(parse(STEP), results="view")
    v = torch.zeros(4)
    _, new = step(v, torch.ones(4))
    assert v.tolist() == new.tolist() == [1, 1, 1, 1]
    assert step.copies == {}
    with pytest.raises(TypeError, match="argument 0 is not an array"):
        step(torch.zeros(4, requires_grad=True), torch.ones(4))


@pytest.mark.parametrize("given", [300, -129, [1, 300, -129]])
def test_integers_out_of_range_are_refused(given: object) -> None:
    type = "tensor<3xi8>" if isinstance(given, list) else "tensor<i8>"
    text = f"func.func @main(%x: {type}) -> {type} {{\n  func.return %x : {type}\n}}"
    run = Executable(tensorplan.plan(tensorplan.read(text)))
    numbers = r"argument 0 has elements from -?\d+ to -?\d+, expected -128 to 127"
    with pytest.raises(ValueError, match=numbers):
        run(given)


def test_held_results_do_not_change() -> None:
    step = Executable(parse(STEP))
    held = [step([0] * 4, [n] * 4) for n in range(5)]
    for n, (out, new) in enumerate(held):
        np.testing.assert_allclose(out, np.tanh(floats(n, n, n, n)), rtol=1e-6)
        assert new.tolist() == [n] * 4


def test_results_as_views() -> None:
    step = Executable(parse(STEP), results="view")
    v = floats(0, 0, 0, 0)
    first, _ = step(v, floats(0, 0, 0, 0))
    second, _ = step(v, floats(1, 1, 1, 1))
    assert np.shares_memory(first, second)
    assert (first == second).all()
    assert step.copies == {}
    # The next call overwrites the views, so it first copies them if they are inputs.
    before = second.copy()
    _, new = step(v, second)
    assert new.tolist() == (1 + before).tolist()
    before = step(v, v)[0].copy()
    _, new = step(second, floats(0, 0, 0, 0))
    assert new.tolist() == before.tolist()


def test_unknown_value_of_results_is_refused() -> None:
    with pytest.raises(ValueError, match="results is 'move', expected 'copy' or"):
        Executable(parse(STEP), results="move")  # pyright: ignore


@pytest.mark.parametrize(
    ("body", "donate", "donations"),
    [
        # Both inputs have no reads after the results are written.
        ("tgraph.tanh %x outs(%r) : !t\n  tgraph.tanh %y outs(%s) : !t", (0,), {0: 0}),
        (
            "tgraph.tanh %x outs(%r) : !t\n  tgraph.tanh %y outs(%s) : !t",
            (0, 1),
            {0: 0, 1: 1},
        ),
        # x is read after r is written, but not after s is written.
        ("tgraph.tanh %y outs(%r) : !t\n  tgraph.tanh %x outs(%s) : !t", (0,), {0: 1}),
        ("tgraph.tanh %y outs(%r) : !t\n  tgraph.add %x, %r outs(%s) : !t", (), {}),
        # A reverse is not elementwise, so it cannot run in place.
        (
            "tgraph.reverse %x outs(%r) {dimensions = array<i64: 0>} : (!t) -> !t\n"
            "  tgraph.add %y, %r outs(%s) : !t",
            (0,),
            {0: 1},
        ),
        (
            "tgraph.add %x, %y outs(%s) : !t\n"
            "  tgraph.reverse %x outs(%r) {dimensions = array<i64: 0>} : (!t) -> !t",
            (0,),
            {},
        ),
        # The order of operations in different streams is unknown.
        (
            "tgraph.tanh %x outs(%r) {tgraph.stream = 1 : i32} : !t\n"
            "  tgraph.tanh %y outs(%s) : !t",
            (1,),
            {1: 1},
        ),
        (
            "tgraph.add %x, %y outs(%r) {tgraph.stream = 1 : i32} : !t\n"
            "  tgraph.tanh %x outs(%s) : !t",
            (0,),
            {},
        ),
    ],
)
def test_donations(
    body: str, donate: tuple[int, ...], donations: dict[int, int]
) -> None:
    module = parse(PAIR.replace("BODY", body))
    x, y = floats(1, 2, 3, 4), floats(5, 6, 7, 8)
    want = Executable(module)(x.copy(), y.copy())
    program = Executable(module, donate=donate)
    assert program.donations == donations
    for _ in range(2):
        inputs = [x.copy(), y.copy()]
        got = program(*inputs)
        for index, result in donations.items():
            assert np.shares_memory(inputs[index], got[result])
        for a, b in zip(got, want, strict=True):
            assert a.tolist() == b.tolist()
    assert program(x.tolist(), y.tolist())[0].tolist() == want[0].tolist()
    x.flags.writeable = y.flags.writeable = False
    assert program(x, y)[1].tolist() == want[1].tolist()
    assert x.tolist() == [1, 2, 3, 4]


def test_donated_array_that_is_also_another_input() -> None:
    module = parse(
        PAIR.replace(
            "BODY", "tgraph.tanh %x outs(%r) : !t\n  tgraph.add %y, %r outs(%s) : !t"
        )
    )
    program = Executable(module, donate=[0])
    x = floats(1, 2, 3, 4)
    old = x.copy()
    r, s = program(x, x)
    np.testing.assert_allclose(r, np.tanh(old), rtol=1e-6)
    np.testing.assert_allclose(s, old + np.tanh(old), rtol=1e-6)
    assert program.copies["argument 1: in memory that is written"] == 1


# r = reverse(tanh(x)). The memory of x holds tanh(x).
DONATED = PAIR.replace("%x: !t", "%x: !t {tgraph.donated}").replace(
    "BODY",
    """%b = memref.reinterpret_cast %x to offset: [0], sizes: [4], strides: [1]
       {tgraph.buffer} : !t to !t
  tgraph.tanh %x outs(%b) : !t
  tgraph.reverse %b outs(%r) {dimensions = array<i64: 0>} : (!t) -> !t
  tgraph.add %y, %y outs(%s) : !t""",
)


def test_donated_arguments_are_overwritten_only_if_allowed() -> None:
    x, y = floats(1, 2, 3, 4), floats(5, 6, 7, 8)
    program = Executable(parse(DONATED), native=False)
    assert [slot.is_donated for slot in program.inputs] == [True, False]
    want = np.tanh(x)
    fixed, both, donated = x.copy(), x.copy(), x.copy()
    fixed.flags.writeable = False
    for _ in range(2):
        np.testing.assert_array_equal(program(fixed, y)[0], want[::-1])
        np.testing.assert_array_equal(program(x.tolist(), y)[0], want[::-1])
    r, s = program(both, both)  # the second argument is copied first
    np.testing.assert_array_equal(r, want[::-1])
    np.testing.assert_array_equal(s, 2 * x)
    program(donated, y)
    np.testing.assert_array_equal(donated, want)
    assert program.copies == {
        "argument 0: donated that cannot be written": 2,
        "argument 0: list is not an array in memory": 2,
        "argument 1: in memory that is written": 1,
        "result 0: handed out": 6,
        "result 1: handed out": 6,
    }
    with pytest.raises(ValueError, match="input 0 is donated, expected an array for"):
        program.bind({0: x})


def test_arguments_that_are_not_donated_must_not_be_written() -> None:
    text = DONATED.replace("tgraph.donated", "tgraph.parameter, tgraph.donated")
    with pytest.raises(LocatedError, match="writes an argument, expected it to have"):
        Executable(parse(text))


@pytest.mark.parametrize(
    ("donate", "message"),
    [
        ([2], "donate contains 2, expected 0 to 1"),
        ([0], "donate contains 0, a variable"),
    ],
)
def test_wrong_donations(donate: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Executable(parse(STEP), donate=donate)


@pytest.mark.thorough
@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("results", ["copy", "view"])
def test_100_runs_allocate_nothing(native: bool, results: Any) -> None:
    """Runs allocate nothing if the results are variables, and arrays in `out` or
    views."""
    step = Executable(parse(STEP), results=results, native=native)
    v, x = floats(0, 0, 0, 0), floats(1, 1, 1, 1)
    out: list[Array | None] | None = [floats(0, 0, 0, 0), None]
    if results == "view":
        out = None

    pools = [pool.allocator.statistics() for pool in step.pools]
    # Bytes: not even one small object for each run.
    assert growth(lambda: step(v, x, out=out)) < 100
    assert [pool.allocator.statistics() for pool in step.pools] == pools
    assert v.tolist() == [600] * 4
