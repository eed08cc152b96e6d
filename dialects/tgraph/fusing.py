"""The forms of groups of operations that need no memory for values inside of them.

LOOP         elementwise operations, all of the result's shape, on leaves: arguments,
             slices of them at dynamic starts, and views of these; numbers, iotas
             and gathers, of that shape too, from leaves at indices that are leaves
             or that the group computes
CONTRACTION  one `dot_general` or `convolution` of leaves, of the result's shape, then
             elementwise operations of that shape
REDUCTION    elementwise operations of one shape, then one `reduce` of any dimensions
SCATTER      elementwise operations and gathers of one shape, then one `scatter` of them
             into a leaf, at indices that are leaves or that the group computes
ROWS         elementwise operations and `reduce`s of whole rows: all values either have
             the full shape `(R, C)` or hold one number for each row, `(R)` or
             `(R, 1)`; broadcasts expand these to the full shape (softmax, layer norm)

Operations that only compute indices of a group's gathers and scatter may have any
shape. They are elementwise operations, gathers, broadcasts of these, and concatenations
of the entries of index vectors.

A group has one result, that of its root. A group may end with an update, which writes
the root's result into a tensor, as a slice at a dynamic start. It may read the slice
that it replaces. Only `Group` knows these rules: the passes that make groups and the
kernels that run them use it.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum, Flag, auto
from math import prod
from typing import TypeGuard

from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue, Use

from ..contents import operands_of
from .base import (
    AnyTensor,
    Shape,
    TensorOp,
    have_equal_sizes,
    shape_of,
    tensor_type_of,
    value_shape,
    without_ones,
)
from .elementwise import ElementwiseOp
from .indexing import (
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    GatherOp,
    ScatterOp,
    are_entries,
)
from .reducing import ConvolutionOp, DotGeneralOp, ReduceOp
from .shaping import (
    BroadcastInDimOp,
    ConcatenateOp,
    ConstantOp,
    FullLikeOp,
    IotaOp,
    ReshapeOp,
    ViewOp,
)


class Form(Enum):
    """The form of a group; see the module's docstring."""

    LOOP = auto()
    CONTRACTION = auto()
    REDUCTION = auto()
    SCATTER = auto()
    ROWS = auto()


Spread = tuple[Shape, Shape, tuple[int, ...]]
"""A broadcast of a computed value: operand shape, result shape, dimensions."""


class Role(Flag):
    """How a group reads the result of a member."""

    ELEMENT = auto()
    """As an element, at the position or in the row that is being written."""
    INDEX = auto()
    """As an index of a gather or scatter, maybe at other positions."""


def overwritable(
    in_place: Callable[[Use], bool],
    result: AnyTensor,
    inputs: Iterable[tuple[Attribute, Iterable[Use]]],
) -> Sequence[int]:
    """The inputs of a group whose memory its result may take over: they have the
    result's shape and element size, and all members that read them do so in place
    (`Group.reads_in_place`).

    inputs: for each input, the type and its uses by members.
    """
    return [
        index
        for index, (type, uses) in enumerate(inputs)
        if (tensor := tensor_type_of(type)).shape == result.shape
        and have_equal_sizes(tensor.element_type, result.element_type)
        and all(map(in_place, uses))
    ]


class Group:
    """Operations that are computed together, added from the root up.

    Broadcasts are not added: `add` finds those between an operation and its readers.
    """

    update: DynamicUpdateSliceOp | None = None
    """The update that writes the root's result into a tensor, if there is one."""

    def __init__(self, root: TensorOp):
        self.root = root
        self.shapes: dict[Shape, None] = {}  # of elementwise operations
        self.reductions: list[tuple[Shape, Sequence[int]]] = []  # operand shape, dims
        self.spreads: dict[Spread, None] = {}
        self.contractions: list[Shape] = []
        self._is_grouped = False  # whether a convolution has feature or batch groups
        self._gathers = False
        self._scattered: Shape | None = None  # the updates of the scatter at the root
        self._roles: dict[Operation, Role] = {}
        self._take(root)

    def add(self, op: TensorOp) -> bool:
        """Adds an operation that only members read, directly or through broadcasts.

        Returns False, and leaves the group unchanged, if the result would not be a
        group. Values with one number per row are accepted before their reduction is
        added; at the end, `form` is None if there was no reduction.
        """
        spreads: list[Spread] = []
        self._roles[op] = role = self._role(op.results[0], spreads)
        is_elementwise = isinstance(op, ElementwiseOp)
        if Role.ELEMENT not in role:
            return is_elementwise or isinstance(op, GatherOp)
        if isinstance(op, GatherOp) and (spreads or self.contractions):
            return False
        if isinstance(op, ScatterOp):
            return False
        if is_elementwise and not spreads and _shape(op) in self.shapes:
            return True
        before = (
            dict(self.shapes),
            list(self.reductions),
            dict(self.spreads),
            list(self.contractions),
        )
        self._take(op)
        self.spreads.update(dict.fromkeys(spreads))
        if self.form or (not self.reductions and self.rows is not None):
            return True
        self.shapes, self.reductions, self.spreads, self.contractions = before
        return False

    def _role(self, value: SSAValue, spreads: list[Spread]) -> Role:
        """How members read `value`. Appends the broadcasts of it that they read as
        elements, and broadcasts of these."""
        role = Role(0)
        for use in value.uses:
            op = use.operation
            if isinstance(op, BroadcastInDimOp) and op.results:
                at = len(spreads)
                read = self._role(op.results[0], spreads)
                if Role.ELEMENT in read:
                    dims = op.broadcast_dimensions.get_values()
                    shape = shape_of(tensor_type_of(value.type))
                    spreads.insert(at, (shape, _shape(op), dims))
                role |= read
            elif is_index_vector(op):
                role |= self._role(op.results[0], spreads)
            elif is_index(use):
                role |= Role.INDEX
            else:
                role |= self._roles.get(op, Role.ELEMENT)
        return role

    def _take(self, op: TensorOp) -> None:
        if isinstance(op, ElementwiseOp | GatherOp):
            self.shapes[_shape(op)] = None
            self._gathers |= isinstance(op, GatherOp)
        elif isinstance(op, ReduceOp):
            shape = shape_of(tensor_type_of(op.operands[0].type))
            self.reductions.append((shape, sorted(op.dimensions.get_values())))
        elif isinstance(op, ScatterOp):
            self._scattered = value_shape(op.inputs[2])
        else:
            self.contractions.append(_shape(op))
            self._is_grouped = isinstance(op, ConvolutionOp) and op.groups > 1

    @property
    def form(self) -> Form | None:
        """The group's form; None if it has none, or not yet."""
        result = _shape(self.root)
        if self.contractions:
            is_alone = not (self.reductions or self.spreads or self._gathers)
            is_one = self.contractions == [result] and all(
                shape == result for shape in self.shapes
            )
            return Form.CONTRACTION if is_alone and is_one else None
        if self._scattered is not None:
            is_alone = not (self.reductions or self.spreads)
            is_one = all(shape == self._scattered for shape in self.shapes)
            return Form.SCATTER if is_alone and is_one else None
        if not self.reductions:
            is_loop = not self.spreads and list(self.shapes) == [result]
            return Form.LOOP if is_loop else None
        if (
            isinstance(self.root, ReduceOp)
            and len(self.reductions) == 1
            and not self.spreads
            and all(shape == self.reductions[0][0] for shape in self.shapes)
        ):
            return Form.REDUCTION
        return Form.ROWS if self.rows is not None else None

    def reads_in_place(self, use: Use) -> bool:
        """Whether a member reads an operand of the result's shape only at the position,
        or in the row, that is being written. The result may take over the memory of
        such an operand."""
        op = use.operation
        if isinstance(op, ScatterOp):
            return op is self.root and use.index == 0
        role = self._roles.get(op, Role.ELEMENT)
        return isinstance(op, self._in_place) and Role.INDEX not in role

    @property
    def _in_place(self) -> tuple[type[TensorOp], ...]:
        """The classes of members that may read in place."""
        match self.form:
            case Form.LOOP:
                return (ElementwiseOp,)
            case Form.CONTRACTION:
                return () if self._is_grouped else (ElementwiseOp,)
            case Form.ROWS:
                return (ElementwiseOp, ReduceOp)
            case _:
                return ()

    def updated(self) -> Sequence[int]:
        """The argument whose slice `update` replaces, if the result may take over its
        memory: members read only those of its elements that are being replaced."""
        assert self.update is not None
        whole = self.update.inputs[0]
        for use in whole.uses:
            read = use.operation
            if read is self.update and not use.index:
                continue
            if not isinstance(read, DynamicSliceOp) or not is_replaced(
                read, self.update
            ):
                return ()
            values: list[SSAValue] = [read.result]
            for value in values:
                for inner in value.uses:
                    user = inner.operation
                    if isinstance(user, ViewOp) and keeps_sizes(user):
                        values += user.res
                    elif not self.reads_in_place(inner):
                        return ()
        return (whole.index,) if isinstance(whole, BlockArgument) else ()

    @property
    def rows(self) -> int | None:
        """The number of leading dimensions that index rows; None without rows."""
        if self.contractions or self._scattered is not None:
            return None
        shapes = self.shapes | {s: None for pair in self.spreads for s in pair[:2]}
        if self.reductions:
            full, dims = self.reductions[0]
            count = len(full) - len(dims)
            if list(dims) != list(range(count, len(full))) or any(
                other != (full, dims) for other in self.reductions
            ):
                return None
        else:
            full = max(shapes, key=lambda shape: (prod(shape), len(shape)))
            (small, _, _) = next(iter(self.spreads))
            count = len(small)
            while count and small[count - 1] == 1:
                count -= 1
        if not all(_is_of_rows(shape, full, count) for shape in shapes):
            return None
        for small, large, dims in self.spreads:
            if small != large and tuple(dims[:count]) != tuple(range(count)):
                return None
            if small == full and small != large:
                return None
        return count


def _is_of_rows(shape: Shape, full: Shape, count: int) -> bool:
    """Whether `shape` is that of whole rows, or of one number for each row."""
    if shape == full:
        return True
    return shape[:count] == full[:count] and all(size == 1 for size in shape[count:])


def _shape(op: TensorOp) -> Shape:
    return shape_of(tensor_type_of(op.results[0].type))


def is_index_vector(op: Operation) -> TypeGuard[ConcatenateOp]:
    """Whether an operation on tensors concatenates single entries of index vectors, for
    gathers and scatters alone."""
    if not isinstance(op, ConcatenateOp) or not op.res:
        return False
    uses = list(op.res[0].uses)
    return len(uses) > 0 and all(
        isinstance(reader := use.operation, GatherOp | ScatterOp)
        and use.index == 1
        and are_entries(op, reader.index_vector_dim.value.data)
        for use in uses
    )


def is_index(use: Use) -> bool:
    """Whether a value is used as the indices of a gather or scatter in a form in which
    a group may compute them: the index vectors have one entry, or are concatenated from
    entries."""
    reader = use.operation
    if not isinstance(reader, GatherOp | ScatterOp) or use.index != 1:
        return False
    indices = reader.inputs[1]
    if isinstance(indices.owner, Operation) and is_index_vector(indices.owner):
        return True
    dim = reader.index_vector_dim.value.data
    return (*value_shape(indices), 1)[dim] == 1


def needs_leaf(use: Use) -> bool:
    """Whether a member can only read this operand if it is a leaf."""
    op = use.operation
    if isinstance(op, ScatterOp) and use.index == 2:
        return False
    return isinstance(op, (*CONTRACTIONS, GatherOp, ScatterOp)) and not is_index(use)


CONTRACTIONS = (DotGeneralOp, ConvolutionOp)
COMPUTED = (ElementwiseOp, ReduceOp, GatherOp, ScatterOp, *CONTRACTIONS)
"""Operations that groups consist of."""

LEAVES = (ConstantOp, FullLikeOp, IotaOp)
"""Operations in a body that have no computed operands."""


def ending(result: SSAValue) -> tuple[SSAValue, DynamicUpdateSliceOp | None]:
    """The value that a body with this result computes, and the update, if any, that
    writes it into a tensor, possibly after a reshape by dimensions of size 1."""
    update = result.owner
    if not isinstance(update, DynamicUpdateSliceOp):
        return result, None
    return without_units(update.inputs[1]), update


def without_units(value: SSAValue) -> SSAValue:
    """The value before all views that only add or remove dimensions of size 1."""
    while isinstance(value.owner, ViewOp) and keeps_sizes(value.owner):
        value = value.owner.inputs[0]
    return value


def keeps_sizes(op: ViewOp) -> bool:
    """Whether an operation on tensors only adds and removes dimensions of size 1."""
    if not op.res or op.outs:
        return False
    if isinstance(op, BroadcastInDimOp):
        dims = op.broadcast_dimensions.get_values()
        if list(dims) != sorted(dims):
            return False
    elif not isinstance(op, ReshapeOp):
        return False
    before, after = (without_ones(value_shape(v)) for v in (op.inputs[0], op.res[0]))
    return before == after


def is_replaced(slice: DynamicSliceOp, update: DynamicUpdateSliceOp) -> bool:
    """Whether `slice` is the slice that `update` replaces: it starts at the same index
    along each dimension in which it is smaller than the tensor."""
    whole, part = (shape_of(tensor_type_of(v.type)) for v in update.inputs[:2])
    if slice.inputs[0] is not update.inputs[0] or _shape(slice) != part:
        return False
    starts = zip(slice.starts, update.starts, strict=True)
    return all(part[d] == whole[d] or is_same(*pair) for d, pair in enumerate(starts))


def is_same(x: SSAValue, y: SSAValue) -> bool:
    """Whether two values are identical, or equal constants."""
    return x is y or (
        isinstance(x.owner, ConstantOp)
        and isinstance(y.owner, ConstantOp)
        and x.owner.dense == y.owner.dense
    )


def group_of(body: Block, result: SSAValue) -> Group | None:
    """The group in a fusion's body that yields `result`; None if it is no group."""
    known = set[SSAValue](body.args)
    leaves = set(known)
    for op in body.ops:
        if isinstance(op, LEAVES) or (
            isinstance(op, ViewOp) and operands_of(op)[0] in leaves
        ):
            leaves.add(op.results[0])
        elif isinstance(op, DynamicSliceOp) and known.issuperset(operands_of(op)):
            leaves.add(op.results[0])
        if isinstance(op, ConstantOp):
            known.add(op.results[0])
    computed, update = ending(result)
    if update and not known.issuperset((update.inputs[0], *update.starts)):
        return None
    group: Group | None = None
    needed = {computed}
    for op in reversed(body.ops):
        if not isinstance(op, TensorOp) or op.results[0] not in needed:
            continue
        needed.update(operands_of(op))
        if op.results[0] in leaves or (
            group and (isinstance(op, BroadcastInDimOp) or is_index_vector(op))
        ):
            continue
        if not isinstance(op, COMPUTED):
            return None
        for use in (Use(op, n) for n in range(len(operands_of(op)))):
            if op.operands[use.index] not in leaves and needs_leaf(use):
                return None
        if group is None:
            group = Group(op)
            group.update = update
        elif not group.add(op):
            return None
    return group
