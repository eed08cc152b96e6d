"""When buffers are live, through loops and branches; and the most bytes that are.

Each access of memory is a step, and each end of a region. What a loop uses from outside
is live in all of it, unless it is written anew first; a buffer that one region of a
branch uses alone is not live in the other (analysis/liveness.py).
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

from ...dialects.tgraph.base import device_of, element_alignment, typical_bytes
from ...planning import problem
from ..control_flow import Node
from ..liveness import Uses, buffer_of, live_steps
from .buffers import (
    Allocate,
    At,
    Branch,
    Copy,
    Home,
    Loop,
    Run,
    Storage,
    TensorBuffer,
    whole,
)


def peaks(storage: Storage, alignment: int) -> Mapping[str | None, int]:
    """The most bytes of own buffers that live at once, on each device, if every offset
    is a multiple of `alignment` bytes: what no plan can do without."""
    _, pools = _lifetimes(storage, alignment)
    return {d: problem.Problem(buffers).lower_bound for d, buffers in pools.items()}


def during(storage: Storage, alignment: int) -> Mapping[str | None, Sequence[int]]:
    """The most bytes that live while each operation of the block runs, on each device,
    if every buffer takes a multiple of `alignment` bytes."""
    starts, pools = _lifetimes(storage, alignment)
    found: dict[str | None, Sequence[int]] = {}
    for device, buffers in pools.items():
        changes = [0] * (starts[-1] + 1)
        for buffer in buffers:
            size = problem.round_up(buffer.size, alignment)
            for start, end in buffer.live:
                changes[start] += size
                changes[end] -= size
        live = list(accumulate(changes))
        found[device] = [max(live[s:e], default=0) for s, e in pairwise(starts)]
    return found


def _lifetimes(
    storage: Storage, alignment: int
) -> tuple[Sequence[int], Mapping[str | None, Sequence[problem.Buffer]]]:
    """The first step of each operation, and of what follows; and the own buffers."""
    walk = _Walk()
    starts = walk.add(storage)
    uses = [Uses(walk.begin[b], accesses) for b, accesses in walk.accesses.items()]
    pools: dict[str | None, list[tuple[TensorBuffer, Sequence[problem.Steps]]]] = {}
    for buffer, live in zip(walk.accesses, live_steps(walk, uses), strict=True):
        pools.setdefault(device_of(buffer.type), []).append((buffer, live))
    found: dict[str | None, Sequence[problem.Buffer]] = {}
    for device, pairs in pools.items():
        wanted = (element_alignment(b.type.element_type) for b, _ in pairs)
        unit = max(alignment, *wanted)
        found[device] = [
            buffer_of("", typical_bytes(b.type), live, unit) for b, live in pairs
        ]
    return starts, found


class _Walk:
    """The accesses of own buffers, as steps in nodes that follow one another."""

    def __init__(self) -> None:
        self.nodes = [Node(0)]
        self.node_of: list[int] = []
        """By step."""
        self.begin: dict[TensorBuffer, int] = {}
        self.accesses: dict[TensorBuffer, dict[int, bool]] = {}
        """By step: whether all of the buffer is written, and nothing of it read."""

    def add(self, storage: Storage) -> Sequence[int]:
        """The accesses of a block; the first step of each operation, and the last."""
        starts: list[int] = []
        for _, actions in storage.steps:
            starts.append(len(self.node_of))
            for action in actions:
                match action:
                    case Allocate(buffer):
                        self._begin(buffer)
                    case Copy(source, target):
                        self._access([source], [target])
                    case Run(_, inputs, outs):
                        self._access(inputs, outs)
                    case Loop():
                        self._loop(action)
                    case Branch():
                        self._branch(action)
                    case _:
                        pass
        return [*starts, self._step()]

    def _step(self) -> int:
        self.node_of.append(len(self.nodes) - 1)
        return len(self.node_of) - 1

    def _begin(self, buffer: TensorBuffer) -> None:
        self.begin[buffer] = self._step()
        self.accesses[buffer] = {}

    def _access(self, reads: Sequence[At], writes: Sequence[At]) -> None:
        for place, _ in writes:
            if place.buffer.home is Home.OWN and place.buffer not in self.begin:
                self._begin(place.buffer)
        step = self._step()
        for ats, is_write in ((reads, False), (writes, True)):
            for place, _ in ats:
                buffer = place.buffer
                while buffer.outside is not None:
                    buffer = buffer.outside
                if buffer.home is Home.OWN:
                    steps = self.accesses[buffer]
                    is_whole = is_write and place.is_whole
                    steps[step] = steps.get(step, True) and is_whole

    def _node(self, *before: int) -> int:
        """Starts a node that comes after others."""
        self.nodes.append(Node(len(self.node_of)))
        for node in before:
            self.nodes[node].successors.append(len(self.nodes) - 1)
        return len(self.nodes) - 1

    def _loop(self, loop: Loop) -> None:
        self._step()
        condition = self._node(len(self.nodes) - 1)
        self.add(loop.condition)
        self._access([At(whole(loop.flag))], [])
        decided = len(self.nodes) - 1
        self._node(decided)
        self.add(loop.body)
        self.nodes[-1].successors.append(condition)
        self._node(decided)

    def _branch(self, branch: Branch) -> None:
        self._access([branch.predicate], [])
        before = len(self.nodes) - 1
        ends: list[int] = []
        for storage in branch.regions:
            self._node(before)
            self.add(storage)
            ends.append(len(self.nodes) - 1)
        self._node(*ends)
