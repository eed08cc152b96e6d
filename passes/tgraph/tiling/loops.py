"""Finds operations that one loop can compute, a tile in each iteration.

A loop grows from one operation, along one dimension of its result, to the operations
that define its operands or read its results. From a tile of its operands, a member
computes a tile of its result, or a part: a sum over the tiled dimension is the sum of
the tiles' parts, and is complete when the loop has ended. Values inside the loop thus
need the memory of one tile.

    forward and backward of a linear layer, by rows of %x:

    %h = dot(%x, %w)         tile        %x sliced, %w needed whole
    %e = exp(%h)             tile
    %l = reduce(%e)          part        sums are carried
    %g = dot(%x^T, %e)       part        both operands sliced

Views, iotas, constants of one number and padding for windows are not members: each tile
makes its own. Values that members need whole are computed before the loop, so no
operation that they depend on can be a member. Operations that depend on parts come
after the loop.

A window reads rows of the previous tile, which are kept, and of the next one. Its
operand is therefore computed ahead, and that one's operand further ahead: when rows
[4, 8) belong to a tile, rows [4 + ahead, 8 + ahead) are computed. Windows that reach
further than one tile are not members.

    %a = relu(%x)                 ahead 2, 2 rows kept
    %b = conv3x3(%a)              ahead 1, 1 row kept
    %c = conv3x3(%b), stride 2    reads one row after those of its tile
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

from xdsl.ir import Block, Operation, SSAValue

from ....dialects.contents import operands_of
from ....dialects.tgraph.base import Shape, TensorOp, value_bytes
from ....dialects.tgraph.bodies import ElementsOp
from ....dialects.tgraph.shaping import ConstantOp, IotaOp, PadOp
from ....dialects.tgraph.structure import ReadOp
from .combining import Part, part
from .dimensions import Needs, needs, shape_of
from .regions import has_effect
from .updates import Read, is_in_result_memory, late_update, updates
from .widening_chains import widening_chain
from .windows import Rows, Window, is_padding, is_remade, padded, scale, users, window

LEAST_TILES = 3
"""The fewest tiles of a loop through windows: the first and the last one, which have
padding, and one between."""


@dataclass(frozen=True, eq=False)
class TiledLoop:
    """The operations that one loop computes, and how."""

    tiles: int
    members: Sequence[Operation]  # in order
    needs: Mapping[Operation, Needs]  # of the members
    dims: Mapping[Operation, int]  # along which the members' results are tiled
    parts: Mapping[Operation, Part]  # of members that combine tiles
    before: Sequence[Operation]  # other operations that come before the loop
    after: Sequence[Operation]  # other operations that come after the loop
    padding: Sequence[Operation]  # pads that only tiles make
    read: Read  # values from outside
    ahead: Mapping[Operation, int]  # rows by which members are ahead of their tiles
    kept: Mapping[Operation, int]  # rows that the next tile reads again
    is_peeled: bool  # whether a tile reads rows of other tiles
    sizes: Collection[int] | None
    """The sizes that were tested for divisibility; None if windows mattered, too."""

    @cached_property
    def outputs(self) -> Sequence[SSAValue]:
        """The results that the loop assembles from tiles for operations outside."""
        inside = set(self.members)
        return [
            value
            for op in self.dims
            for value in op.results
            if any(user not in inside for user in users(value))
        ]

    @cached_property
    def sliced(self) -> Sequence[SSAValue]:
        """The values from outside of which the loop takes tiles."""
        return [value for value, dims in self.read.items() if {*dims} != {None}]

    @cached_property
    def updates(self) -> Mapping[SSAValue, SSAValue]:
        """By output, the value from outside whose rows its tiles replace."""
        if self.is_peeled:  # tiles read rows of others
            return {}
        outputs = {value: self.dim(value) for value in self.outputs}
        return updates(outputs, self.read, self.after)

    def stores(self, value: SSAValue) -> bool:
        """Whether `value`, which is available after the loop, takes memory that the
        block is not given for it: that of a result or a variable."""
        return not is_in_result_memory(value) and not (
            value in self.updates and isinstance(self.updates[value].owner, ReadOp)
        )

    def dim(self, value: SSAValue) -> int:
        """The dimension along which `value`, a member's result, is tiled."""
        return self.dims[cast(Operation, value.owner)]

    @property
    def carried(self) -> Sequence[SSAValue]:
        """The members' results that are available after the loop."""
        return [*self.outputs, *(op.results[0] for op in self.parts)]

    def in_tiles(self, tiles: int) -> "TiledLoop | None":
        """This loop with `tiles` tiles; None if it might then have other members."""
        if self.sizes is None or any(
            (size % tiles == 0) != (size % self.tiles == 0) for size in self.sizes
        ):
            return None
        return replace(self, tiles=tiles)


class Needed(dict[tuple[Operation, int], Needs | None]):
    """The slices that a tile of a result needs, by operation and dimension, cached.

    Extends `needs` to windows, to their padding, and to iotas along their dimension,
    whose tiles begin where the loop says.
    """

    def __init__(self) -> None:
        self._remade: dict[Operation, bool] = {}
        self._rows: dict[tuple[SSAValue, int], int] = {}
        self._windows: dict[tuple[Operation, int], Window | None] = {}
        self._shapes: dict[SSAValue, Shape] = {}
        self._tiled_with: dict[
            tuple[Operation, int], Sequence[tuple[int, int, int | None]]
        ] = {}

    def is_remade(self, op: Operation) -> bool:
        if (known := self._remade.get(op)) is None:
            known = self._remade[op] = is_remade(op)
        return known

    def shape(self, value: SSAValue) -> Shape:
        if (known := self._shapes.get(value)) is None:
            known = self._shapes[value] = shape_of(value)
        return known

    def rows(self, value: SSAValue, dim: int) -> int:
        """The size of `value` along `dim` without padding for windows, which is what
        tiles divide."""
        if (known := self._rows.get((value, dim))) is None:
            known = self.shape(value)[dim] - sum(padded(value, dim))
            self._rows[value, dim] = known
        return known

    def window(self, op: Operation, dim: int) -> Window | None:
        if (op, dim) not in self._windows:
            self._windows[op, dim] = window(op, dim)
        return self._windows[op, dim]

    def __missing__(self, key: tuple[Operation, int]) -> Needs | None:
        found: Needs | None = () if isinstance(key[0], IotaOp) else needs(*key)
        if found is None and (moving := self.window(*key)):
            found = [moving.along, *(None for _ in key[0].operands[1:])]
        if found is None and is_padding(key[0]):
            found = [key[1], None]
        self[key] = found
        return found

    def tiled_with(
        self, op: Operation, operand: int
    ) -> Sequence[tuple[int, int, int | None]]:
        """For each dimension along which the results of `op` can be tiled: the
        dimension, its size, and the dimension along which `operand` is then sliced."""
        if (known := self._tiled_with.get((op, operand))) is None:
            is_known = isinstance(op, TensorOp) and op.res
            sizes = self.shape(op.results[0]) if is_known else ()
            known = self._tiled_with[op, operand] = [
                (dim, self.rows(op.results[0], dim), needed[operand])
                for dim in range(len(sizes))
                if (needed := self[op, dim])
            ]
        return known

    def divided(
        self, op: Operation, along: int, divides: Callable[[int], bool]
    ) -> Needs | None:
        """The slices that a tile of a view, iota or number needs. None if it cannot be
        divided in this way; its result is then computed whole and sliced."""
        found = self[op, along]
        if found is None or not all(
            dim is None or divides(self.rows(operand, dim))
            for operand, dim in zip(op.operands, found, strict=True)
        ):
            return None
        return found


class Surroundings:
    """Cached facts about a block that all searches for loops in it need. A set of its
    operations is an integer with a bit for each position."""

    def __init__(
        self, block: Block, behind: Mapping[Operation, Sequence[SSAValue]] | None = None
    ) -> None:
        """`behind`: the values that an operation must follow without reading them."""
        self.needed = Needed()
        self.ops = list(block.ops)
        self.position = {op: index for index, op in enumerate(self.ops)}
        self.read: list[int] = []
        """For each operation, the set of those that define values that it reads, or
        that it has in `behind`."""
        self.with_ancestors: list[int] = []
        """For each operation, the set of it and of all that it depends on."""
        self.behind: list[int] = []
        """For each operation, the set of those that define its values in `behind`."""
        for index, op in enumerate(self.ops):
            behind_op = self._makers((behind or {}).get(op, ()))
            read = self._makers(operands_of(op)) | behind_op
            found, left = 1 << index, read
            while left:
                found |= self.with_ancestors[left.bit_length() - 1]
                left &= ~(1 << (left.bit_length() - 1))
            self.read.append(read)
            self.behind.append(behind_op)
            self.with_ancestors.append(found)
        self.padding = [op for op in self.ops if is_padding(op)]
        self._may_join: dict[Operation, bool] = {}

    @cached_property
    def effects(self) -> Collection[Operation]:
        """The operations that read or write variables, or have other effects."""
        return frozenset(filter(has_effect, self.ops))

    def _makers(self, values: Iterable[SSAValue]) -> int:
        """The set of operations that define `values`."""
        made = 0
        for value in values:
            made |= self.bit(value.owner)
        return made

    def bit(self, op: Operation | Block) -> int:
        """The set that has only `op`; empty if `op` is not in the block."""
        index = self.position.get(cast(Operation, op))
        return 0 if index is None else 1 << index

    def may_join(self, op: Operation) -> bool:
        """Whether tiles of `op` can be computed from tiles of its operands."""
        if (known := self._may_join.get(op)) is None:
            known = self._may_join[op] = (
                isinstance(op, TensorOp)
                and len(op.res) > 0
                and not op.outs
                and (not op.regions or isinstance(op, ElementsOp))
                and not self.needed.is_remade(op)
            )
        return known


def tiled_loop(
    around: Surroundings, seed: Operation, dim: int, tiles: int
) -> TiledLoop | None:
    """The largest loop found that contains `seed`, tiled along `dim`; None if there is
    none.

    Operands that `seed` needs whole come before the loop, with all that they depend on.
    So the loop of a U-Net's last level, which reads the level below whole, does not
    begin with the first level.
    """
    before = 0
    while True:
        growth = _Growth(tiles, around, before)
        if not growth.join(seed, dim):
            return None
        growth.grow()
        loop = growth.loop()
        if loop and seed in loop.members:
            return growth.narrowed(loop, seed)
        more = growth.needed_before(seed) & ~before
        if not more:
            return None
        before |= more


def loop_over_stacks(
    around: Surroundings, stacks: Sequence[SSAValue], tiles: int
) -> TiledLoop | None:
    """The largest loop over rows of `stacks`, which are results of another loop that
    computes a row of each per iteration. An operation that comes before the other loop,
    or needs more than rows of the stacks, is not a member."""
    growth = _Growth(tiles, around, stacks=stacks)
    for stack in stacks:
        growth.have_readers_join(stack, 0)
    growth.grow()
    return growth.loop()


_Source = tuple[SSAValue, int | None]
"""A value, and the dimension along which it is tiled; None for all of it."""


class _Growth:
    def __init__(
        self,
        tiles: int,
        around: Surroundings,
        before: int = 0,
        stacks: Sequence[SSAValue] = (),
    ):
        self.tiles = tiles
        self.around = around
        self.stacks = stacks
        self.source = cast(Operation, stacks[0].owner) if stacks else None
        self.needed = around.needed
        self.dims: dict[Operation, int] = {}
        self.parts: dict[Operation, Part] = {}
        self.ahead: dict[Operation, int] = {}
        """By operation, how many rows of it members read ahead of their tiles."""
        self._joined = 0
        """The set of members."""
        self._earlier = before
        """The set of operations that members need whole, and of their ancestors."""
        self._late = 0
        """The set of operations that depend on members but are not members."""
        self.sliced: dict[Operation, set[int]] = {}
        """By operation, the dimensions along which members slice its results."""
        self.queue: list[Operation] = []
        self._sizes: set[int] = set()
        self._sees_windows = False
        self._read: dict[Operation, Sequence[_Source]] = {}
        self._traced: dict[tuple[SSAValue, int], Sequence[_Source]] = {}
        self._same_in_all: set[_Source] = set()
        """Views, with the tiled dimension, whose tiles are all equal: broadcasts."""
        if self.source:
            self._joined = self.around.bit(self.source)
            self._earlier = around.with_ancestors[around.position[self.source]]
            self._earlier &= ~self._joined

    def _shape(self, value: SSAValue) -> Shape:
        return self.needed.shape(value)

    def _divides(self, size: int) -> bool:
        """Whether `size` can be divided into equal tiles."""
        self._sizes.add(size)
        return size % self.tiles == 0

    def join(self, op: Operation, dim: int) -> bool:
        """Adds `op` as a member tiled along `dim`, if its tiles can be computed.
        Returns whether it is such a member."""
        if op in self.dims:
            return self.dims[op] == dim
        if not self._is_new(op) or (needed := self.needed[op, dim]) is None:
            return False
        if not self._divides(self._shape(op.results[0])[dim]):
            return False
        if not self.sliced.get(op, set()) <= {dim}:
            return False
        if not self._can_read(op, needed, dim):
            return False
        self.dims[op] = dim
        self._add(op)
        return True

    def _add(self, op: Operation) -> None:
        self._joined |= self.around.bit(op)
        self.queue.append(op)

    def grow(self) -> None:
        """Adds sources and readers of members. A source that joins may keep others from
        joining, so the largest sources, whose tiles save the most bytes, come first."""

        def size(source: _Source) -> int:
            return value_bytes(source[0])

        for op in self.queue:  # grows
            for source, dim in sorted(self._sources_of(op), key=size, reverse=True):
                if dim is not None and isinstance(source.owner, Operation):
                    self.join(source.owner, dim)
            if op in self.dims:
                for value in op.results:
                    self.have_readers_join(value, self.dims[op])

    def have_readers_join(self, value: SSAValue, dim: int) -> None:
        tiled = [(value, dim)]
        for value, dim in tiled:  # grows by views
            for use in value.uses:
                user = use.operation
                found = [
                    result
                    for result, size, along in self.needed.tiled_with(user, use.index)
                    if along == dim and self._divides(size)
                ]
                if self.needed.is_remade(user):
                    tiled += ((user.results[0], result) for result in found)
                elif not any(self.join(user, result) for result in found):
                    self._join_part(user, use.index, dim)

    def _join_part(self, op: Operation, operand: int, dim: int) -> None:
        if self._is_new(op) and (found := part(op, operand, dim)):
            if self._can_read(op, found.needs, None):
                self.parts[op] = found
                self._add(op)

    def _is_new(self, op: Operation) -> bool:
        """Whether `op` may join as a new member."""
        return (
            self.around.may_join(op)
            and not self._earlier & self.around.bit(op)
            and op not in self.parts
        )

    def _can_read(self, op: Operation, needed: Needs | None, dim: int | None) -> bool:
        """Whether the operands are available when a tile needs them. Records which
        operands are needed whole, and which ahead of their tiles.

        dim: the dimension along which the result is tiled, if it is.
        """
        if needed is None:
            return False
        earlier = 0
        sliced: list[tuple[Operation, int]] = []
        for value, along in zip(operands_of(op), needed, strict=True):
            for source, tiled in self._sources(value, along):
                owner = source.owner
                if not isinstance(owner, Operation):
                    continue
                if owner is self.source:
                    if source not in self.stacks or tiled != 0:
                        return False
                    continue
                if owner in self.parts or self.dims.get(owner, tiled) != tiled:
                    return False
                if tiled is None:
                    earlier |= self.around.with_ancestors[self.around.position[owner]]
                elif not self._divides(self._shape(source)[tiled]):
                    return False
                else:
                    sliced.append((owner, tiled))
        if earlier & (self._joined | self.around.bit(op)):
            return False
        if not self._move_ahead(op, needed, dim):
            return False
        self._earlier |= earlier
        for owner, tiled in sliced:
            self.sliced.setdefault(owner, set()).add(tiled)
        return True

    def _move_ahead(self, op: Operation, needed: Needs, dim: int | None) -> bool:
        """Has members compute ahead the rows that the windows of a new member read.
        Returns whether all windows stay within the previous and the next tile."""
        ahead: dict[Operation, int] = {}
        queue = [(op, needed, dim)]
        for op, needed, dim in queue:  # grows
            by = ahead.get(op, self.ahead.get(op, 0))
            for source, size, rows in self._rows(op, needed, dim, by):
                self._sees_windows |= rows != (0, size)
                if rows is None or not (-size <= rows[0] and rows[1] < 2 * size):
                    return False
                if rows != (0, size) and self.tiles < LEAST_TILES:
                    return False
                owner, more = source.owner, rows[1] - size
                if not isinstance(owner, Operation):
                    continue
                if more > ahead.get(owner, self.ahead.get(owner, 0)):
                    ahead[owner] = more
                    if owner in self.dims:
                        along = self.dims[owner]
                        queue.append((owner, self._needs(owner), along))
        self.ahead |= ahead
        return True

    def _rows(
        self, op: Operation, needed: Needs, dim: int | None, ahead: int
    ) -> Iterator[tuple[SSAValue, int, Rows | None]]:
        """Yields each value that a member reads in tiles, the number of rows that a
        tile of it has, and the rows that are read, counted from the tile's first row;
        None if views mix rows."""
        for value, along in zip(operands_of(op), needed, strict=True):
            if along is None:
                continue
            for source, tiled in self._sources(value, along):
                if (value, along) in self._same_in_all or not self._shape(source):
                    continue
                read = self.needed.rows(value, along)
                size = read if tiled is None else self._shape(source)[tiled]
                rows = tile = 0, read // self.tiles
                if dim is not None:
                    end = ahead + self._shape(op.results[0])[dim] // self.tiles
                    moving = self.needed.window(op, dim)
                    rows = moving.read((ahead, end)) if moving else (ahead, end)
                is_exact = all(row * size % read == 0 for row in rows)
                is_known = rows == tile or (is_exact and tiled is not None)
                scaled = scale(rows, read, size) if is_known else None
                yield source, size // self.tiles, scaled

    def _sources(self, value: SSAValue, along: int | None) -> Sequence[_Source]:
        """The values from which a tile of `value`, or all of it if `along` is None, is
        made through views, with their tiled dimensions; none for an iota or a number.
        Includes the numbers by which pads extend it."""
        if along is None:
            return ((value, None),)
        if (known := self._traced.get((value, along))) is None:
            known = self._traced[value, along] = self._trace(value, along)
        return known

    def _trace(self, value: SSAValue, along: int | None) -> Sequence[_Source]:
        begun = value, along
        numbers: list[_Source] = []  # that pads add
        while along is not None and isinstance(op := value.owner, Operation):
            if not self.needed.is_remade(op):
                break
            needed = self.needed.divided(op, along, self._divides)
            if needed == ():
                return numbers
            if isinstance(op, PadOp) and not isinstance(op.inputs[1].owner, ConstantOp):
                numbers.append((op.inputs[1], None))
            if needed is None:
                along = None
            else:
                value, along = op.operands[0], needed[0]
                if along is None:
                    self._same_in_all.add(begun)
        return [(value, along), *numbers]

    def loop(self) -> TiledLoop | None:
        """The loop of all operations that joined, without those that would have to come
        after it; None if it has no members."""
        around = self.around
        ops, position = around.ops, around.position
        source = around.bit(self.source) if self.source else 0
        inside, late, early, whole = source, 0, 0, 0
        members: list[Operation] = []
        read: dict[SSAValue, set[int | None]] = {}
        for index, op in enumerate(ops):
            bit = 1 << index
            if bit == source:
                continue
            if op in self.dims or op in self.parts:
                sources = [
                    (value, dim, around.bit(value.owner))
                    for value, dim in self._sources_of(op)
                ]
                if not around.behind[index] & (inside | late) and not any(
                    late & maker
                    or (inside & maker and (dim is None or value.owner in self.parts))
                    for value, dim, maker in sources
                ):
                    members.append(op)
                    inside |= bit
                    for value, dim, maker in sources:
                        early |= maker
                        if dim is None and maker:
                            whole |= around.with_ancestors[maker.bit_length() - 1]
                        if not inside & maker:
                            read.setdefault(value, set()).add(dim)
                    continue
            if around.read[index] & (inside | late):
                late |= bit
        self._late = late
        if not members:
            return None
        first = position[members[0]]
        padding = [
            op
            for op in around.padding
            if not whole & around.bit(op)
            and all(inside & around.bit(user) for user in users(op.results[0]))
        ]
        remade = sum(map(around.bit, padding))
        before: list[Operation] = []
        for index in range(len(ops) - 1, -1, -1):
            bit = 1 << index
            if (inside & ~source | late | remade) & bit:
                continue
            if early & bit or index < first:
                before.append(ops[index])
                early |= around.read[index]
        moved = {*before, *members, *padding}
        kept, is_peeled = self._kept(members)
        loop = TiledLoop(
            self.tiles,
            members,
            {op: self._needs(op) for op in members},
            {op: self.dims[op] for op in members if op in self.dims},
            {op: self.parts[op] for op in members if op in self.parts},
            before[::-1],
            [op for op in ops if op not in moved],
            padding,
            read,
            {op: self.ahead.get(op, 0) for op in members},
            kept,
            is_peeled,
            None if self._sees_windows else self._sizes,
        )
        return loop if self._keeps_effects(loop) else None

    def _keeps_effects(self, loop: TiledLoop) -> bool:
        """Whether variables are still read and written in the same order."""
        around = self.around
        outside = (*loop.before, *loop.after) if around.effects else ()
        order = [around.position[op] for op in outside if op in around.effects]
        return order == sorted(order)

    def narrowed(self, loop: TiledLoop, seed: Operation) -> TiledLoop:
        """The loop without elementwise members at its start and end that only widen
        stored values, or that update a value in place after the loop, as long as it
        contains `seed`."""
        while True:
            members = set(loop.members)
            chain = widening_chain(members, loop.sliced, loop.outputs) or late_update(
                loop.outputs, members, loop.read, loop.after
            )
            if not chain or seed in chain:
                break
            for op in chain:
                del self.dims[op]
            if (found := self.loop()) is None or seed not in found.members:
                break
            loop = found
        return loop

    def needed_before(self, op: Operation) -> int:
        """The set of operations that must come before the loop so that it can contain
        `op`, which joined but would come after it; empty if `op` would not."""
        around, found = self.around, 0
        queue = [op] if self._late & around.bit(op) else []
        seen = set(queue)
        for op in queue:  # grows
            for value, dim in self._sources_of(op):
                owner = value.owner
                if not isinstance(owner, Operation):
                    continue
                is_late = self._late & around.bit(owner)
                if dim is None or (is_late and owner not in self.dims):
                    found |= around.with_ancestors[around.position[owner]]
                elif is_late and owner not in seen:
                    seen.add(owner)
                    queue.append(owner)
        return found

    def _kept(
        self, members: Sequence[Operation]
    ) -> tuple[Mapping[Operation, int], bool]:
        """The number of rows of each member that the next tile reads again, and whether
        any tile reads rows of other tiles."""
        ahead = {op: self.ahead.get(op, 0) for op in members}
        behind, is_peeled = dict(ahead), False
        for op in members:
            needed, dim = self._needs(op), self.dims.get(op)
            for value, size, rows in self._rows(op, needed, dim, ahead[op]):
                assert rows is not None
                is_peeled |= rows != (0, size)
                if isinstance(owner := value.owner, Operation) and owner in behind:
                    behind[owner] = min(behind[owner], rows[0])
        return {op: n for op in members if (n := ahead[op] - behind[op])}, is_peeled

    def _needs(self, op: Operation) -> Needs:
        """The slices of its operands that a member needs."""
        if op in self.parts:
            return self.parts[op].needs
        found = self.needed[op, self.dims[op]]
        assert found is not None
        return found

    def _sources_of(self, op: Operation) -> Sequence[_Source]:
        """The values that a member reads, behind views, and how they are sliced."""
        if (known := self._read.get(op)) is None:
            known = self._read[op] = [
                source
                for value, along in zip(operands_of(op), self._needs(op), strict=True)
                for source in self._sources(value, along)
            ]
        return known
