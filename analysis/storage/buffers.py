"""Buffers, places in them, and what is done to them: the words of this analysis."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeAlias

from xdsl.ir import Block, Operation, SSAValue

from ...dialects.tgraph.base import AnyTensor, Shape, shape_of, tensor_type_of
from ...dialects.tgraph.shaping import ConstantOp
from ...dialects.tgraph.structure import IfOp, WhileOp
from ..layout import Layout

SMALL_CONSTANT = 1024
"""Up to this size, in bytes, a constant is a global even if it is a single number."""


class Home(Enum):
    """Whose memory a buffer is."""

    OWN = "own"  # allocated and freed in its block
    ARGUMENT = "argument"  # the caller's, to be read only
    DONATED = "donated"  # the caller's, given up
    PARAMETER = "parameter"  # the caller's, the same in every run
    RESULT = "result"  # the caller's, to be written only
    VARIABLE = "variable"  # the caller's, or of a loop that the block is in
    CONSTANT = "constant"  # the module's
    OUTSIDE = "outside"  # of the block around the region that this block is
    UNKNOWN = "unknown"  # of an operation that is not tgraph's


@dataclass(eq=False, slots=True)
class TensorBuffer:
    """A block of memory that values lie in."""

    type: AnyTensor  # of all of it
    home: Home
    name: str | None = None
    last: int = -1  # the position after which no value in it is read
    values: list[SSAValue] = field(default_factory=list[SSAValue])
    """What lies in it; in a variable, at the operation that is looked at."""
    outside: "TensorBuffer | None" = None  # what this is in the block around the region
    layout: Layout = field(init=False)  # of all of it, in order

    def __post_init__(self) -> None:
        self.layout = Layout.contiguous(shape_of(self.type))

    @property
    def shape(self) -> Shape:
        return self.layout.shape

    @property
    def is_variable(self) -> bool:
        return self.home is Home.VARIABLE

    @property
    def is_reusable(self) -> bool:
        """Whether others may lie there while no value in it is needed."""
        return self.home in (Home.DONATED, Home.RESULT, Home.VARIABLE)

    @property
    def root(self) -> "TensorBuffer":
        """What this is outside of all regions."""
        return self if self.outside is None else self.outside.root

    def seen_inside(self, home: Home = Home.OUTSIDE) -> "TensorBuffer":
        """The buffer as a region of an operation sees it."""
        return TensorBuffer(self.type, home, self.name, outside=self)


class Place(NamedTuple):
    """Where a tensor value lies: in a buffer, with this layout."""

    buffer: TensorBuffer
    layout: Layout

    @property
    def is_whole(self) -> bool:
        """Whether it is the buffer itself, rather than a view of it."""
        layout, whole = self.layout, self.buffer.layout
        return layout is whole or (layout.shape == whole.shape and layout.is_contiguous)


def whole(buffer: TensorBuffer, value: SSAValue | None = None) -> Place:
    """All of a buffer, in the shape of a value if one is given."""
    if value is None or value.type is buffer.type:
        return Place(buffer, buffer.layout)
    return Place(buffer, Layout.contiguous(shape_of(tensor_type_of(value.type))))


class At(NamedTuple):
    """A place that an operation reads or writes, as this value."""

    place: Place
    value: SSAValue | None = None  # None: the buffer itself

    @property
    def is_whole(self) -> bool:
        return self.value is None or self.place.is_whole

    @property
    def memref(self) -> Place:
        """The place outside of all regions, with the strides that its type implies."""
        buffer, layout = self.place
        if layout.is_contiguous:
            layout = Layout.contiguous(layout.shape)
        return Place(buffer.root, layout)


# What is done, in order.


class Allocate(NamedTuple):
    """A buffer's memory begins."""

    buffer: TensorBuffer


class Free(NamedTuple):
    """A buffer's memory ends."""

    buffer: TensorBuffer


class MakeView(NamedTuple):
    """A place in a buffer is named, for all that comes in its block."""

    at: At


class Copy(NamedTuple):
    """The contents of a place are copied to another."""

    source: At
    target: At
    serves: Operation  # whose stream it runs on
    saves: bool = False  # what a variable held, before it is written


class Run(NamedTuple):
    """An operation computes into buffers."""

    op: Operation
    inputs: Sequence[At]
    outs: Sequence[At]
    overwritable: Sequence[int] = ()
    """The inputs whose buffer the first result takes over if nobody reads it later."""
    elementwise: Sequence[int] = ()
    """All inputs that the first result may lie over; none where neither is in
    memory that may be reused."""


class Loop(NamedTuple):
    """The regions of a loop run, on buffers that it carries."""

    op: WhileOp
    flag: TensorBuffer  # what the condition is computed into
    carried: Sequence[TensorBuffer]
    condition: "Storage"
    body: "Storage"


class Branch(NamedTuple):
    """One of two regions runs."""

    op: IfOp
    predicate: At
    regions: Sequence["Storage"]


class Global(NamedTuple):
    """A constant that the module holds is named."""

    op: ConstantOp
    buffer: TensorBuffer


Action: TypeAlias = Allocate | Free | MakeView | Copy | Run | Loop | Branch | Global


@dataclass(eq=False)
class Storage:
    """What is stored for one block, which sees nothing from outside."""

    block: Block
    variables: dict[SSAValue, TensorBuffer] = field(
        default_factory=dict[SSAValue, TensorBuffer]
    )
    """By argument."""
    places: dict[SSAValue, Place] = field(default_factory=dict[SSAValue, Place])
    """Where each value lies; what is saved of a variable, where it is saved."""
    results: Sequence[TensorBuffer] = ()
    """What the terminator's operands are delivered to."""
    steps: list[tuple[Operation, Sequence[Action]]] = field(
        default_factory=list[tuple[Operation, Sequence[Action]]]
    )
    """What each operation does, in order."""
    early: dict[SSAValue, Operation] = field(default_factory=dict[SSAValue, Operation])
    """What lies where an operation puts it before that operation runs: the latter."""

    def buffer_of(self, argument: SSAValue) -> TensorBuffer:
        """What a tensor argument of the block is."""
        variable = self.variables.get(argument)
        return variable or self.places[argument].buffer
