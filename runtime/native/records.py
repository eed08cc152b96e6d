"""Calls of native functions on arrays, and runs of such calls as one call."""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorplan.runtime.dtypes import Array
from tensorplan.runtime.native.llvm import compiler

TAPE = """define void @{name}(ptr %words) {
entry:
  %count = load i64, ptr %words
  %first = getelementptr i64, ptr %words, i64 1
  br label %next
next:
  %left = phi i64 [%count, %entry], [%fewer, %next]
  %at = phi ptr [%first, %entry], [%following, %next]
  %function = load ptr, ptr %at
  %sizeat = getelementptr i64, ptr %at, i64 1
  %size = load i64, ptr %sizeat
  %arguments = getelementptr i64, ptr %at, i64 2
  call void %function(ptr %arguments)
  %following = getelementptr i64, ptr %arguments, i64 %size
  %fewer = sub i64 %left, 1
  %more = icmp ne i64 %fewer, 0
  br i1 %more, label %next, label %done
done:
  ret void
}"""
"""Calls functions one after the other. The words: how many there are, then for each
its address, the number of its words, and these."""


class Record:
    """A call of a native function on arrays, which it keeps alive."""

    __slots__ = ("_arrays", "_function", "_words", "words")

    def __init__(self, function: Any, arrays: Sequence[Array]):
        self._function = function
        self._arrays = arrays
        addresses = [a.__array_interface__["data"][0] for a in arrays]
        self.words = [function.address, len(addresses), *addresses]
        self._words = (ctypes.c_int64 * len(addresses))(*addresses)

    def __call__(self) -> None:
        self._function(self._words)


class Tape:
    """Records called one after the other in one call, outside of Python."""

    __slots__ = ("_function", "_records", "_words")

    def __init__(self, records: Sequence[Record]):
        self._function = compiler().function(TAPE)
        self._records = records
        words = [len(records), *(word for r in records for word in r.words)]
        self._words = np.array(words, np.uint64).ctypes.data_as(ctypes.c_void_p)

    def __call__(self) -> None:
        self._function(self._words)


Call = tuple[Callable[..., object], tuple[Any, ...]]


def joined(calls: Sequence[Call]) -> list[Call]:
    """The same calls, with runs of records made into tapes."""
    result: list[Call] = []
    run: list[Record] = []

    def end_run() -> None:
        if len(run) > 1:
            result.append((Tape(run.copy()), ()))
        elif run:
            result.append((run[0], ()))
        run.clear()

    for call in calls:
        if isinstance(call[0], Record):
            run.append(call[0])
        else:
            end_run()
            result.append(call)
    end_run()
    return result
