"""Finds operations that can be computed together in tiles.

A region grows from one operation, along one dimension of its result, to the operations
that define its operands or read its results, within a window of a block. Each tile
repeats the views and numbers that it reads. Their originals stay for other readers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

from xdsl.ir import Block, Operation, SSAValue

from ....analysis.versions import last_versions, uses_of_contents
from ....dialects.tgraph.base import TensorOp, VariableType
from ....dialects.tgraph.callbacks import has_side_effect
from ....dialects.tgraph.structure import ReadOp
from .dimensions import Needs, is_repeated, needs, shape_of, sliced_sizes


@dataclass(frozen=True, eq=False)
class TileableRegion:
    """Operations and the dimensions along which their results are tiled."""

    dims: Mapping[Operation, int]  # in order
    needs: Mapping[Operation, Needs]
    before: Sequence[Operation]  # others in the window that must come before the tiles
    after: Sequence[Operation]  # others in the window that come after the tiles
    originals: frozenset[Operation]  # repeated operations that are needed whole, too
    overwritten: Mapping[TensorOp, Sequence[SSAValue]]
    """The old contents of variables, by the members that write the variables."""

    @cached_property
    def outputs(self) -> Sequence[Operation]:
        """The members whose results are needed whole, too."""
        return [
            op
            for op in self.dims
            if not is_repeated(op)
            and (
                op in self.overwritten
                or any(self.is_stored(value) for value in op.results)
            )
        ]

    def is_stored(self, value: SSAValue) -> bool:
        """Whether `value`, a member's result, is needed whole, too."""
        return any(
            use.operation not in self.dims or use.operation in self.originals
            for use in value.uses
        )


class Rules:
    """The slices that operations of a block need, cached."""

    def __init__(self, block: Block):
        self.block = block
        self.ops = list(block.ops)
        self.position = {op: index for index, op in enumerate(self.ops)}
        self.repeated = {op for op in self.ops if is_repeated(op)}
        self._found: dict[tuple[Operation, int], tuple[Needs, int] | None] = {}
        self.overwritten: dict[TensorOp, Sequence[SSAValue]] = {}
        """The old contents of variables, by the operations that write the variables."""
        for version in last_versions(block).values():
            while (before := version.previous) is not None:
                if isinstance(version.writer, TensorOp):
                    self.overwritten[version.writer] = before.values
                version = before

    def needs(self, op: Operation, dim: int, tiles: int) -> Needs | None:
        """The result of `needs`; None if a size cannot be divided into the tiles."""
        if (op, dim) not in self._found:
            self._found[op, dim] = self._look(op, dim)
        found = self._found[op, dim]
        return found[0] if found and found[1] % tiles == 0 else None

    def _look(self, op: Operation, dim: int) -> tuple[Needs, int] | None:
        if not isinstance(op, TensorOp) or not op.res or len(op.outs) > 1:
            return None
        if op.parent is not self.block or not self._is_last_reader(op):
            return None
        found = needs(op, dim)
        if found is None:
            return None
        found = [*found, *(None for _ in op.outs)]
        return found, gcd(*sliced_sizes(op, dim))

    def _is_last_reader(self, op: TensorOp) -> bool:
        """Whether no later operation reads the contents that `op` overwrites."""
        position = self.position
        return not op.outs or all(
            at <= position[op]
            for value in self.overwritten[op]
            for at, _, _ in uses_of_contents(value, position)
        )


def region(
    rules: Rules, seed: Operation, dim: int, tiles: int, window: Sequence[Operation]
) -> TileableRegion | None:
    """The largest region around `seed` found in `window`, a part of the block.

    None if `seed` cannot be tiled, or if another operation must come between members.
    """
    growth = _Growth(rules, tiles, set(window))
    if seed in rules.repeated or not growth.join(seed, dim):
        return None
    growth.run()
    return growth.region(window)


class _Growth:
    def __init__(self, rules: Rules, tiles: int, window: set[Operation]):
        self.rules = rules
        self.tiles = tiles
        self.window = window
        self.dims: dict[Operation, int] = {}
        self.needs: dict[Operation, Needs] = {}
        self.wanted: dict[SSAValue, set[int | None]] = {}
        self.queue: list[Operation] = []

    def join(self, op: Operation, dim: int) -> bool:
        """Adds `op` as a member tiled along `dim`, if its tiles can be computed.
        Returns whether it is such a member."""
        if op in self.dims:
            return self.dims[op] == dim
        if op not in self.window and op not in self.rules.repeated:
            return False
        needed = self.rules.needs(op, dim, self.tiles)
        repeated = self.rules.repeated
        allowed = {dim, None} if op in repeated else {dim}
        wanted = [self.wanted.get(value, allowed) for value in op.results]
        if needed is None or not all(dims <= allowed for dims in wanted):
            return False
        for value, along in zip(op.operands, needed, strict=True):
            owner = value.owner
            if along is None and owner in repeated:
                continue  # the original is read
            if isinstance(owner, Operation) and self.dims.get(owner, along) != along:
                return False
        self.dims[op] = dim
        self.needs[op] = needed
        self.queue.append(op)
        for value, along in zip(op.operands, needed, strict=True):
            self.wanted.setdefault(value, set()).add(along)
        return True

    def run(self) -> None:
        for op in self.queue:  # grows
            for value, along in zip(op.operands, self.needs[op], strict=True):
                if along is not None and isinstance(value.owner, Operation):
                    self.join(value.owner, along)
            position = self.rules.position
            for value in op.results:
                users = {use.operation for use in value.uses}
                for user in sorted(users, key=lambda user: position[user]):
                    self._join_reader(user, value, self.dims[op])

    def _join_reader(self, user: Operation, value: SSAValue, along: int) -> None:
        """Adds `user` if it can read `value` in tiles along dimension `along`."""
        if user in self.dims or not (
            user in self.window or user in self.rules.repeated
        ):
            return
        if not isinstance(user, TensorOp) or not user.res:
            return
        for dim in range(len(shape_of(user.results[0]))):
            needed = self.rules.needs(user, dim, self.tiles)
            if needed and all(
                need == along
                for operand, need in zip(user.operands, needed, strict=True)
                if operand is value
            ):
                self.join(user, dim)

    def region(self, window: Sequence[Operation]) -> TileableRegion | None:
        position = self.rules.position
        members = sorted(self.dims, key=lambda op: position[op])
        for op in reversed(members):
            is_read = any(use.operation in self.dims for use in op.results[0].uses)
            if op in self.rules.repeated and not is_read:
                del self.dims[op]
        members = [op for op in members if op in self.dims]
        # Every other operation that depends on a member comes after the tiles.
        dependent = {op for op in members if op not in self.rules.repeated}
        others: list[Operation] = []
        for op in window:
            if op not in dependent:
                others.append(op)
                if any(value.owner in dependent for value in op.operands):
                    dependent.add(op)
        for op in members:
            for value, along in zip(op.operands, self.needs[op], strict=True):
                in_one_tile = along is None or value.owner not in self.dims
                if in_one_tile and value.owner in dependent:
                    return None
        overwritten = self.rules.overwritten
        if not self._overwrite_their_parts(members):
            return None
        originals = self._originals(members)
        others = [op for op in others if op not in self.dims or op in originals]
        first = position[next(op for op in members if op not in self.rules.repeated)]
        early = _needed_by(members, self.needs, self.dims, set(others))
        before = [
            op
            for op in others
            if op not in dependent and (op in early or position[op] < first)
        ]
        moved = set(before)
        rest = [op for op in others if op not in moved]
        in_order = [*before, *members, *rest]
        effects = [position[op] for op in in_order if has_effect(op)]
        if effects != sorted(effects):
            return None
        return TileableRegion(
            {op: self.dims[op] for op in members},
            self.needs,
            before,
            rest,
            originals,
            {op: values for op, values in overwritten.items() if op in self.dims},
        )

    def _overwrite_their_parts(self, members: Sequence[Operation]) -> bool:
        """Whether, in the window, the old contents of variables that tiles write are
        read only by the same tile, and not after it writes."""
        place = {op: index for index, op in enumerate(members)}
        for op in members:
            if not isinstance(op, TensorOp):
                continue
            for contents in self.rules.overwritten.get(op, ()):
                for use in contents.uses:
                    user = use.operation
                    if user in place and (
                        self.needs[user][use.index] != self.dims[op]
                        or place[user] > place[op]
                        or user in self.rules.repeated
                    ):
                        return False
                    if user not in place and user in self.window:
                        return False
        return True

    def _originals(self, members: Sequence[Operation]) -> frozenset[Operation]:
        found: set[Operation] = set()
        for op in reversed(members):
            if op in self.rules.repeated and any(
                use.operation not in self.dims
                or use.operation in found
                or self.needs[use.operation][use.index] is None
                for use in op.results[0].uses
            ):
                found.add(op)
        return frozenset(found)


def _needed_by(
    members: Sequence[Operation],
    needs: Mapping[Operation, Needs],
    dims: Mapping[Operation, int],
    others: set[Operation],
) -> set[Operation]:
    """The operations in `others` that members need whole, directly or not."""
    queue = [
        value.owner
        for op in members
        for value, along in zip(op.operands, needs[op], strict=True)
        if along is None or value.owner not in dims
    ]
    found: set[Operation] = set()
    for owner in queue:  # grows
        if isinstance(owner, Operation) and owner in others and owner not in found:
            found.add(owner)
            queue += (value.owner for value in owner.operands)
    return found


def has_effect(op: Operation) -> bool:
    """Whether an operation reads or writes a variable, or has another effect."""
    return (
        isinstance(op, ReadOp)
        or any(isinstance(value.type, VariableType) for value in op.operands)
        or has_side_effect(op)
    )
