"""Finds operations that one loop can compute, a tile in each iteration.

A loop grows from one operation, along one dimension of its result, to what it reads and
to what reads it. Of a tile a member makes a tile of its result, or a part of it: a sum
over the tiled dimension is the sum of what tiles add to it, and is there when the loop
has ended. So the values in between need the memory of one tile.

    forward and backward of a linear layer, by rows of %x:

    %h = dot(%x, %w)         tile        %x sliced, %w needed whole
    %e = exp(%h)             tile
    %l = reduce(%e)          part        sums are carried
    %g = dot(%x^T, %e)       part        both operands sliced

Views, iotas and constants of one number are no members: each tile makes its own. What
members need whole is computed before the loop, so nothing that it depends on can be a
member; what depends on parts comes after.

A window reads rows of the tile before, which are kept, and of the one after. So what
it reads is computed ahead, and what that reads even more so: where rows [4, 8) belong
to a tile, rows [4 + ahead, 8 + ahead) are computed. Windows that would reach further
than one tile are no members.

    %a = relu(%x)                 ahead 2, 2 rows kept
    %b = conv3x3(%a)              ahead 1, 1 row kept
    %c = conv3x3(%b), stride 2    reads one row after those of its tile
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

from xdsl.ir import Block, Operation, SSAValue

from ....dialects.tgraph.base import Shape, TensorOp
from ....dialects.tgraph.shaping import IotaOp
from .dimensions import Needs, is_repeated, needs, shape_of, users
from .ends import wide_end
from .parts import Part, part
from .regions import has_effect
from .windows import Rows, rows_read, scale, window

LEAST_TILES = 3
"""Through windows: the first and the last, which have padding, and one between."""


@dataclass(frozen=True, eq=False)
class TiledLoop:
    """What one loop computes, and how."""

    tiles: int
    members: Sequence[Operation]  # in order
    needs: Mapping[Operation, Needs]  # of the members
    dims: Mapping[Operation, int]  # along which there are tiles of their results
    parts: Mapping[Operation, Part]  # those that combine tiles
    before: Sequence[Operation]  # what else of the block comes before the loop
    after: Sequence[Operation]  # and after it
    sliced: Sequence[SSAValue]  # what it takes tiles of, but for what members make
    ahead: Mapping[Operation, int]  # rows by which members are ahead of their tiles
    kept: Mapping[Operation, int]  # rows that the next tile reads again
    is_peeled: bool  # whether a tile reads rows of others
    sizes: Collection[int] | None
    """That had to be divided into tiles; None where windows were looked at, too."""

    @cached_property
    def outputs(self) -> Sequence[Operation]:
        """The members whose tiles are put together, as others read them."""
        inside = set(self.members)
        return [
            op
            for op in self.dims
            if any(user not in inside for user in users(op.results[0]))
        ]

    def in_tiles(self, tiles: int) -> "TiledLoop | None":
        """The same loop in another number of tiles; None if others could be members."""
        if self.sizes is None or any(
            (size % tiles == 0) != (size % self.tiles == 0) for size in self.sizes
        ):
            return None
        return replace(self, tiles=tiles)


class Needed(dict[tuple[Operation, int], Needs | None]):
    """What a tile of a result needs, by operation and dimension, looked up once.

    As `needs` says, but that the tile of an iota begins where the loop says.
    """

    def __init__(self) -> None:
        self._repeated: dict[Operation, bool] = {}
        self._shapes: dict[SSAValue, Shape] = {}

    def is_repeated(self, op: Operation) -> bool:
        if (known := self._repeated.get(op)) is None:
            known = self._repeated[op] = is_repeated(op)
        return known

    def shape(self, value: SSAValue) -> Shape:
        if (known := self._shapes.get(value)) is None:
            known = self._shapes[value] = shape_of(value)
        return known

    def __missing__(self, key: tuple[Operation, int]) -> Needs | None:
        found: Needs | None = () if isinstance(key[0], IotaOp) else needs(*key)
        if found is None and (moving := window(*key)):
            found = [moving.along, *(None for _ in key[0].operands[1:])]
        self[key] = found
        return found

    def divided(
        self, op: Operation, along: int, divides: Callable[[int], bool]
    ) -> Needs | None:
        """What a tile of a view, iota or number needs; None if it can't be divided so.
        Then the whole of it is sliced."""
        found = self[op, along]
        if found is None or not all(
            dim is None or divides(self.shape(operand)[dim])
            for operand, dim in zip(op.operands, found, strict=True)
        ):
            return None
        return found


class Surroundings:
    """What loops around operations of a block ask of it, looked up once."""

    def __init__(self, block: Block) -> None:
        self.needed = Needed()
        self.ops = list(block.ops)
        self.position = {op: index for index, op in enumerate(self.ops)}
        self.with_ancestors: list[int] = []
        """Of each operation, the set of it and of what it depends on: bits."""
        for index, op in enumerate(self.ops):
            found = 1 << index
            for value in op.operands:
                if (
                    before := self.position.get(cast(Operation, value.owner))
                ) is not None:
                    found |= self.with_ancestors[before]
            self.with_ancestors.append(found)


def tiled_loop(
    around: Surroundings, seed: Operation, dim: int, tiles: int
) -> TiledLoop | None:
    """The largest loop found around an operation; None if it can't be tiled so.

    What the operation needs whole comes before the loop, with all that this depends on.
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


def loop_behind(
    around: Surroundings, stacks: Sequence[SSAValue], tiles: int
) -> TiledLoop | None:
    """The largest loop over rows of results of another loop, which makes a row of each
    for each tile: what comes before that loop, or needs more of it, is no member."""
    growth = _Growth(tiles, around, stacks=stacks)
    for stack in stacks:
        growth.have_readers_join(stack, 0)
    growth.grow()
    return growth.loop()


_Source = tuple[SSAValue, int | None]
"""A value, and along which dimension there are tiles of it."""


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
        """How many rows of an operation's result members read ahead of their tiles."""
        self._joined = 0
        """The set of members."""
        self._earlier = before
        """The set of what members need whole, and what that depends on."""
        self._late: set[Operation] = set()
        """What depends on members, and is none."""
        self.sliced: dict[Operation, set[int]] = {}
        """The dimensions along which members slice what others compute."""
        self.queue: list[Operation] = []
        self._sizes: set[int] = set()
        self._sees_windows = False
        self._traced: dict[tuple[SSAValue, int], Sequence[_Source]] = {}
        self._same_in_all: set[_Source] = set()
        """Views whose tiles are all equal: broadcasts, and along which dimension."""
        if self.source:
            self._joined = self._bit(self.source)
            self._earlier = around.with_ancestors[around.position[self.source]]
            self._earlier &= ~self._joined

    def _shape(self, value: SSAValue) -> Shape:
        return self.needed.shape(value)

    def _divides(self, size: int) -> bool:
        """Whether the tiles are of one size."""
        self._sizes.add(size)
        return size % self.tiles == 0

    def join(self, op: Operation, dim: int) -> bool:
        """Whether tiles of the result can be computed."""
        if op in self.dims:
            return self.dims[op] == dim
        if not self._is_new(op) or not self._divides(self._shape(op.results[0])[dim]):
            return False
        if not self.sliced.get(op, set()) <= {dim}:
            return False
        if not self._can_read(op, self.needed[op, dim], dim):
            return False
        self.dims[op] = dim
        self._add(op)
        return True

    def _add(self, op: Operation) -> None:
        self._joined |= self._bit(op)
        self.queue.append(op)

    def grow(self) -> None:
        for op in self.queue:  # grows
            for source, dim in self._sources_of(op):
                if dim is not None and isinstance(source.owner, Operation):
                    self.join(source.owner, dim)
            if op in self.dims:
                self.have_readers_join(op.results[0], self.dims[op])

    def have_readers_join(self, value: SSAValue, dim: int) -> None:
        tiled = [(value, dim)]
        for value, dim in tiled:  # grows by views
            for use in value.uses:
                user = use.operation
                if not isinstance(user, TensorOp) or len(user.res) != 1:
                    continue
                found = [
                    result
                    for result, size in enumerate(self._shape(user.result))
                    if (needed := self.needed[user, result])
                    and needed[use.index] == dim
                    and self._divides(size)
                ]
                if self.needed.is_repeated(user):
                    tiled += ((user.result, result) for result in found)
                elif not any(self.join(user, result) for result in found):
                    self._join_part(user, use.index, dim)

    def _bit(self, op: Operation) -> int:
        return 1 << self.around.position[op]

    def _join_part(self, op: Operation, operand: int, dim: int) -> None:
        if self._is_new(op) and (found := part(op, operand, dim)):
            if self._can_read(op, found.needs, None):
                self.parts[op] = found
                self._add(op)

    def _is_new(self, op: Operation) -> bool:
        """Whether an operation may join."""
        return (
            isinstance(op, TensorOp)
            and len(op.res) == 1
            and not op.outs
            and not op.regions
            and not self.needed.is_repeated(op)
            and not self._earlier & self._bit(op)
            and op not in self.parts
        )

    def _can_read(self, op: Operation, needed: Needs | None, dim: int | None) -> bool:
        """Whether operands are there when a tile needs them; remembers which have to
        be there as a whole, and which ahead.

        dim: of the result, along which there are tiles.
        """
        if needed is None:
            return False
        earlier = 0
        sliced: list[tuple[Operation, int]] = []
        for value, along in zip(op.operands, needed, strict=True):
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
        if earlier & (self._joined | self._bit(op)):
            return False
        if not self._move_ahead(op, needed, dim):
            return False
        self._earlier |= earlier
        for owner, tiled in sliced:
            self.sliced.setdefault(owner, set()).add(tiled)
        return True

    def _move_ahead(self, op: Operation, needed: Needs, dim: int | None) -> bool:
        """Has members compute what a new one's windows read; whether these stay within
        the tiles before and after."""
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
        """What a member reads tiles of: the rows that a tile has, and those that are
        read, counted from its first; None if views mix rows."""
        for value, along in zip(op.operands, needed, strict=True):
            if along is None:
                continue
            for source, tiled in self._sources(value, along):
                if (value, along) in self._same_in_all:
                    continue
                read = self._shape(value)[along]
                size = read if tiled is None else self._shape(source)[tiled]
                rows = tile = 0, read // self.tiles
                if dim is not None:
                    end = ahead + self._shape(op.results[0])[dim] // self.tiles
                    rows = rows_read(op, dim, (ahead, end))
                is_exact = all(row * size % read == 0 for row in rows)
                is_known = rows == tile or (is_exact and tiled is not None)
                scaled = scale(rows, read, size) if is_known else None
                yield source, size // self.tiles, scaled

    def _sources(self, value: SSAValue, along: int | None) -> Sequence[_Source]:
        """The value that a tile of a value, or all of it, is made of: what a view is
        of, and along which dimension; nothing for an iota or a number."""
        if along is None:
            return ((value, None),)
        if (known := self._traced.get((value, along))) is None:
            known = self._traced[value, along] = self._trace(value, along)
        return known

    def _trace(self, value: SSAValue, along: int | None) -> Sequence[_Source]:
        begun = value, along
        while along is not None and isinstance(op := value.owner, Operation):
            if not self.needed.is_repeated(op):
                break
            needed = self.needed.divided(op, along, self._divides)
            if needed == ():
                return ()
            if needed is None:
                along = None
            else:
                (value,), (along,) = op.operands, needed
                if along is None:
                    self._same_in_all.add(begun)
        return ((value, along),)

    def loop(self) -> TiledLoop | None:
        """The loop of all that joined but what would have to come after it."""
        ops, position = self.around.ops, self.around.position
        late, early, members = set[Operation](), set[Operation](), list[Operation]()
        inside = set[Operation | Block]({self.source} if self.source else ())
        sliced: dict[SSAValue, None] = {}
        for op in ops:
            if op is self.source:
                continue
            joined = op in self.dims or op in self.parts
            sources = list(self._sources_of(op)) if joined else []
            if joined and not any(
                value.owner in late
                or (
                    value.owner in inside and (dim is None or value.owner in self.parts)
                )
                for value, dim in sources
            ):
                members.append(op)
                inside.add(op)
                for value, dim in sources:
                    if isinstance(value.owner, Operation):
                        early.add(value.owner)
                    if dim is not None and value.owner not in inside:
                        sliced[value] = None
            elif any(v.owner in inside or v.owner in late for v in op.operands):
                late.add(op)
        self._late = late
        if not members:
            return None
        first = position[members[0]]
        before: list[Operation] = []
        for op in reversed(ops):
            if (op in inside and op is not self.source) or op in late:
                continue
            if op in early or position[op] < first:
                before.append(op)
                early.update(
                    v.owner for v in op.operands if isinstance(v.owner, Operation)
                )
        moved = {*before, *members}
        kept, is_peeled = self._kept(members)
        loop = TiledLoop(
            self.tiles,
            members,
            {op: self._needs(op) for op in members},
            {op: self.dims[op] for op in members if op in self.dims},
            {op: self.parts[op] for op in members if op in self.parts},
            before[::-1],
            [op for op in ops if op not in moved],
            list(sliced),
            {op: self.ahead.get(op, 0) for op in members},
            kept,
            is_peeled,
            None if self._sees_windows else self._sizes,
        )
        return loop if _keeps_effects(loop, position) else None

    def narrowed(self, loop: TiledLoop, seed: Operation) -> TiledLoop:
        """The loop without elementwise members at its ends that only widen what is
        stored, if it keeps the seed."""
        while chain := wide_end(set(loop.members), loop.sliced, loop.outputs):
            if seed in chain:
                break
            for op in chain:
                del self.dims[op]
            if (found := self.loop()) is None or seed not in found.members:
                break
            loop = found
        return loop

    def needed_before(self, op: Operation) -> int:
        """The set of what has to come before a loop with an operation that joined, but
        that would come after the loop; empty if it would not."""
        found = 0
        queue = [op] if op in self._late else []
        seen = set(queue)
        for op in queue:  # grows
            for value, dim in self._sources_of(op):
                owner = value.owner
                if not isinstance(owner, Operation):
                    continue
                if dim is None or (owner in self._late and owner not in self.dims):
                    found |= self.around.with_ancestors[self.around.position[owner]]
                elif owner in self._late and owner not in seen:
                    seen.add(owner)
                    queue.append(owner)
        return found

    def _kept(
        self, members: Sequence[Operation]
    ) -> tuple[Mapping[Operation, int], bool]:
        """The rows of members that the next tile reads again, and whether rows of other
        tiles are read at all."""
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
        """What a member needs of each of its operands."""
        if op in self.parts:
            return self.parts[op].needs
        found = self.needed[op, self.dims[op]]
        assert found is not None
        return found

    def _sources_of(self, op: Operation) -> Iterator[_Source]:
        """What a member reads, and along which dimension it is sliced."""
        for value, along in zip(op.operands, self._needs(op), strict=True):
            yield from self._sources(value, along)


def _keeps_effects(loop: TiledLoop, position: Mapping[Operation, int]) -> bool:
    """Whether variables are still read and written in the same order."""
    effects = [position[op] for op in (*loop.before, *loop.after) if has_effect(op)]
    return effects == sorted(effects)
