"""Finds in which order an HLO instruction reads and writes elements of shared bytes.

    access(module, instruction, module.entry, Sharing(0, (), frozenset({0})))

The positions of the operand's elements are tracked through the instruction, or the body
of the fusion, to its result: a slice selects positions, a transpose permutes them, an
elementwise operation joins those of its operands. NumPy enumerates them, except on
paths of elementwise operations only.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from ...support.foreign_plan import Access, Elements, Positions, Unknown
from .elements import element_width
from .hlo import Computation, HloModule, Index, Instruction, Shape

ELEMENTS = 1 << 24
"""The largest number of elements of an array that is enumerated."""

ELEMENTWISE = frozenset(
    """abs add and atan2 cbrt ceil clamp compare complex convert copy cosine
    count-leading-zeros divide erf exponential exponential-minus-one floor imag
    is-finite log log-plus-one logistic maximum minimum multiply negate not or
    popcnt power real reduce-precision remainder round-nearest-afz round-nearest-even
    rsqrt select shift-left shift-right-arithmetic shift-right-logical sign sine sqrt
    stochastic-convert subtract tan tanh xor acos acosh asin asinh atanh cosh sinh
    """.split()
)
IN_PLACE = ("sort", "all-reduce", "all-reduce-start")
"""Operations that may compute result n in place of operand n."""
MANY = frozenset(
    """cholesky convolution dot fft reduce reduce-window scaled-dot sort topk
    triangular-solve""".split()
)
"""Operations that compute each element from many elements."""

Window: TypeAlias = tuple[str, ...]
"""The start of a window, as expressions. Positions in it count from a start of 0."""


class Source(NamedTuple):
    """For each element of an array, the operand's position it is read from, or -1."""

    window: Window | None
    positions: Positions


class Sharing(NamedTuple):
    """A read and a write of one instruction whose bytes overlap."""

    operand: int
    result: Index
    in_place: frozenset[int]
    """The operands that have exactly the bytes of the result."""


class _NotModeled(Exception):
    """The source of the elements is unknown."""

    def __init__(self, reason: str, is_refuted: bool = False):
        self.access = Unknown(reason, is_refuted)


def access(module: HloModule, by: Instruction, at: Computation, how: Sharing) -> Access:
    """How `by`, an instruction of `at`, accesses the shared bytes; see `Access`."""
    is_own = how.result in ((), (how.operand,)) and how.operand in how.in_place
    if by.opcode in IN_PLACE and is_own:
        return None
    if by.opcode == "custom-call":
        return _declared(by, how)
    try:
        body, results = _body(module, by, at)
        if body.root.opcode in IN_PLACE and how.operand in how.in_place:
            return _in_place(body, how)
        root = results.pop(how.result, body.root)
        flow = _Flow(body, how.operand)
        found = flow.access(root, how)
        for other in results.values():
            flow.check(other, root, how)
        return found
    except _NotModeled as reason:
        return reason.access
    except (LookupError, ValueError, RecursionError):
        return Unknown("its text is not understood")


def _declared(by: Instruction, how: Sharing) -> Access:
    """Whether a custom call has `output_to_operand_aliasing={{0}: (1, {})}`."""
    text = by.attributes.get("output_to_operand_aliasing", "")
    for output, operand in re.findall(r"\{([\d, ]*)\}: \((\d+), \{", text):
        index = tuple(map(int, re.findall(r"\d+", output)))
        if (index, int(operand)) == (how.result, how.operand):
            return None
    return Unknown("a custom call that declares no such alias")


def _in_place(body: Computation, how: Sharing) -> Access:
    """The access of a fusion whose root is an in-place operation, such as a sort."""
    operands = body.root.operands
    number = how.result[0] if how.result else 0
    sorted_ = body.by_name[operands[number]]
    if sorted_.opcode == "parameter" and int(sorted_.literal) == how.operand:
        return None
    return Unknown(f"{body.root.opcode} overwrites another operand than its own")


def _body(
    module: HloModule, by: Instruction, at: Computation
) -> tuple[Computation, dict[Index, Instruction]]:
    """The computation of the results: a fusion's body, or the instruction alone."""
    if by.opcode != "fusion":
        names = tuple(f"operand {number}" for number in range(len(by.operands)))
        parameters = [
            replace(
                at.by_name[operand],
                name=name,
                opcode="parameter",
                operands=(),
                literal=str(n),
            )
            for n, (name, operand) in enumerate(zip(names, by.operands, strict=True))
        ]
        root = replace(by, operands=names)
        return Computation(by.name, [*parameters, root], root), {(): root}
    body = module.computations[by.called("calls")]
    return body, dict(_results(body, body.root, ()))


def _results(
    body: Computation, root: Instruction, index: Index
) -> Iterator[tuple[Index, Instruction]]:
    if root.opcode != "tuple":
        yield index, root
        return
    for number, name in enumerate(root.operands):
        yield from _results(body, body.by_name[name], (*index, number))


class _Flow:
    """The positions of one operand throughout the computation that reads it."""

    def __init__(self, body: Computation, operand: int):
        self.body = body
        self.parameter = body.parameters[operand]
        self.readers = {self.parameter.name}
        """The instructions that depend on the operand."""
        self._known: dict[str, Sequence[Source] | _NotModeled] = {}
        for by in body.instructions:
            if not self.readers.isdisjoint(by.operands):
                self.readers.add(by.name)
        self._expressions: dict[str, str] = {}
        self._first: dict[str, str] = {}

    def access(self, root: Instruction, how: Sharing) -> Access:
        """How `root` reads the operand that it overwrites, or `_NotModeled`."""
        width = element_width(root.shape.dtype)
        if width is None or width != element_width(self.parameter.shape.dtype):
            raise _NotModeled("the elements have different widths")
        if root.name in self._passed_through():
            return None
        update = self._behind_bitcasts(root)
        if update.operands and self._base(update) in how.in_place:
            if update.opcode == "scatter":
                return self._scatter(update)
            if update.opcode == "dynamic-update-slice":
                return self._update(update, width)
        sources = self._sources(root)
        if any(source.window for source in sources):
            raise _NotModeled("it reads a window that starts at a computed element")
        return _elements(_identity(root.shape), sources, width)

    def check(self, other: Instruction, root: Instruction, how: Sharing) -> None:
        """Raises `_NotModeled` if `other`, another result of the fusion, may read
        elements that `root` has overwritten.

        Elements at the same position of both results are computed together.
        """
        is_sum = other.opcode == "reduce"  # computed while it iterates over its operand
        if is_sum and self.readers.isdisjoint(other.operands[1:]):
            other = self.body.by_name[other.operands[0]]
        if other.name not in self.readers or (
            other.name in self._passed_through()
            and other.shape.elements == root.shape.elements
        ):
            return
        sources = self._sources(other)
        if (
            any(source.window for source in sources)
            or other.shape.elements != root.shape.elements
        ):
            raise _NotModeled("another result of the fusion reads other elements")
        own = _identity(root.shape).reshape(-1)
        window = self._window(root, how)
        written = own if window is None else window
        early = late = 0
        for source in sources:
            read = source.positions.reshape(-1)
            is_hit = np.isin(read, written)
            early += int(np.count_nonzero(is_hit & (read < own)))
            late += int(np.count_nonzero(is_hit & (read > own)))
        if early:
            text = f"another result reads {early} elements after they are overwritten"
            raise _NotModeled(text, self._is_whole(root) or window is not None)
        if late:
            text = f"another result finds {late} elements only in ascending order"
            raise _NotModeled(text)

    def _is_whole(self, root: Instruction) -> bool:
        """Whether `root` writes all elements, whatever the values are."""
        opcode = self._behind_bitcasts(root).opcode
        return opcode not in ("dynamic-update-slice", "scatter")

    def _window(self, root: Instruction, how: Sharing) -> "Positions | None":
        """The positions that an in-place update writes; None if they are unknown."""
        update = self._behind_bitcasts(root)
        if self._is_whole(root) or self._base(update) not in how.in_place:
            return None
        if update.opcode == "scatter":
            return None
        base, new = self._operands(update)[:2]
        start, window = self._start(update.operands[2:], base.shape, new.shape)
        if window:
            return None
        return _identity(base.shape)[_box(start, new.shape.sizes)]

    def _update(self, update: Instruction, width: int) -> Access:
        """The access of an update in place, which only writes a window."""
        base, new = self._operands(update)[:2]
        if not self.readers.isdisjoint(update.operands[2:]):
            raise _NotModeled("the window's start is read from what it overwrites")
        start, window = self._start(update.operands[2:], base.shape, new.shape)
        sources = self._sources(new)
        if any(source.window != window for source in sources):
            raise _NotModeled(
                "it reads and writes windows that start at other elements"
            )
        written = _identity(base.shape)[_box(start, new.shape.sizes)]
        return _elements(written, sources, width)

    def _scatter(self, scatter: Instruction) -> Access:
        """The access of an in-place scatter, whose updates must not use the base."""
        if not self.readers.isdisjoint(scatter.operands[1:]):
            raise _NotModeled("it scatters values read from what it overwrites")
        return None

    def _base(self, update: Instruction) -> int | None:
        """The number of the operand that an in-place update modifies, or None."""
        base = self._behind_bitcasts(self.body.by_name[update.operands[0]])
        return int(base.literal) if base.opcode == "parameter" else None

    def _behind_bitcasts(self, by: Instruction) -> Instruction:
        while by.opcode == "bitcast":
            by = self.body.by_name[by.operands[0]]
        return by

    def _operands(self, by: Instruction) -> list[Instruction]:
        return [self.body.by_name[name] for name in by.operands]

    def _passed_through(self) -> set[str]:
        """Instructions that read the operand only at the position they compute."""
        found = {self.parameter.name}
        for by in self.body.instructions:
            readers = [o for o in self._operands(by) if o.name in self.readers]
            if (by.opcode in ELEMENTWISE or by.opcode == "bitcast") and all(
                o.name in found and _same_order(o, by) for o in readers
            ):
                found.add(by.name)
        return found

    def _sources(self, by: Instruction) -> Sequence[Source]:
        """The sources of an array's elements. Raises `_NotModeled`."""
        if by.name not in self._known:
            for each in self.body.instructions:
                try:
                    self._known[each.name] = self._compute(each)
                except _NotModeled as error:
                    self._known[each.name] = error
        known = self._known[by.name]
        if isinstance(known, _NotModeled):
            raise known
        return known

    def _compute(self, by: Instruction) -> Sequence[Source]:
        if by.name not in self.readers:
            return []
        if by.shape.parts is not None or by.shape.elements > ELEMENTS:
            raise _NotModeled("the array is too large to enumerate")
        operands = self._operands(by)
        if by.opcode == "parameter":
            return [Source(None, _identity(by.shape))]
        if by.opcode in ELEMENTWISE:
            return self._joined(by, operands)
        if by.opcode == "concatenate":
            return self._concatenated(by, operands)
        if not self.readers.isdisjoint(by.operands[2:]):
            raise _NotModeled(f"{by.opcode} takes a start or a size from the operand")
        if by.opcode == "dynamic-update-slice":
            return self._updated(by, operands)
        if by.opcode in MANY:
            reason = f"{by.opcode} reads many elements for each that it writes"
            raise _NotModeled(reason, by.shape.elements > 1)
        if not self.readers.isdisjoint(by.operands[1:]):
            raise _NotModeled(f"{by.opcode} is not modeled")
        if by.opcode == "dynamic-slice":
            return self._dynamic_slice(by, operands[0])
        return [
            source._replace(positions=_moved(by, operands[0].shape, source.positions))
            for source in self._sources(operands[0])
        ]

    def _joined(
        self, by: Instruction, operands: Sequence[Instruction]
    ) -> Sequence[Source]:
        """The sources of all operands; those of scalars are broadcast."""
        return _distinct(
            source._replace(positions=np.broadcast_to(source.positions, by.shape.sizes))
            for operand in operands
            for source in self._sources(operand)
        )

    def _concatenated(
        self, by: Instruction, operands: Sequence[Instruction]
    ) -> Sequence[Source]:
        (axis,) = by.numbers("dimensions")
        found: list[Source] = []
        start = 0
        for operand in operands:
            at = [0] * len(by.shape.sizes)
            at[axis] = start
            start += operand.shape.sizes[axis]
            box = _box(at, operand.shape.sizes)
            found += _placed(self._sources(operand), by.shape, box)
        return found

    def _dynamic_slice(self, by: Instruction, whole: Instruction) -> Sequence[Source]:
        start, window = self._start(by.operands[1:], whole.shape, by.shape)
        found: list[Source] = []
        for source in self._sources(whole):
            if window and source.window:
                raise _NotModeled("it reads a window of a window")
            positions = source.positions[_box(start, by.shape.sizes)]
            found.append(Source(window or source.window, positions))
        return found

    def _updated(
        self, by: Instruction, operands: Sequence[Instruction]
    ) -> Sequence[Source]:
        base, new = operands[:2]
        start, window = self._start(by.operands[2:], base.shape, new.shape)
        if window:
            if new.name in self.readers:
                raise _NotModeled(
                    "it writes a window that starts at a computed element"
                )
            return self._sources(base)
        box = _box(start, new.shape.sizes)
        found: list[Source] = []
        for source in self._sources(base):
            positions = source.positions.copy()
            positions[box] = -1
            found.append(source._replace(positions=positions))
        return found + _placed(self._sources(new), by.shape, box)

    def _start(
        self, names: Sequence[str], whole: Shape, part: Shape
    ) -> tuple[Sequence[int], Window | None]:
        """The start of a window; for a computed start, zeros and its expressions."""
        lengths = list(zip(whole.sizes, part.sizes, strict=True))
        starts = [
            "0" if size == length else self._expression(name)  # clamped
            for name, (size, length) in zip(names, lengths, strict=True)
        ]
        numbers: list[int] = []
        for text, (size, length) in zip(starts, lengths, strict=True):
            if text.lstrip("-").isdigit():
                numbers.append(min(max(int(text), 0), size - length))
            else:
                shape = f"{whole} {whole.minor_to_major} {part}"
                return [0] * len(starts), (shape, *starts)
        return numbers, None

    def _expression(self, name: str) -> str:
        """A scalar's number, or the first scalar's name with the same expression."""
        by = self.body.by_name[name]
        if by.opcode in ("constant", "parameter"):
            return f"{by.opcode} {by.literal}".removeprefix("constant ")
        if name not in self._expressions:
            operands = ", ".join(map(self._expression, by.operands))
            details = {k: v for k, v in by.attributes.items() if k != "metadata"}
            text = f"{by.opcode}({operands}) {details}"
            self._expressions[name] = self._first.setdefault(text, name)
        return self._expressions[name]


def _elements(
    written: Positions, sources: Sequence[Source], width: int
) -> Elements | None:
    if not sources:
        return None
    read = [np.where(s.positions < 0, -1, s.positions * width) for s in sources]
    return Elements(written * width, read, width)


def _same_order(one: Instruction, other: Instruction) -> bool:
    """Whether elements at one position have the same memory order in both."""
    if other.opcode == "bitcast":
        return True
    sizes = one.shape.sizes, other.shape.sizes
    orders = one.shape.minor_to_major, other.shape.minor_to_major
    return sizes[0] == sizes[1] and orders[0] == orders[1]


def _moved(by: Instruction, shape: Shape, positions: Positions) -> Positions:
    """The positions after an operation that moves elements, or `_NotModeled`."""
    match by.opcode:
        case "bitcast":
            order = shape.minor_to_major[::-1]
            flat = positions.transpose(order).reshape(-1)
            return _in_order(flat, by.shape)
        case "reshape":
            return positions.reshape(by.shape.sizes)
        case "transpose":
            return positions.transpose(by.numbers("dimensions"))
        case "broadcast":
            return _broadcast(positions, by.numbers("dimensions"), by.shape.sizes)
        case "reverse":
            return np.flip(positions, tuple(by.numbers("dimensions")))
        case "slice":
            return positions[_slices(by.attributes["slice"])]
        case "pad":
            return _padded(by.attributes["padding"], positions, by.shape)
        case opcode:
            raise _NotModeled(f"{opcode} is not modeled")


def _identity(shape: Shape) -> Positions:
    return _in_order(np.arange(shape.elements, dtype=np.int64), shape)


def _in_order(flat: Positions, shape: Shape) -> Positions:
    """Elements in memory order as an array of the shape."""
    order = shape.minor_to_major[::-1]
    array = flat.reshape([shape.sizes[axis] for axis in order])
    return array.transpose(np.argsort(order)) if order else array


def _broadcast(
    positions: Positions, axes: Sequence[int], sizes: Sequence[int]
) -> Positions:
    shape = [1] * len(sizes)
    for axis, size in zip(axes, positions.shape, strict=True):
        shape[axis] = size
    return np.broadcast_to(positions.transpose(np.argsort(axes)).reshape(shape), sizes)


def _slices(text: str) -> tuple[slice, ...]:
    """Parses `{[0:7], [0:16:2]}`."""
    parts = re.findall(r"\[([\d:]+)\]", text)
    return tuple(slice(*map(int, part.split(":"))) for part in parts)


def _padded(text: str, positions: Positions, shape: Shape) -> Positions:
    """Pads positions by `1_2x0_0_1`: low, high, and interior padding of each axis."""
    result = np.full(shape.sizes, -1, np.int64)
    into: list[Positions] = []
    taken: list[Positions] = []
    sizes = zip(positions.shape, shape.sizes, strict=True)
    for part, (size, whole) in zip(text.split("x"), sizes, strict=True):
        low, _, interior = [*map(int, part.split("_")), 0][:3]
        places = np.arange(size, dtype=np.int64) * (interior + 1) + low
        is_inside = (places >= 0) & (places < whole)
        into.append(places[is_inside])
        taken.append(np.flatnonzero(is_inside))
    result[np.ix_(*into)] = positions[np.ix_(*taken)]
    return result


def _box(start: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(s, s + n) for s, n in zip(start, sizes, strict=True))


def _placed(
    sources: Sequence[Source], shape: Shape, box: tuple[slice, ...]
) -> list[Source]:
    """The sources of a part of an array; its other elements have none."""
    found: list[Source] = []
    for source in sources:
        positions = np.full(shape.sizes, -1, np.int64)
        positions[box] = source.positions
        found.append(source._replace(positions=positions))
    return found


def _distinct(sources: Iterable[Source]) -> Sequence[Source]:
    found: list[Source] = []
    for source in sources:
        if not any(
            source.window == other.window
            and np.array_equal(source.positions, other.positions)
            for other in found
        ):
            found.append(source)
    return found
