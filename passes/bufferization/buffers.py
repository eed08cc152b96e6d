"""Where values lie: buffers, places in them, and the module's constants."""

from dataclasses import dataclass, field

from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tensorplan.dialects.tgraph.base import (
    AnyMemRef,
    AnyTensor,
    Shape,
    shape_of,
    space_of,
)
from tensorplan.passes.layout import Layout, memref_type


@dataclass(eq=False, slots=True)
class Buffer:
    """A block of memory that values lie in."""

    base: SSAValue  # a memref with identity layout
    shape: Shape
    owned: bool  # allocated, and to be freed, here
    is_variable: bool = False
    last: int = -1  # the position after which no value in it is read
    views: dict[Layout, SSAValue] = field(default_factory=dict[Layout, SSAValue])
    values: list[SSAValue] = field(default_factory=list[SSAValue])
    """A variable's: what lies in it."""

    def seen_inside(self) -> "Buffer":
        """The buffer as a region sees it, which makes views of its own."""
        return Buffer(self.base, self.shape, owned=False, views={**self.views})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor value lies."""

    buffer: Buffer
    layout: Layout


class Constants:
    """The module's `memref.global`s, one for each distinct constant."""

    def __init__(self, module: ModuleOp):
        self.module = module
        self.names: dict[tuple[Attribute, Attribute], str] = {}
        self.taken = {
            op.sym_name.data for op in module.ops if isinstance(op, memref.GlobalOp)
        }

    def name_of(self, value: Attribute, type: Attribute) -> str:
        if name := self.names.get((value, type)):
            return name
        number = len(self.names)
        while (name := f"constant_{number}") in self.taken:
            number += 1
        self.taken.add(name)
        self.names[value, type] = name
        op = memref.GlobalOp.get(StringAttr(name), type, value, constant=UnitAttr())
        Rewriter.insert_op(op, InsertPoint.at_start(self.module.body.block))
        return name


def contiguous(type: AnyTensor) -> AnyMemRef:
    """The type of a buffer for a whole tensor."""
    layout = Layout.contiguous(shape_of(type))
    return memref_type(type.element_type, layout, space_of(type))
