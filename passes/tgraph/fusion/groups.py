"""Divides the operations of a function into groups that may become `tgraph.fusion`s.

The fusion algorithms find candidates for groups by patterns alone. This module cuts
each candidate, from its result backwards, to a form that `dialects/tgraph/fusing.py`
allows.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import prod
from typing import TypeGuard

from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue, Use

from ....analysis.operations import Fused, operands_of
from ....dialects import contents
from ....dialects.sizes.symbolic import typical
from ....dialects.tgraph.base import (
    Pattern,
    Shape,
    TensorOp,
    VariableType,
    shape_of,
    tensor_type_of,
    typical_bytes,
)
from ....dialects.tgraph.elementwise import ElementwiseOp
from ....dialects.tgraph.fusing import (
    COMPUTED,
    Group,
    is_index_vector,
    needs_leaf,
    overwritable,
)
from ....dialects.tgraph.indexing import DynamicSliceOp
from ....dialects.tgraph.reducing import ReduceOp
from ....dialects.tgraph.shaping import (
    BroadcastInDimOp,
    ConcatenateOp,
    ConstantOp,
    IotaOp,
)
from . import nnvm, postdominators
from .graph import FusionNode, place_of
from .slices import slice_in_place

MODES = ("relay", "nnvm", "none")

MAX_ROW = 1 << 16
"""The most elements of a row that a reduction inside a group may read."""


def is_computed(op: Operation) -> TypeGuard[TensorOp]:
    """Whether the operation can be a member of a group, or its root."""
    return isinstance(op, COMPUTED) and len(op.results) == 1


def has_destination(op: Operation) -> bool:
    """Whether the operation is computed into a variable (`outs`)."""
    values = contents.operands_of(op)
    return len(values) > 0 and type(values[-1].type) is VariableType


def is_repeatable(op: Operation) -> TypeGuard[TensorOp]:
    """Whether repeating the operation wherever its result is read costs nothing."""
    if isinstance(op, ConstantOp):
        return op.splat is not None and bool(op.results)
    if isinstance(op, BroadcastInDimOp | IotaOp):
        return bool(op.results)
    return is_index_vector(op)  # a gather reads its parts instead


def is_transparent(op: Operation) -> TypeGuard[TensorOp]:
    """Whether a group that reads the result reads the operands instead."""
    return isinstance(op, BroadcastInDimOp) or is_index_vector(op)


@dataclass
class Function:
    """The operations of a block, numbered by position."""

    block: Block
    ops: Sequence[Operation] = field(init=False)
    position: Mapping[Operation, int] = field(init=False)
    shapes: Sequence[Shape] = field(init=False)
    """By position, the result's shape of an operation that can be in a group or is a
    broadcast; () for other operations."""

    def __post_init__(self) -> None:
        self.ops = list(self.block.ops)
        self.position = {op: index for index, op in enumerate(self.ops)}
        self.shapes = [
            shape_of(tensor_type_of(op.results[0].type))
            if is_computed(op) or (isinstance(op, BroadcastInDimOp) and op.results)
            else ()
            for op in self.ops
        ]

    def readers(self, index: int) -> Iterator[int]:
        """Yields the positions of operations that read the results of operation
        `index`, directly or through broadcasts and index vectors."""
        values = list(self.ops[index].results)
        for value in values:
            for use in value.uses:
                if is_transparent(use.operation):
                    values += use.operation.results
                else:
                    yield self.position[use.operation]


def candidates(function: Function, mode: str, max_depth: int) -> Sequence[int]:
    """For each operation, the number of its group by the algorithm of `mode`."""
    graph: list[FusionNode] = []
    results: list[int] = []
    for op, shape in zip(function.ops, function.shapes, strict=True):
        inputs: list[tuple[int, int]] = []
        for operand in contents.operands_of(op):
            # Constants are repeated where they are read, so they are no edges.
            if isinstance(operand, OpResult) and not isinstance(operand.op, ConstantOp):
                inputs.append((function.position[operand.op], operand.index))
        pattern = Pattern.OPAQUE
        if is_computed(op) or is_transparent(op):
            pattern = op.PATTERN
        shapes = [shape] * max(1, len(op.results))
        graph.append(FusionNode(pattern, inputs, shapes))
        if not op.results:  # its operands are stored
            results += [producer for producer, _ in inputs]
    if mode == "nnvm":
        return nnvm.fuse(graph, results).roots
    return postdominators.fuse(graph, results, max_depth, rows=True)


def cut_at_narrowest(function: Function, candidate: Sequence[int]) -> Sequence[int]:
    """Ends each candidate at its narrowest value, if its result's readers are in one
    other candidate: the operations that widen this value to the result move there.

        product -> ... -> i8 -> i32 | sum        stores the i32
        product -> ... -> i8 | i32 -> sum        stores the i8
    """
    found = list(candidate)
    for index, op in enumerate(function.ops):
        readers = list(function.readers(index)) if isinstance(op, ElementwiseOp) else []
        others = {candidate[reader] for reader in readers}
        if len(others) != 1 or candidate[index] in others:
            continue
        chain = list(_chain(function, candidate, index))
        sizes = [typical_bytes(tensor_type_of(o.results[0].type)) for o in chain]
        for widening in chain[: sizes.index(min(sizes))]:
            found[function.position[widening]] = found[readers[0]]
    return found


def _chain(
    function: Function, candidate: Sequence[int], index: int
) -> Iterator[Operation]:
    """Yields the operation at `index`, then backwards the operations of its candidate
    that compute its operand, while each has one reader and one stored operand."""
    op = function.ops[index]
    yield op
    while isinstance(op, ElementwiseOp):
        owners = [value.owner for value in operands_of(op)[0]]
        owners = [
            o for o in owners if not (isinstance(o, Operation) and is_repeatable(o))
        ]
        if len(owners) != 1 or not isinstance(op := owners[0], Operation):
            return
        at = function.position.get(op)
        if at is None or candidate[at] != candidate[index] or not is_computed(op):
            return
        if len(list(function.readers(at))) != 1:
            return
        yield op


@dataclass
class Grouping:
    """Which operations are computed together."""

    roots: Sequence[int]
    """For each operation, the position of its group's root; -1 if it is in no group, or
    in several."""
    groups: Mapping[int, Group]
    """By the position of the root."""
    members: Mapping[int, Sequence[int]]
    """The members' positions, by that of the root; ascending, without repeatables."""
    stored: Set[int]
    """The positions of operations that had to be roots."""


def grouped(
    function: Function,
    candidate: Sequence[int],
    stored: Set[int],
    before: Grouping | None = None,
) -> Grouping:
    """Divides the candidates into groups, such that the operations in `stored` are
    roots.

    before: the groups for a subset of `stored`. Only candidates with newly stored
        operations are divided again.
    """
    ops, position = function.ops, function.position
    kept = before or Grouping([-1] * len(ops), {}, {}, set())
    divided = {candidate[index] for index in stored - kept.stored}
    roots = list(kept.roots)
    groups: dict[int, Group] = {}
    members: dict[int, list[int]] = {}
    places: dict[int, tuple[Attribute | None, ...]] = {}

    def reader(op: Operation) -> int:
        """The group that contains all readers of `op`, or -1."""
        found = -1
        for use in op.results[0].uses:
            user = use.operation
            if user not in position or needs_leaf(use):
                return -1
            root = roots[position[user]]
            if root < 0 or found not in (-1, root):
                return -1
            found = root
        return found

    for index in range(len(ops) - 1, -1, -1):
        op = ops[index]
        if is_transparent(op):
            roots[index] = reader(op) if op.results else -1
            continue
        if (before and candidate[index] not in divided) or not is_computed(op):
            continue
        place = place_of(op)
        root = -1 if index in stored or has_destination(op) else reader(op)
        if (
            root >= 0
            and candidate[root] == candidate[index]
            and places[root] == place
            and _row_elements(op) <= MAX_ROW
            and groups[root].add(op)
        ):
            roots[index] = root
            members[root].append(index)
        else:
            roots[index] = index
            groups[index], members[index] = Group(op), [index]
            places[index] = place
    ascending: dict[int, Sequence[int]] = {r: m[::-1] for r, m in members.items()}
    for root in kept.groups:
        if candidate[root] not in divided:
            groups[root], ascending[root] = kept.groups[root], kept.members[root]
    last = sorted(groups, reverse=True)
    return Grouping(
        roots,
        {root: groups[root] for root in last},
        {root: ascending[root] for root in last},
        stored,
    )


def _row_elements(op: TensorOp) -> int:
    """The elements of a row that a reduction reads; 1 for other operations."""
    if not isinstance(op, ReduceOp):
        return 1
    shape = shape_of(tensor_type_of(op.inputs[0].type))
    return typical(prod(shape[d] for d in op.dimensions.get_values()))


def fusions(function: Function, grouping: Grouping) -> Iterator[Fused]:
    """Yields the fusion for each group, of its members and the repeatables that they
    read. A group of one operation without repeatables does not become a fusion.

    Each fusion is made on demand, so it reads the results of fusions that the caller
    has inserted before.
    """
    for root, members in grouping.members.items():
        if found := fused(function, members, grouping.groups[root]):
            yield found


def fused(function: Function, members: Sequence[int], group: Group) -> Fused | None:
    """The fusion for one group, or None if its only member stays as it is."""
    inside = _with_repeatables(function, members)
    if len(members) == 1 and (
        len(inside) == 1
        or not (
            isinstance(group.root, ElementwiseOp)
            or any(isinstance(op, DynamicSliceOp | ConcatenateOp) for op in inside)
        )
    ):
        return None
    uses: dict[SSAValue, list[Use]] = {}
    made: set[SSAValue] = set()
    for op in inside:
        for index, value in enumerate(operands_of(op)[0]):
            if value not in made:
                uses.setdefault(value, []).append(Use(op, index))
        made.update(op.results)
    result = tensor_type_of(group.root.results[0].type)
    read = ((value.type, found) for value, found in uses.items())
    allowed = overwritable(group.reads_in_place, result, read)
    return Fused(inside, list(uses), allowed)


def _with_repeatables(function: Function, members: Sequence[int]) -> list[TensorOp]:
    """The members, the repeatables that they read (directly or through others), and
    the slices that they read in place; in program order."""
    found = set(members)
    queue = list(members)
    for member in queue:
        op = function.ops[member]
        for value in contents.operands_of(op):
            for owner in (*_repeated(value), *slice_in_place(op, value)):
                index = function.position[owner]
                if index not in found:
                    found.add(index)
                    queue.append(index)
    ops = (function.ops[index] for index in sorted(found))
    return [op for op in ops if isinstance(op, TensorOp)]


def _repeated(value: SSAValue) -> Sequence[Operation]:
    owner = value.owner
    return [owner] if isinstance(owner, Operation) and is_repeatable(owner) else []


def unreduced_row_values(function: Function, grouping: Grouping) -> set[int]:
    """Members that compute one number per row, in groups that the reduction of the
    rows did not join. They have to be stored."""
    return {
        index
        for root, group in grouping.groups.items()
        if group.form is None
        for index in grouping.members[root]
        if index != root
        and any(
            isinstance(use.operation, BroadcastInDimOp)
            for use in function.ops[index].results[0].uses
        )
    }
