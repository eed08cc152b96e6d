"""Finds how few bytes may be live for a function's arenas to fit a budget.

A plan may take less than what is live, since the memory of results is reused, or more,
since kernels have workspaces; analysis/storage says what it will be. So passes that
lower what is live to a target are given one that follows from the plan, and another one
where that was too high.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from logging import LogRecord
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue

from ....analysis.functions import is_tensor
from ....analysis.memory_graph import memory_graph
from ....analysis.storage import (
    Run,
    Storage,
    arenas,
    at_least,
    during,
    peaks,
    storage_of,
)
from ....dialects.diagnostics import held_back, say
from ....dialects.structural_keys import StructuralKeys
from ....dialects.tgraph.base import TensorOp, device_of, is_static, tensor_type_of
from ....dialects.workspaces import Measure, measure_of, workspace_of
from ....planning import deadline
from ....support.threads import checked
from ...options import Packing, Placing
from ..bufferization.blocks import alone, key_of

ROUNDS = 3
"""Targets that are tried."""

Peaks = Mapping[str | None, int]
"""Bytes, of each device."""


def is_static_block(block: Block) -> bool:
    return all(is_static(tensor_type_of(value.type)) for value in _tensors(block))


def _tensors(block: Block) -> Iterator[SSAValue]:
    """The results of a block's operations, without scalars of other dialects."""
    results = (value for op in block.ops for value in op.results)
    return (value for value in results if is_tensor(value.type))


def live_peaks(block: Block, alignment: int) -> Peaks:
    """What is live at most in a block, no output reused."""
    memory = memory_graph(block, alignment)
    return memory.peaks(range(len(memory.ops)))


def live_bytes(block: Block, alignment: int) -> int:
    """The same of a block of a function, on all devices together."""
    return sum(peaks(storage_of(block), alignment).values())


class PlannedBytes:
    """The bytes of functions' arenas, as plan-memory will make them.

    Operations that are alike, in whatever function, are asked once for a workspace.
    """

    def __init__(self, placing: Placing):
        self._placing = placing
        self._keys = StructuralKeys()
        self._workspaces: dict[object, int] = {}

    def peaks(self, func: FuncOp, storage: Storage | None = None) -> Peaks:
        """The arenas; what is live where devices or sizes are not known yet.

        storage: of the function, or of one that it is a copy of, if it is there.
        """
        block = func.body.block
        if not _is_known(func):
            return live_peaks(block, self._placing.alignment)
        devices = {device_of(value.type): 0 for value in _tensors(block)}
        return {**devices, **arenas(storage or storage_of(block), **self._options)}

    def during(self, func: FuncOp) -> Mapping[str | None, Sequence[int]]:
        """The bytes that live in each arena while each operation runs."""
        storage = storage_of(func.body.block)
        if not _is_known(func):
            return during(storage, self._placing.alignment)
        return during(storage, **self._options)

    @cached_property
    def _options(self) -> Mapping[str, Any]:
        has_none = self._placing.workspaces == "none"
        return {
            **self._placing.shared(Packing),
            "workspace": None if has_none else self._workspace,
        }

    def of_all(self, func: FuncOp, storage: Storage | None = None) -> int:
        """Of all devices together."""
        return sum(self.peaks(func, storage).values())

    def within(self, func: FuncOp, limit: int) -> int | None:
        """The same, or None if it is more than the limit. More kernels are asked, which
        takes long, only where what is live with those known is not more already."""
        if _is_known(func) and limit < at_least(
            storage_of(func.body.block),
            **self._placing.shared(Packing),
            workspace=self._least_workspace,
        ):
            return None
        bytes = self.of_all(func)
        return bytes if bytes <= limit else None

    @cached_property
    def _measure(self) -> Measure:
        return measure_of(self._placing.workspaces, checked(self._placing.threads))

    def _workspace(self, run: Run) -> int:
        if not isinstance(run.op, TensorOp):
            return 0  # its kernel is not ours
        key = key_of(run, self._keys)
        if key not in self._workspaces:
            self._workspaces[key] = workspace_of(alone(run), self._measure)
        return self._workspaces[key]

    def _least_workspace(self, run: Run) -> int:
        """The same, if it is known; 0 if it is not."""
        if not self._workspaces or not isinstance(run.op, TensorOp):
            return 0
        return self._workspaces.get(key_of(run, self._keys), 0)


def _is_known(func: FuncOp) -> bool:
    """Whether all has a device and a static size, also arguments and results: they may
    be all that there is."""
    types = (*func.function_type.inputs, *func.function_type.outputs)
    tensors = [value.type for value in _tensors(func.body.block)]
    return all(
        device_of(type) is not None for type in (*types, *tensors) if is_tensor(type)
    ) and is_static_block(func.body.block)


def fit(
    func: FuncOp,
    budget: int,
    devices: Collection[str | None] | None,
    rewrite: Callable[[FuncOp, Peaks], None],
    placing: Placing,
) -> tuple[Peaks, Peaks]:
    """Rewrites a function so that its arenas on some devices fit a budget, if possible.

    `rewrite` lowers what is live in a function to at most so many bytes, if it can; on
    all devices unless some are named. What comes nearest to the budget is kept, if that
    is nearer than the function as it is. Returns what is planned before and after.
    """

    def missed(peaks: Peaks, limits: Peaks) -> dict[str | None, int]:
        """By how many bytes."""
        wanted = peaks if devices is None else devices
        return {d: max(peaks.get(d, 0) - limits[d], 0) for d in wanted if d in limits}

    planned = PlannedBytes(placing)
    live = live_peaks(func.body.block, placing.alignment)
    before = after = planned.peaks(func)
    limits = dict.fromkeys(before, budget)
    least = sum(missed(before, limits).values())
    targets = {d: budget + max(live[d] - before[d], 0) for d in live}
    best: FuncOp | None = None
    remarks: Sequence[LogRecord] = ()
    for _ in range(ROUNDS):
        if not least or deadline.passed():
            break
        copy = func.clone()
        with held_back() as said:
            rewrite(copy, targets)
        peaks = planned.peaks(copy)
        misses = missed(peaks, limits)
        if sum(misses.values()) < least:
            least, best, after, remarks = sum(misses.values()), copy, peaks, said
        live = live_peaks(copy.body.block, placing.alignment)
        if any(missed(live, targets).values()):
            break  # a lower target is not reached either
        targets = {d: max(targets[d] - misses.get(d, 0), 0) for d in targets}
    if best is not None:
        func.detach_region(0)
        func.add_region(best.detach_region(0))
        say(remarks)
    return before, after
