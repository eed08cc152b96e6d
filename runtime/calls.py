"""Defines calls, which a run executes one after the other. Knows no IR.

Loops, branches, and scalar operations between operations on memrefs are calls as well.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..support.arrays import Array

Call: TypeAlias = tuple[Callable[..., object], tuple[Any, ...]]
"""A function and its arguments: views, slices and constants that were made in advance.
"""


class HostCallback:
    """A Python function that a program calls. It gets copies of arrays, because the
    program overwrites their memory later, and its results are copied."""

    def __init__(
        self,
        function: Callable[..., Sequence[object]],
        failure: Callable[[Exception], Exception],
    ):
        """`failure` returns the exception to raise if the function raises one."""
        self._function = function
        self._failure = failure

    def __call__(self, inputs: Sequence[Array], outs: Sequence[Array]) -> None:
        copies = [array.copy() for array in inputs]
        for array in copies:
            array.flags.writeable = False
        try:
            results = [np.asarray(result) for result in self._function(*copies)]
            got = [(result.shape, result.dtype) for result in results]
            if got != [(out.shape, out.dtype) for out in outs]:
                raise TypeError(f"its results have other types than expected: {got}")
        except Exception as error:
            raise self._failure(error) from error
        for out, result in zip(outs, results, strict=True):
            out[...] = result


def assign(
    function: Callable[..., Any], sources: Sequence[Array], target: Array
) -> None:
    target[()] = function(*sources)


def move(sources: Sequence[Array], targets: Sequence[Array]) -> None:
    values = [source[()] for source in sources]
    for target, value in zip(targets, values, strict=True):
        target[()] = value


def load_number(source: Array, *indices: Array) -> object:
    return source[tuple(map(int, indices))]


def store_number(target: Array, value: Array, *indices: Array) -> None:
    target[tuple(map(int, indices))] = value


def move_elements(
    source: Array,
    source_index: Sequence[Array],
    target: Array,
    target_index: Sequence[Array],
    count: Array,
) -> None:
    """Copies `count` consecutive elements from `source`, starting at `source_index`, to
    `target`, starting at `target_index`. Both arrays are contiguous. Raises
    `IndexError` if the range exceeds one of them."""
    first, start = (
        sum(int(i) * step for i, step in zip(index, array.strides, strict=True))
        // array.itemsize
        for array, index in ((source, source_index), (target, target_index))
    )
    number = int(count)
    for name, at, size in (
        ("source", first, source.size),
        ("target", start, target.size),
    ):
        if at < 0 or number < 0 or at + number > size:
            raise IndexError(
                f"memref.dma_start moves {number} elements from number {at} of its "
                f"{name} on, expected some of 0 to {size}"
            )
    moved = source.reshape(-1)[first : first + number]
    target.reshape(-1)[start : start + number] = moved


def run_while(flag: Array, condition: Sequence[Call], body: Sequence[Call]) -> None:
    while True:
        for function, arguments in condition:
            function(*arguments)
        if not flag:
            return
        for function, arguments in body:
            function(*arguments)


def run_for(
    lower: Array, upper: Array, step: Array, index: Array, body: Sequence[Call]
) -> None:
    for number in range(int(lower), int(upper), int(step)):
        index[()] = number
        for function, arguments in body:
            function(*arguments)


def run_if(flag: Array, on_true: Sequence[Call], on_false: Sequence[Call] = ()) -> None:
    for function, arguments in on_true if flag else on_false:
        function(*arguments)


def run_switch(
    choice: Array, cases: Mapping[int, int], tapes: Sequence[Sequence[Call]]
) -> None:
    """Runs the tape that `choice` selects. `cases` maps a choice to the index of its
    tape; any other choice runs tape 0."""
    for function, arguments in tapes[cases.get(int(choice), 0)]:
        function(*arguments)
