"""Finds how few bytes may be live for a function's arenas to fit a budget.

A plan may take fewer bytes than are live, since the memory of results is reused, or
more, since kernels have workspaces; analysis/storage predicts them. A pass that lowers
the live bytes to a target therefore gets a target that follows from the plan, and then
a lower one if the first was too high.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from logging import LogRecord
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ....analysis.functions import is_tensor
from ....analysis.memory_graph import memory_graph
from ....analysis.storage import (
    Run,
    Storage,
    arenas,
    at_least,
    at_peak,
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
"""The number of targets that are tried."""

Peaks = Mapping[str | None, int]
"""Bytes on each device."""


def is_static_block(block: Block) -> bool:
    return all(is_static(tensor_type_of(value.type)) for value in _tensors(block))


def _tensors(block: Block) -> Iterator[SSAValue]:
    """The results of a block's operations, without scalars of other dialects."""
    results = (value for op in block.ops for value in op.results)
    return (value for value in results if is_tensor(value.type))


def live_peaks(block: Block, alignment: int) -> Peaks:
    """The peaks of a block's live bytes, if the memory of outputs is not reused."""
    memory = memory_graph(block, alignment)
    return memory.peaks(range(len(memory.ops)))


def live_bytes(block: Block, alignment: int) -> int:
    """The sum of the devices' peaks of live bytes in a block of a function."""
    return sum(peaks(storage_of(block), alignment).values())


class PlannedBytes:
    """Predicts the bytes of functions' arenas as plan-memory will make them.

    The workspace of equal operations, even in different functions, is measured once.
    """

    def __init__(self, placing: Placing):
        self._placing = placing
        self._keys = StructuralKeys()
        self._workspaces: dict[object, int] = {}

    def peaks(self, func: FuncOp, storage: Storage | None = None) -> Peaks:
        """The bytes of the arenas, or of the peaks of live bytes if devices or sizes
        are not known yet.

        storage: the storage of `func`, or of a function that it is a copy of, if known.
        """
        block = func.body.block
        if not _is_known(func):
            return live_peaks(block, self._placing.alignment)
        devices = {device_of(value.type): 0 for value in _tensors(block)}
        return {**devices, **arenas(storage or storage_of(block), **self._options)}

    def at_peak(self, func: FuncOp) -> Mapping[str | None, Sequence[Operation]]:
        """The operations, also in loops and branches, during which the most bytes are
        live in each arena."""
        storage = storage_of(func.body.block)
        if not _is_known(func):
            return at_peak(storage, self._placing.alignment)
        return at_peak(storage, **self._options)

    @cached_property
    def _options(self) -> Mapping[str, Any]:
        has_none = self._placing.workspaces == "none"
        return {
            **self._placing.shared(Packing),
            "workspace": None if has_none else self._workspace,
        }

    def of_all(self, func: FuncOp, storage: Storage | None = None) -> int:
        """The bytes of all devices' arenas together."""
        return sum(self.peaks(func, storage).values())

    def within(self, func: FuncOp, limit: int) -> int | None:
        """The bytes of all arenas together, or None if they exceed `limit`. Measures
        more kernels, which takes long, only if the live bytes with the workspaces known
        so far do not exceed it."""
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
            return 0  # its kernel belongs to another dialect
        key = key_of(run, self._keys)
        if key not in self._workspaces:
            self._workspaces[key] = workspace_of(alone(run), self._measure)
        return self._workspaces[key]

    def _least_workspace(self, run: Run) -> int:
        """The workspace of an operation if it has been measured, else 0."""
        if not self._workspaces or not isinstance(run.op, TensorOp):
            return 0
        return self._workspaces.get(key_of(run, self._keys), 0)


def _is_known(func: FuncOp) -> bool:
    """Whether all tensors have a device and a static size, also arguments and results,
    as a function may have no others."""
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
    """Rewrites a function so that its arenas fit a budget in bytes, if possible.

    `rewrite` lowers the live bytes of a function to the given peaks, if it can. The
    result that exceeds the budget least is kept, if it does so by less than the
    function before. Only `devices` count, or all if None. Returns the planned bytes
    before and after.
    """

    def missed(peaks: Peaks, limits: Peaks) -> dict[str | None, int]:
        """The bytes by which the peaks exceed the limits."""
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
