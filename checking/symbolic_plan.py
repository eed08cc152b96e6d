"""Symbolic sizes in plan-check: checks typical values, and proves the plan for all.

A buffer starts at the maximum of several ends. It therefore lies above each buffer with
one of these ends, and above all buffers below those, because no size is negative. The
size of the arena is also a maximum of ends. Facts that do not follow in this way are
not proved, and the runtime checks such a plan for the sizes of each call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isinf, prod
from typing import cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ..analysis.functions import (
    arena_alignment,
    arena_arguments,
    returned_sizes,
    size_function,
)
from ..analysis.sizes import SizeReader, counted_sizes
from ..dialects.diagnostics import LocatedError, name_of, remark
from ..dialects.memory import maker_of
from ..dialects.sizes.dims import BOUNDS, numbers_in
from ..dialects.sizes.intervals import interval
from ..dialects.sizes.symbolic import (
    Size,
    Symbolic,
    is_known_at_least,
    product_of,
    round_up,
    symbol,
    typical,
)
from ..dialects.tgraph.base import STREAM, AnyMemRef, element_bytes
from .buffers import MemoryPool, alignment_of, name_of_buffer, numbers_of
from .effects import Callees
from .ownership import check_owners
from .ranges import Range, exactly
from .unchecked import Unchecked


class CountedSizes:
    """Finds numbers for all sizes. For symbolic sizes, these are the largest within the
    function's bounds, or typical ones if it has no bounds."""

    def __init__(self, func: FuncOp):
        bounds = func.attributes.get(BOUNDS)
        self.are_typical = False
        """Whether a typical size was used, so that other sizes must be proved."""
        self._func = func
        self._bounds = None if bounds is None else numbers_in(bounds)
        self._reader = SizeReader(
            func, name_maxima=bounds is None, name_operands=bounds is None
        )

    @cached_property
    def _typical(self) -> SizeReader:
        self.are_typical = True
        values = counted_sizes(self._func)
        return SizeReader(self._func, values, name_operands=True)

    @property
    def has_operands(self) -> bool:
        """Whether sizes were used that do not follow from the sizes of arguments."""
        return self.are_typical and bool(self._typical.operands)

    def bytes(self, buffer: SSAValue) -> int:
        """An upper bound of a memref's bytes; raises `LocatedError` if unknown."""
        type, op = cast(AnyMemRef, buffer.type), maker_of(buffer)
        shape: Sequence[Size | None] = type.get_shape()
        if DYNAMIC_INDEX in shape:
            if self._bounds is None:
                shape = [_typical(s) for s in _shape(buffer, self._typical)]
            else:
                shape = [self._largest(n) for n in _shape(buffer, self._reader)]
        if None in shape:
            raise LocatedError(f"{name_of(op)}: the size of {type} is unknown", op)
        try:
            return prod(cast(Sequence[int], shape)) * element_bytes(type.element_type)
        except VerifyException as error:
            raise LocatedError(f"{name_of(op)}: {error}", op) from None

    def offset(self, view: memref.ViewOp) -> int | None:
        """The offset of an arena's view in bytes; None if it is not known."""
        range = self.range(view.byte_shift)
        return range.least if range and range.least == range.most else None

    def range(self, value: SSAValue) -> Range | None:
        """The range of an index that follows from the arguments' sizes; None for other
        indices."""
        size = self._reader.size(value)
        if isinstance(size, Symbolic) and self._bounds is None:
            size = _typical(self._typical.size(value))
        if size is None or isinstance(size, int):
            return None if size is None else exactly(size)
        least, most = interval(size, self._bounds or {})
        return None if isinf(least) or isinf(most) else Range(int(least), int(most))

    def _largest(self, size: Size | None) -> int | None:
        if size is None or self._bounds is None:
            return None
        _, most = interval(size, self._bounds)
        return None if isinf(most) else int(most)


def _shape(buffer: SSAValue, reader: SizeReader) -> Sequence[Size | None]:
    """The sizes of a memref; upper bounds for a view, exact ones for an arena."""
    is_view = isinstance(buffer.owner, memref.ViewOp)
    return reader.at_most(buffer) if is_view else reader.shape(buffer)


def _typical(size: Size | None) -> int | None:
    return None if size is None else typical(size)


def prove(
    func: FuncOp,
    memories: Sequence[MemoryPool],
    may_be: Mapping[SSAValue, Sequence[int]],
    frees: Mapping[SSAValue, Sequence[int]],
    callees: Callees,
    sizes: CountedSizes,
) -> None:
    """Proves for all sizes what was checked for typical ones. If that fails, logs a
    remark, or raises `LocatedError` if tensorplan's runtime does not check the sizes of
    each call.

    `may_be` also has numbers of the buffers of arguments, which follow all others.
    """
    arenas = [memory for memory in memories if memory.caller is None]
    buffers = [buffer for memory in arenas for buffer in memory.buffers]
    known = {
        value: inside
        for value, numbers in may_be.items()
        if (inside := [number for number in numbers if number < len(buffers)])
    }
    try:
        if any(STREAM in op.attributes for b in func.body.blocks for op in b.ops):
            raise Unproved("its operations have streams", buffers[0].value)
        sharing = SymbolicSharing(func, [buffer.value for buffer in buffers])
        check_owners(func.body, arenas, known, frees, callees, Unchecked(), sharing)
    except Unproved as unproved:
        name = name_of_buffer(unproved.value)
        reason, op = f"buffer {name}: {unproved}", unproved.value.owner
    except LocatedError as error:
        reason, op = error.message, func
    else:
        return
    if sizes.has_operands or arena_arguments(func):
        raise LocatedError(f"not proved for all sizes: {reason}", cast(Operation, op))
    remark(
        "not proved for all sizes, so the runtime checks the sizes of each "
        f"call: {reason}",
        cast(Operation, op),
    )


@dataclass(frozen=True)
class Unproved(Exception):
    """The proof for all sizes failed."""

    message: str
    value: SSAValue

    def __str__(self) -> str:
        return self.message


class SymbolicSharing:
    """Finds the buffers of a function that may share bytes for some sizes.

    All sizes and offsets have known expressions, since `CountedSizes` refuses others.
    Raises `Unproved` for a buffer that may not be aligned, or not within its arena.
    """

    def __init__(self, func: FuncOp, buffers: Sequence[SSAValue]):
        self._func = func
        self._reader = SizeReader(func, name_maxima=True, name_operands=True)
        by_arena: dict[SSAValue, list[int]] = {}
        for number, buffer in enumerate(buffers):
            view = buffer.owner
            if not isinstance(view, memref.ViewOp) or not (
                isinstance(view.source.owner, memref.AllocOp)
                or arena_alignment(view.source)
            ):
                raise Unproved("it is not a view of an arena", buffer)
            by_arena.setdefault(view.source, []).append(number)
        self._sharing: dict[int, int] = {}
        for arena, numbers in by_arena.items():
            self._add(
                arena, [(n, cast(memref.ViewOp, buffers[n].owner)) for n in numbers]
            )

    def with_(self, number: int) -> int:
        """The other buffers that may share bytes with buffer `number`, as bits."""
        return self._sharing[number]

    def _add(self, arena: SSAValue, views: Sequence[tuple[int, memref.ViewOp]]) -> None:
        alignment = alignment_of(arena) or 1
        size = self._size(arena)
        starts = {n: self._start(view, alignment) for n, view in views}
        ends: dict[Size, int] = {}  # the buffers with each end, as bits
        numbers: list[tuple[int, int]] = []  # constant ends with buffers, ascending
        for number, view in views:
            bytes = self._bytes(view)
            end = starts[number] + bytes
            for each in {end: None, starts[number] + round_up(bytes, alignment): None}:
                ends[each] = ends.get(each, 0) | 1 << number
            if isinstance(end, int):
                numbers.append((end, number))
        below: dict[int, int] = {}
        for number, _ in views:
            self._find_below(number, starts, ends, numbers, below)
        everything = sum(1 << n for n, _ in views)
        within = 0
        for number in numbers_of(self._reached(size, ends, numbers)):
            within |= below[number] | 1 << number
        for number, view in views:
            end = starts[number] + self._bytes(view)
            if not within >> number & 1 and not is_known_at_least(size - end, 0):
                raise Unproved("it may not lie within its arena", view.result)
        above = {number: 0 for number, _ in views}
        for number, lower in below.items():
            for other in numbers_of(lower):
                above[other] |= 1 << number
        for number, _ in views:
            self._sharing[number] = everything & ~(
                below[number] | above[number] | 1 << number
            )

    def _size(self, arena: SSAValue) -> Size:
        """The bytes of an arena. For an arena that the caller passes, they are those
        that the function's size function returns."""
        sizes = size_function(self._func)
        if not isinstance(arena, BlockArgument):
            (size,) = self._reader.shape(arena)
        elif sizes is None:
            raise Unproved("its caller determines the size of its arena", arena)
        else:
            self._reader.follow(sizes)
            number = arena_arguments(self._func).index(arena)
            size = self._reader.size(returned_sizes(sizes)[number])
        if size is None:
            raise Unproved("the size of its arena is unknown", arena)
        return size

    def _start(self, view: memref.ViewOp, alignment: int) -> Size:
        start = cast(Size, self._reader.size(view.byte_shift))
        if not is_known_at_least(start, 0):
            raise Unproved("its offset may be below 0", view.result)
        if not self._is_multiple(start, alignment):
            raise Unproved(
                f"its offset may not be a multiple of {alignment}", view.result
            )
        return start

    def _bytes(self, view: memref.ViewOp) -> Size:
        shape = cast(Sequence[Size], _shape(view.result, self._reader))
        return product_of(shape) * element_bytes(view.result.type.element_type)

    def _is_multiple(self, size: Size, alignment: int) -> bool:
        """Whether the size is known to be a multiple of the alignment."""
        pending, seen = [size], {size}
        for part in pending:  # grows during the loop
            rest = part
            for name, factor in self._maxima_in(part):
                rest = rest - factor * (symbol(name) - 1)
                new = [s for s in self._reader.maxima[name] if s not in seen]
                seen.update(new)
                pending += new
            if rest % alignment != 0:
                return False
        return True

    def _maxima_in(self, size: Size) -> list[tuple[str, int]]:
        """The names of maxima that are summands of a size, with their factors."""
        if not isinstance(size, Symbolic):
            return []
        return [
            (cast(str, monomial[0]), factor)
            for monomial, factor in size.terms
            if len(monomial) == 1 and monomial[0] in self._reader.maxima
        ]

    def _reached(
        self, size: Size, ends: Mapping[Size, int], numbers: Sequence[tuple[int, int]]
    ) -> int:
        """The buffers whose end is known to be at most `size`, as bits."""
        found = 0
        pending, seen = [size], {size}
        for part in pending:  # grows during the loop
            found |= ends.get(part, 0)
            if isinstance(part, int):
                found |= sum(1 << n for end, n in numbers if end <= part)
            for name, _ in self._maxima_in(part):
                if part == symbol(name) - 1:
                    new = [s for s in self._reader.maxima[name] if s not in seen]
                    seen.update(new)
                    pending += new
        return found

    def _find_below(
        self,
        number: int,
        starts: Mapping[int, Size],
        ends: Mapping[Size, int],
        numbers: Sequence[tuple[int, int]],
        below: dict[int, int],
    ) -> None:
        """Finds the buffers known to end before buffer `number` starts, directly or
        through others, and adds them to `below`."""
        stack = [number]
        direct: dict[int, int] = {}
        while stack:
            current = stack[-1]
            if current not in direct:
                direct[current] = self._reached(starts[current], ends, numbers)
                stack += [n for n in numbers_of(direct[current]) if n not in direct]
                continue
            stack.pop()
            if current not in below:
                below[current] = direct[current]
                for other in numbers_of(direct[current]):
                    below[current] |= below.get(other, 0)
