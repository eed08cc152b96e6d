"""Tests that large results are returned without a copy, and that later calls do not
change them."""

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from executables import Dlpack
from xdsl.parser import Parser

import tensorplan
from tensorplan.dialects.dtypes import Array
from tensorplan.runtime.executor import Executable
from tensorplan.runtime.owned_results import LEAST

SIZE = LEAST // 4
PROGRAM = f"""
!t = memref<{SIZE}xf32, "cpu:0">
func.func @main(%x: !t, %out: !t {{tgraph.result = 0 : i32}}) {{
  tgraph.add %x, %x outs(%out) : !t
  func.return
}}
"""


@pytest.fixture(params=[True, False], ids=["native", "numpy"])
def double(request: pytest.FixtureRequest) -> Executable:
    return compiled(native=request.param)


def compiled(**options: Any) -> Executable:
    module = Parser(tensorplan.context(), PROGRAM).parse_module()
    return Executable(module, **options)


def filled(value: float) -> Array:
    return np.full(SIZE, value, np.float32)


def call(run: Executable, value: float) -> Array:
    (result,) = run(filled(value))
    assert (result == 2 * value).all()
    return result


def start(array: Array) -> int:
    return array.ctypes.data


def test_results_are_not_copied_and_do_not_change(double: Executable) -> None:
    results = [call(double, value) for value in range(5)]
    assert [result[-1] for result in results] == [0, 2, 4, 6, 8]
    assert len({start(result) for result in results}) == 5
    assert double.copies == {}
    results[0][:] = 7  # the caller may write to its results
    assert call(double, 3)[0] == 6


PARTS: dict[str, Callable[[Any], Any]] = {
    "view": lambda result: result[3:5],
    "view of a view": lambda result: result[1:].reshape(-1, 1).view(np.int32)[::2],
    "buffer": memoryview,
    "DLPack": lambda result: np.from_dlpack(Dlpack(result)),  # pyright: ignore
    "iterator": lambda result: result.flat,
    "interface": lambda result: np.asarray(_Shown(result)),
}


class _Shown:
    """Exposes the memory of an array and keeps it alive."""

    def __init__(self, array: Array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


@pytest.mark.thorough
@pytest.mark.parametrize("part_of", PARTS.values(), ids=PARTS)
def test_part_of_a_result_keeps_its_memory(part_of: Callable[[Array], Any]) -> None:
    double = compiled()
    part = part_of(call(double, 1))
    before = np.array(part)
    gc.collect()
    for value in range(2, 6):
        call(double, value)
    assert (np.array(part) == before).all()


def test_memory_of_dropped_results_is_reused(double: Executable) -> None:
    first = start(call(double, 1))
    assert [start(call(double, value)) for value in range(4)] == [first] * 4
    held = call(double, 5)
    others = {start(call(double, value)) for value in range(6)}
    assert len(others) == 1
    assert start(held) not in others


def test_at_most_three_blocks_remain_after_results_are_dropped(
    double: Executable,
) -> None:
    many = [call(double, value) for value in range(8)]
    del many
    used: set[int] = set()
    previous = call(double, 0)
    for value in range(8):  # a result is held while the next is computed
        used.add(start(previous))
        previous = call(double, value)
    assert len(used) == 3


def test_results_as_arguments_of_the_next_call(double: Executable) -> None:
    x = filled(1)
    for step in range(1, 9):
        (x,) = double(x)
        assert (x == 2**step).all()
    assert double.copies == {}


def test_calls_with_and_without_out(double: Executable) -> None:
    kept = call(double, 1)
    own = filled(0)
    (given,) = double(filled(2), out=[own])
    assert given is own
    again = call(double, 3)
    (given,) = double(filled(4), out=[kept])  # may be overwritten
    assert given is kept
    assert (kept == 8).all()
    assert (own == 4).all()
    assert (again == 6).all()
    last = call(double, 5)
    assert (kept == 8).all()
    assert (again == 6).all()
    assert (last == 10).all()


def test_failing_call_does_not_change_results(double: Executable) -> None:
    kept = call(double, 1)
    with pytest.raises(ValueError, match="argument 0 has shape"):
        double(np.zeros(3, np.float32))
    assert (kept == 2).all()
    call(double, 2)
    assert (kept == 2).all()


def test_sanitized_programs_copy_results() -> None:
    run = compiled(sanitize=True)
    kept = call(run, 1)
    call(run, 2)
    assert (kept == 2).all()


def test_small_results_are_copied() -> None:
    text = PROGRAM.replace(f"{SIZE}", f"{SIZE - 1}")
    run = Executable(Parser(tensorplan.context(), text).parse_module())
    run(np.zeros(SIZE - 1, np.float32))
    assert run.copies == {"result 0: handed out": 1}
