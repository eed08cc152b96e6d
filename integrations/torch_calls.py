"""Runs programs in the memory of PyTorch's tensors.

A call provides all memory of the program: its inputs, new tensors for its results, and
new tensors for its arenas. Between calls, the program holds only large blocks, which
it reuses (`RETURNED`). Other memory returns to PyTorch's allocator. Programs are
divided into stages. The tensors for the results and the arenas that a stage uses first
are allocated before the stage, and saved tensors and arenas without later uses are
freed after it, as in eager PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property, partial
from importlib import import_module
from math import prod
from operator import mod
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..runtime.allocators.host import aligned_bytes
from ..runtime.owned_results import HandedOut
from ..runtime.pool import ALIGNMENT
from ..support.slots import Slot

if TYPE_CHECKING:
    from ..runtime.executor import Executable
    from ..runtime.program.stages import Stage

Tensors: TypeAlias = Sequence[Any]
"""Tensors of PyTorch."""
Make: TypeAlias = Callable[[], Any]
"""Allocates a tensor."""


class TensorProgram:
    """A program that is called with tensors. Its parameters are already bound."""

    def __init__(
        self, run: Executable, results: Sequence[Make], released: Collection[int] = ()
    ):
        """`results` has a function for each result that is not a variable, which
        allocates the result's tensor. `released` are the numbers of the inputs whose
        tensors callers do not keep."""
        run.divide(released)
        inputs = [n for n in range(len(run.inputs)) if n not in run.parameters]
        made = [n for n, result in enumerate(run.results) if result.input is None]
        self._stages = [
            (
                [inputs.index(n) for n in stage.inputs],
                [made.index(n) for n in stage.results],
                stage.arenas,
                [inputs.index(n) for n in stage.finished],
                stage.finished_arenas,
            )
            for stage in run.stages
        ]
        self._changed = [k for k, n in enumerate(inputs) if run.inputs[n].is_variable]
        self._run, self._results = run, results
        self._arenas = _arenas(run.arenas, run.stages)
        self._kind: Any = import_module("torch").Tensor

    def __call__(self, given: list[Any]) -> list[Any]:
        """Runs the program on the tensors `given`, and returns the results. Replaces a
        tensor in `given` by None after its last use."""
        kind = self._kind
        starts: list[int] = [tensor.data_ptr() for tensor in given]
        changed: list[tuple[Any, Any]] = []
        if not (
            all(map(kind.is_contiguous, given))
            and all(starts)
            and not any(map(kind.is_neg, given))
            and not any(map(kind.is_conj, given))
            and not any(map(mod, starts, [x.element_size() for x in given]))
        ):
            own = [given[n] for n in self._changed]
            given[:] = map(_in_rows, given)
            starts = [tensor.data_ptr() for tensor in given]
            pairs = zip(own, [given[n] for n in self._changed], strict=True)
            changed = [pair for pair in pairs if pair[0] is not pair[1]]
        results: list[Any] = [None] * len(self._results)
        self._run.run_at(self._provided(given, starts, results))
        for own, copy in changed:
            own.data.copy_(copy)
        return results

    def _provided(
        self, given: list[Any], starts: Sequence[int], results: list[Any]
    ) -> Iterator[Sequence[int]]:
        """Yields the addresses for each stage. Allocates the stage's results and arenas
        before, and drops its finished inputs from `given`, and its finished arenas,
        after the stage."""
        arenas: list[Any] = [None] * len(self._arenas)
        for taken, made, begun, finished, freed in self._stages:
            for n in made:
                results[n] = self._results[n]()
            for n in begun:
                arenas[n] = self._arenas[n]()
            addresses = [starts[n] for n in taken]
            addresses += [results[n].data_ptr() for n in made]
            addresses += [arenas[n].data_ptr() for n in begun]
            yield addresses
            for n in finished:
                given[n] = None
            for n in freed:
                arenas[n] = None


def _in_rows(tensor: Any) -> Any:
    """`tensor`, or a copy of it if it is not contiguous and aligned, or if PyTorch
    applies its negation or conjugation lazily."""
    start = tensor.data_ptr()
    is_odd = tensor.is_neg() or tensor.is_conj() or start % tensor.element_size()
    if tensor.is_contiguous() and start and not is_odd:
        return tensor
    return import_module("torch").empty(tensor.shape, dtype=tensor.dtype).copy_(tensor)


RETURNED = 1 << 25
"""The size in bytes from which on the C library returns freed blocks to the operating
system. Each call would then cause page faults in all pages of a new block."""


def empty(size: Sequence[int], strides: Sequence[int], dtype: Any) -> Make:
    """A function that allocates tensors of these sizes, strides and type."""
    make = import_module("torch._C._dynamo.guards")._empty_strided_cpu
    sizes = zip(size, strides, strict=True)
    elements = prod(n if stride else 1 for n, stride in sizes)
    if elements * dtype.itemsize < RETURNED:
        return partial(make, size, strides, dtype)
    return _Blocks(elements * dtype.itemsize, size, strides, dtype)


def _arenas(sizes: Sequence[int], stages: Sequence[Stage]) -> Sequence[Make]:
    """A function for each arena that allocates it. Large arenas that no stage uses at
    the same time have the same block."""
    byte: Any = import_module("torch").uint8
    blocks: dict[int, list[int]] = {}
    free: list[list[int]] = []
    for stage in stages:
        for n in sorted(stage.arenas, key=lambda n: -sizes[n]):
            is_shared = free and sizes[n] >= RETURNED
            blocks[n] = free.pop() if is_shared else []
            blocks[n].append(n)
        free += [blocks[n] for n in stage.finished_arenas if sizes[n] >= RETURNED]
    made: dict[int, Make] = {}
    for block in blocks.values():
        if block[0] not in made:
            make = empty((max(sizes[n] for n in block),), (1,), byte)
            made |= dict.fromkeys(block, make)
    return [made[n] for n in range(len(sizes))]


class _Blocks:
    """Allocates tensors in blocks that are kept between calls. A block is reused when
    callers have no tensor in it any more."""

    def __init__(
        self, count: int, size: Sequence[int], strides: Sequence[int], dtype: Any
    ):
        self._slot = Slot((count,), np.dtype(np.uint8))
        self._layout = size, strides
        self._dtype = dtype
        self._alone = RLock()

    @cached_property
    def _handed_out(self) -> HandedOut:
        return HandedOut(self._slot, aligned_bytes(self._slot.shape[0], ALIGNMENT))

    def __call__(self) -> Any:
        with self._alone:
            self._handed_out.switch_block()
            array = self._handed_out.hand_out()
        torch: Any = import_module("torch")
        tensor = torch.from_numpy(array).view(self._dtype)
        return tensor.as_strided(*self._layout)
