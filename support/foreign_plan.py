"""A memory plan that another compiler made: its memories, values and steps, without IR.

Readers in `frontends/plans/` write it, and `checking/foreign.py` audits it. A plan is a
list of steps in the order in which they run. A step reads values and writes values, and
each value has its bytes in a memory. A value can be forwarded under a new name without
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
    """A file holds no readable plan."""

    def __init__(self, reason: str, place: str):
        self.place = place
        self.reason = reason
        super().__init__(f"{place}: {reason}")


class Region(NamedTuple):
    """A range of bytes in a memory."""

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
    """The purpose of the allocation: `temporary`, `argument`, `result`, `constant`; or
    its place, if that is not the device: `host`."""


class Value(NamedTuple):
    """Contents that one step writes, once. Names are unique in a plan."""

    name: str
    region: Region
    type: str = ""  # as the other compiler prints it
    origin: str = ""  # its place in the user's program: `weights[0]`, `jit(f)/add`
    location: str = ""  # the source location: `file:line:col`


class Elements(NamedTuple):
    """The order of a step's element accesses to a read and a write that share bytes.

    The element at `written[k]` is computed from the elements at `r[k]` for each `r` in
    `read`. Positions are bytes from the start of the value, or -1 for none.
    """

    written: Positions
    read: Sequence[Positions]
    width: int  # bytes of an element


class Unknown(NamedTuple):
    """The order in which a step reads and writes elements is not known."""

    reason: str  # `the window's start is computed`
    is_refuted: bool = False
    """Whether some element is known to be read after it was overwritten."""


Access: TypeAlias = Elements | Unknown | None
"""None: the step promises to read all bytes before it overwrites them."""


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
    """Describes a read and a write, given by index, that share bytes."""
    is_copy: bool = False
    """Whether the step copies its operand, with the elements in the same order."""
    scratch: Sequence[Value] = ()
    """Scratch memory that the step also writes, and that no step reads."""


class Forwarded(NamedTuple):
    """After this, `new` is another name for `old`, in the same bytes."""

    old: Value
    new: Value


@dataclass(frozen=True)
class Loop:
    """Runs `condition`, and while it holds, `body` and `condition` again."""

    name: str
    condition: "Block"
    body: "Block"
    entering: Sequence[Forwarded]
    """From initial values to the arguments of condition and body."""
    repeating: Sequence[Forwarded]
    """From the values that the body returns to the arguments."""
    leaving: Sequence[Forwarded]
    """From the arguments to the results."""
    location: str = ""


@dataclass(frozen=True)
class Branch:
    """Runs one of the blocks, each of which ends by forwarding its results."""

    name: str
    choices: Sequence["Block"]
    location: str = ""


Block: TypeAlias = Sequence["Step | Forwarded | Loop | Branch"]


@dataclass(frozen=True)
class ForeignPlan:
    name: str
    memories: Mapping[str, Memory]
    steps: Block
    given: Sequence[Value]
    """Arguments and constants, which are in memory before the first step."""
    kept: Sequence[Value]
    """Results and other values that must be in memory after the last step."""
    assumptions: Sequence[str] = ()
    """Properties of the other compiler's code that the proof assumes."""
    not_understood: Mapping[str, int] = field(default_factory=dict[str, int])
    """The kinds of things that the reader left out, and how often."""
    scratch: Sequence[Region] = ()
    """Scratch memory of kernels, if the plan does not name the steps that use it."""
    is_trace: bool = False
    """Whether steps are only points in time, without data dependences."""
    devices: Mapping[str, str] = field(default_factory=dict[str, str])
    """The device of each memory, if memories are segments of PyTorch's allocator."""

    @property
    def bytes(self) -> int:
        """The size of all memories together."""
        return sum(memory.size for memory in self.memories.values())


def steps_in(block: Block) -> Sequence[Step]:
    """All steps in textual order, including those nested in loops and branches."""
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
