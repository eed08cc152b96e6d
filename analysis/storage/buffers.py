"""Buffers, places in them, and actions on them: the data types of this analysis."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeAlias

from xdsl.ir import Block, Operation, SSAValue

from ...dialects.tgraph.base import (
    ON_DEMAND,
    AnyTensor,
    Shape,
    shape_of,
    tensor_type_of,
)
from ...dialects.tgraph.shaping import ConstantOp
from ...dialects.tgraph.structure import IfOp, WhileOp
from ..layout import Layout

SMALL_CONSTANT = 1024
"""Constants of up to this size, in bytes, are globals even if they are one number."""


class Home(Enum):
    """Who owns a buffer's memory."""

    OWN = "own"  # allocated and freed in its block
    ARGUMENT = "argument"  # the caller's, read-only
    DONATED = "donated"  # the caller's, which it gives up
    PARAMETER = "parameter"  # the caller's, the same in every run
    RESULT = "result"  # the caller's, write-only
    VARIABLE = "variable"  # the caller's, or that of a loop around the block
    CONSTANT = "constant"  # the module's
    OUTSIDE = "outside"  # that of the block around this region
    UNKNOWN = "unknown"  # that of an operation of another dialect


@dataclass(eq=False, slots=True)
class TensorBuffer:
    """A block of memory that holds values."""

    type: AnyTensor  # of the whole buffer
    home: Home
    name: str | None = None
    last: int = -1  # the position after which no value in it is read
    values: list[SSAValue] = field(default_factory=list[SSAValue])
    """The values that it holds; for a variable, at the current operation."""
    outside: "TensorBuffer | None" = None  # the same buffer in the surrounding block
    layout: Layout = field(init=False)  # of the whole buffer, row-major

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
        """Whether other values may use the memory while its own values are dead."""
        return self.home in (Home.DONATED, Home.RESULT, Home.VARIABLE)

    @property
    def root(self) -> "TensorBuffer":
        """The same buffer outside of all regions."""
        return self if self.outside is None else self.outside.root

    def seen_inside(self, home: Home = Home.OUTSIDE) -> "TensorBuffer":
        """The buffer as a region of an operation sees it."""
        return TensorBuffer(self.type, home, self.name, outside=self)


class Place(NamedTuple):
    """The place of a tensor value: a buffer, and a layout in it."""

    buffer: TensorBuffer
    layout: Layout

    @property
    def is_whole(self) -> bool:
        """Whether the place is the whole buffer in order, rather than a view of it."""
        layout, whole = self.layout, self.buffer.layout
        return layout is whole or (layout.shape == whole.shape and layout.is_contiguous)


def whole(buffer: TensorBuffer, value: SSAValue | None = None) -> Place:
    """The whole buffer as a place, in the shape of `value` if it is given."""
    if value is None or value.type is buffer.type:
        return Place(buffer, buffer.layout)
    return Place(buffer, Layout.contiguous(shape_of(tensor_type_of(value.type))))


class At(NamedTuple):
    """A place that an operation reads or writes, and the value that it holds."""

    place: Place
    value: SSAValue | None = None  # None: the buffer itself

    @property
    def is_whole(self) -> bool:
        return self.value is None or self.place.is_whole

    @property
    def memref(self) -> Place:
        """The place in the outermost buffer, with the strides that its type implies."""
        buffer, layout = self.place
        if layout.is_contiguous:
            layout = Layout.contiguous(layout.shape)
        return Place(buffer.root, layout)


# Actions, which are executed in order.


class Allocate(NamedTuple):
    """Allocates a buffer."""

    buffer: TensorBuffer


class Free(NamedTuple):
    """Frees a buffer."""

    buffer: TensorBuffer


class MakeView(NamedTuple):
    """Makes a view of a buffer, for the rest of the block."""

    at: At


class Copy(NamedTuple):
    """Copies the contents of one place to another."""

    source: At
    target: At
    serves: Operation  # the operation whose stream it runs on
    saves: bool = False  # whether it saves a variable's contents before a write


class Run(NamedTuple):
    """Runs an operation, which computes into buffers."""

    op: Operation
    inputs: Sequence[At]
    outs: Sequence[At]
    overwritable: Sequence[int] = ()
    """The inputs whose buffer the first result takes over if nothing reads it later."""
    elementwise: Sequence[int] = ()
    """All inputs that may share bytes with the first result. Empty if neither inputs
    nor result are in reusable memory."""


class Loop(NamedTuple):
    """Runs the regions of a loop on the buffers that it carries."""

    op: WhileOp
    flag: TensorBuffer  # holds the condition
    carried: Sequence[TensorBuffer]
    condition: "Storage"
    body: "Storage"


class Branch(NamedTuple):
    """Runs one of two regions."""

    op: IfOp
    predicate: At
    regions: Sequence["Storage"]


class Global(NamedTuple):
    """Makes a constant of the module accessible."""

    op: ConstantOp
    buffer: TensorBuffer


Action: TypeAlias = Allocate | Free | MakeView | Copy | Run | Loop | Branch | Global


@dataclass(eq=False)
class Storage:
    """The storage decisions for one block, which uses no values from outside."""

    block: Block
    variables: dict[SSAValue, TensorBuffer] = field(
        default_factory=dict[SSAValue, TensorBuffer]
    )
    """The buffer of each variable, by argument."""
    places: dict[SSAValue, Place] = field(default_factory=dict[SSAValue, Place])
    """The place of each value. If a variable's contents were saved, the saved copy."""
    results: Sequence[TensorBuffer] = ()
    """The buffers to which the terminator's operands are written."""
    steps: list[tuple[Operation, Sequence[Action]]] = field(
        default_factory=list[tuple[Operation, Sequence[Action]]]
    )
    """The actions of each operation, in order."""
    early: dict[SSAValue, Operation] = field(default_factory=dict[SSAValue, Operation])
    """Values that are computed into their later place in advance, by value: the
    operation that would have put them there."""

    @property
    def is_on_demand(self) -> bool:
        """Whether the caller provides memory only while it is used
        (`tgraph.on_demand`)."""
        func = self.block.parent_op()
        return func is not None and ON_DEMAND in func.attributes

    def buffer_of(self, argument: SSAValue) -> TensorBuffer:
        """The buffer of a tensor argument of the block."""
        variable = self.variables.get(argument)
        return variable or self.places[argument].buffer
