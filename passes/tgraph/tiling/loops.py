"""Operations that one loop can compute, a tile in each iteration.

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
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir import Block, Operation, SSAValue

from ....dialects.tgraph.base import TensorOp
from ....dialects.tgraph.shaping import IotaOp
from .dimensions import Needs, is_repeated, needs, shape_of
from .parts import Part, part
from .regions import has_effect


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

    @cached_property
    def outputs(self) -> Sequence[Operation]:
        """The members whose tiles are put together, as others read them."""
        inside = set(self.members)
        return [
            op
            for op in self.dims
            if any(user not in inside for user in users(op.results[0]))
        ]


class Needed(dict[tuple[Operation, int], Needs | None]):
    """What a tile of a result needs, by operation and dimension, looked up once.

    As `needs` says, but that the tile of an iota begins where the loop says.
    """

    def __missing__(self, key: tuple[Operation, int]) -> Needs | None:
        found = () if isinstance(key[0], IotaOp) else needs(*key)
        self[key] = found
        return found

    def divided(self, op: Operation, along: int, tiles: int) -> Needs | None:
        """What a tile of a view, iota or number needs; None if it can't be divided so.
        Then the whole of it is sliced."""
        found = self[op, along]
        if found is None or any(
            dim is not None and shape_of(operand)[dim] % tiles
            for operand, dim in zip(op.operands, found, strict=True)
        ):
            return None
        return found


def tiled_loop(
    block: Block, seed: Operation, dim: int, tiles: int, needed: Needed
) -> TiledLoop | None:
    """The largest loop found around an operation; None if it can't be tiled so."""
    growth = _Growth(tiles, needed)
    if not growth.join(seed, dim):
        return None
    growth.grow()
    return growth.loop(list(block.ops), seed)


class _Growth:
    def __init__(self, tiles: int, needed: Needed):
        self.tiles = tiles
        self.needed = needed
        self.dims: dict[Operation, int] = {}
        self.parts: dict[Operation, Part] = {}
        self.earlier: set[Operation] = set()
        """What members need whole, and what that depends on."""
        self.queue: list[Operation] = []

    def join(self, op: Operation, dim: int) -> bool:
        """Whether tiles of the result can be computed."""
        if op in self.dims:
            return self.dims[op] == dim
        if not self._is_new(op) or shape_of(op.results[0])[dim] % self.tiles:
            return False
        if not self._can_read(op, self.needed[op, dim]):
            return False
        self.dims[op] = dim
        self.queue.append(op)
        return True

    def grow(self) -> None:
        for op in self.queue:  # grows
            for source, dim in self._sources_of(op):
                if dim is not None and isinstance(source.owner, Operation):
                    self.join(source.owner, dim)
            if op in self.dims:
                self._have_readers_join(op.results[0], self.dims[op])

    def _have_readers_join(self, value: SSAValue, dim: int) -> None:
        tiled = [(value, dim)]
        for value, dim in tiled:  # grows by views
            for use in value.uses:
                user = use.operation
                if not isinstance(user, TensorOp) or len(user.res) != 1:
                    continue
                found = [
                    result
                    for result, size in enumerate(shape_of(user.result))
                    if size % self.tiles == 0
                    and (needed := self.needed[user, result])
                    and needed[use.index] == dim
                ]
                if is_repeated(user):
                    tiled += ((user.result, result) for result in found)
                elif not any(self.join(user, result) for result in found):
                    self._join_part(user, use.index, dim)

    def _join_part(self, op: Operation, operand: int, dim: int) -> None:
        if self._is_new(op) and (found := part(op, operand, dim)):
            if self._can_read(op, found.needs):
                self.parts[op] = found
                self.queue.append(op)

    def _is_new(self, op: Operation) -> bool:
        """Whether an operation may join."""
        return (
            isinstance(op, TensorOp)
            and len(op.res) == 1
            and not op.outs
            and not op.regions
            and not is_repeated(op)
            and op not in self.earlier
            and op not in self.parts
        )

    def _can_read(self, op: Operation, needed: Needs | None) -> bool:
        """Whether operands are there when a tile needs them; remembers which have to
        be there as a whole."""
        if needed is None:
            return False
        whole: list[Operation] = []
        for value, along in zip(op.operands, needed, strict=True):
            for source, dim in self._sources(value, along):
                owner = source.owner
                if not isinstance(owner, Operation):
                    continue
                if owner in self.parts or self.dims.get(owner, dim) != dim:
                    return False
                if dim is None:
                    whole.append(owner)
                elif shape_of(source)[dim] % self.tiles:
                    return False
        earlier = set[Operation]()
        for owner in whole:  # grows
            if owner in self.dims or owner in self.parts:
                return False
            if owner not in self.earlier and owner not in earlier:
                earlier.add(owner)
                whole += (
                    v.owner for v in owner.operands if isinstance(v.owner, Operation)
                )
        if op in earlier:
            return False
        self.earlier |= earlier
        return True

    def _sources(
        self, value: SSAValue, along: int | None
    ) -> Iterator[tuple[SSAValue, int | None]]:
        """The value that a tile of a value, or all of it, is made of: what a view is
        of, and along which dimension; nothing for an iota or a number."""
        while along is not None and isinstance(op := value.owner, Operation):
            if not is_repeated(op):
                break
            needed = self.needed.divided(op, along, self.tiles)
            if needed == ():
                return
            if needed is None:
                along = None
            else:
                (value,), (along,) = op.operands, needed
        yield value, along

    def loop(self, ops: Sequence[Operation], seed: Operation) -> TiledLoop | None:
        """The loop of all that joined but what would have to come after it."""
        late, early, members = set[Operation](), set[Operation](), list[Operation]()
        inside = set[Operation | Block]()
        sliced: dict[SSAValue, None] = {}
        for op in ops:
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
        if seed not in inside:
            return None
        position = {op: index for index, op in enumerate(ops)}
        first = position[members[0]]
        before: list[Operation] = []
        for op in reversed(ops):
            if op in inside or op in late:
                continue
            if op in early or position[op] < first:
                before.append(op)
                early.update(
                    v.owner for v in op.operands if isinstance(v.owner, Operation)
                )
        moved = {*before, *members}
        loop = TiledLoop(
            self.tiles,
            members,
            {op: self._needs(op) for op in members},
            {op: self.dims[op] for op in members if op in self.dims},
            {op: self.parts[op] for op in members if op in self.parts},
            before[::-1],
            [op for op in ops if op not in moved],
            list(sliced),
        )
        return loop if _keeps_effects(loop, position) else None

    def _needs(self, op: Operation) -> Needs:
        """What a member needs of each of its operands."""
        if op in self.parts:
            return self.parts[op].needs
        found = self.needed[op, self.dims[op]]
        assert found is not None
        return found

    def _sources_of(self, op: Operation) -> Iterator[tuple[SSAValue, int | None]]:
        """What a member reads, and along which dimension it is sliced."""
        for value, along in zip(op.operands, self._needs(op), strict=True):
            yield from self._sources(value, along)


def users(value: SSAValue) -> Iterator[Operation]:
    """Who reads a value, or a view of it."""
    values = [value]
    for value in values:  # grows
        for use in value.uses:
            if is_repeated(use.operation):
                values.append(use.operation.results[0])
            else:
                yield use.operation


def _keeps_effects(loop: TiledLoop, position: Mapping[Operation, int]) -> bool:
    """Whether variables are still read and written in the same order."""
    effects = [position[op] for op in (*loop.before, *loop.after) if has_effect(op)]
    return effects == sorted(effects)
