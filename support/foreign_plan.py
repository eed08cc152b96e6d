"""A memory plan that another compiler made: its memories, values and steps, without IR.

Readers in `frontends/plans/` write it, and `checking/foreign.py` audits it. A plan is a
list of steps in the order in which they run. A step reads values and writes values, and
each value has its bytes in a memory. A value can be handed on under a new name without
being moved, which is how loops, branches and calls pass values.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Positions: TypeAlias = "npt.NDArray[np.int64]"


class ForeignPlanError(Exception):
    """A file that holds no plan that can be read."""

    def __init__(self, reason: str, place: str):
        self.place = place
        self.reason = reason
        super().__init__(f"{place}: {reason}")


class Region(NamedTuple):
    """Bytes of a memory."""

    memory: str
    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size

    def overlaps(self, other: "Region") -> bool:
        return self.memory == other.memory and max(self.offset, other.offset) < min(
            self.end, other.end
        )


class Memory(NamedTuple):
    """One allocation of the plan."""

    size: int  # bytes
    kind: str
    """What it is allocated for: `temporary`, `argument`, `result`, `constant`; or where
    it is, if not on the device: `host`."""


class Value(NamedTuple):
    """Contents that a step writes once; a name stands for one value in a plan."""

    name: str
    region: Region
    type: str = ""  # as the other compiler prints it
    origin: str = ""  # what it is in the user's program: `weights[0]`, `jit(f)/add`
    location: str = ""  # there: `file:line:col`


class Elements(NamedTuple):
    """Which elements a step reads before it writes which, where both share bytes.

    The k-th position in `written` is computed from the k-th ones in each of `read`.
    Positions are bytes from the start of the value, or -1 for none.
    """

    written: Positions
    read: Sequence[Positions]
    width: int  # bytes of an element


class Unknown(NamedTuple):
    """It is not known which elements a step reads before it writes which."""

    reason: str  # `the window's start is computed`
    is_refuted: bool = False
    """Whether some element is certainly read after it was overwritten."""


Access: TypeAlias = Elements | Unknown | None
"""None: what the step overwrites, it has read before; the step promises so."""


def _promises_nothing(read: int, write: int) -> Access:
    return Unknown("nothing is known about the operation")


@dataclass(frozen=True)
class Step:
    """One operation, which reads its operands and writes its results."""

    name: str
    operation: str
    reads: Sequence[Value] = ()
    writes: Sequence[Value] = ()
    location: str = ""
    access: Callable[[int, int], Access] = _promises_nothing
    """Of a read and a write, by their numbers, whose bytes overlap."""
    is_copy: bool = False
    """Whether it writes the contents of its operand, in the same order."""
    scratch: Sequence[Value] = ()
    """What it writes besides, as scratch memory: no step reads it."""


class HandedOn(NamedTuple):
    """From here on `new` is another name for `old`, in the same bytes."""

    old: Value
    new: Value


@dataclass(frozen=True)
class Loop:
    """Runs `condition`, and while that holds, `body` and `condition` again."""

    name: str
    condition: "Block"
    body: "Block"
    entering: Sequence[HandedOn]
    """Initial values to the arguments of condition and body."""
    repeating: Sequence[HandedOn]
    """What the body returns to the arguments."""
    leaving: Sequence[HandedOn]
    """The arguments to the results."""
    location: str = ""


@dataclass(frozen=True)
class Branch:
    """Runs one of the blocks, each of which ends by handing on its results."""

    name: str
    choices: Sequence["Block"]
    location: str = ""


Block: TypeAlias = Sequence["Step | HandedOn | Loop | Branch"]


@dataclass(frozen=True)
class ForeignPlan:
    name: str
    memories: Mapping[str, Memory]
    steps: Block
    given: Sequence[Value]
    """In their bytes before the first step: arguments and constants."""
    kept: Sequence[Value]
    """In their bytes after the last step: results, and what no step may overwrite."""
    assumptions: Sequence[str] = ()
    """What the proof takes for granted about the other compiler's code."""
    not_understood: Mapping[str, int] = field(default_factory=dict[str, int])
    """What the reader left out, and how often."""
    scratch: Sequence[Region] = ()
    """What kernels use within steps, if the plan does not say within which."""
    is_trace: bool = False
    """Whether steps are only times, and say nothing of what depends on what."""
    devices: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of the memories, if they are segments of PyTorch's caching allocator."""

    @property
    def bytes(self) -> int:
        """Of all memories."""
        return sum(memory.size for memory in self.memories.values())


def steps_in(block: Block) -> Sequence[Step]:
    """All steps in textual order, those of loops and branches included."""
    found: list[Step] = []
    for item in block:
        match item:
            case Step():
                found.append(item)
            case Loop(condition=condition, body=body):
                found += [*steps_in(condition), *steps_in(body)]
            case Branch(choices=choices):
                found += [step for choice in choices for step in steps_in(choice)]
            case _:
                pass
    return found
