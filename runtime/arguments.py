"""Binds a caller's arrays to a program's arguments, without copies where possible.

An argument uses the caller's array as its memory if the layout allows that; otherwise,
it uses the program's own memory. `copies` counts the copies by reason.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import is_
from typing import Literal, NamedTuple, TypeAlias, cast

import numpy as np

from ..support.arrays import Array, address
from ..support.ranges import indices
from ..support.slots import Input, Result, Slot
from . import rebinding
from .owned_results import LEAST, HandedOut
from .passed_arrays import as_array, check_out, from_buffer, is_number, is_plain, title
from .placing import StagedPlacing
from .prepacking import Prepacked
from .program.program import Changes, Program
from .program.stages import Stage
from .program.steps import MemoryBlock, View
from .rebinding import Reader, Rebinding

Results: TypeAlias = Literal["copy", "view"]

_OTHER = object()
"""A sentinel that is identical to nothing a caller passes."""


class _Input(NamedTuple):
    """An input that the program only reads."""

    number: int
    slot: Slot
    memory: MemoryBlock

    def shown(self, given: object) -> Array | None:
        """Returns an array in the memory of `given`, or None if it can't be bound."""
        array = given if type(given) is np.ndarray else from_buffer(given)
        fits = (
            array is not None
            and array.shape == self.slot.shape
            and array.dtype == self.slot.dtype
            and is_plain(array)
        )
        return array if fits else None


class _New(NamedTuple):
    """An array to bind to an input that is only read."""

    at: int
    """The index among the arrays that calls pass."""
    slot: _Input
    given: object
    array: Array
    start: int
    """The address of `array`."""
    is_in_place: bool
    """Whether later changes of `given` are visible in `array`, or cannot happen."""


_Accepted: TypeAlias = dict[int, tuple[object, Array, bool]]
"""Maps the index of an input to the object that was passed, the array to bind, and
whether the array shows all later contents of the object.
"""


class Arguments:
    """The arrays that are bound to the arguments of a program."""

    def __init__(
        self,
        program: Program,
        inputs: Sequence[Input],
        results: Sequence[Result],
        handed_out: Results = "copy",
        donations: Mapping[int, int] | None = None,
        like: "Arguments | None" = None,
    ):
        """Starts with the parameters of `like`, which belongs to a program of the same
        module. `donations` maps the index of a donated input to that of the result that
        takes its memory."""
        if handed_out not in ("copy", "view"):
            raise ValueError(f"results is {handed_out!r}, expected 'copy' or 'view'")
        self._copies: Counter[tuple[str, int, str]] = Counter()
        self.parameters: Mapping[int, Array] = {} if like is None else like.parameters
        """The inputs that `bind` has bound, by index."""
        self._program = program
        self.is_settled = True
        """Whether the calls use the arrays that are bound now, and all runs have ended.
        Changing what is bound clears it; the end of a call sets it."""
        self.inputs = inputs
        self.outputs = results
        self._are_views = handed_out == "view"
        self.donations = donations or {}
        """Maps donated inputs to the results that take over their memory."""
        self._donors = {number: index for index, number in self.donations.items()}
        # The object that the last call passed for each input, if used in place.
        self._given: list[object] = [_OTHER] * len(inputs)
        # The objects that the last call passed for inputs not in `parameters`, and as
        # `out`.
        self._last: Sequence[object] = [_OTHER]
        self._last_out: Sequence[object] | None = None
        # The inputs of `_last` that are only read, so that another array needs no other
        # checks; and the sorted, disjoint spans of memory that is written.
        self._read_only: Sequence[_Input | None] | None = None
        self._written: Sequence[tuple[int, int]] = ()
        # Binds other arrays in place of `_last` natively. It is created after a call
        # that did so in Python; what it binds is recorded in `_last` only.
        self._rebinding: Rebinding | None = None
        self._may_rebind = False
        self._placing = StagedPlacing(program, inputs, results)
        self.is_placed = False
        """Whether the calls use what `place` has bound, as `is_settled` for arrays."""
        # The array bound to each result, if a call can return it without a copy.
        self._ready: Sequence[Array | None] = ()
        # The memory of results that are returned without a copy.
        self._handed_out: dict[MemoryBlock, HandedOut] = {}
        # The array that is bound to each argument; initially the program's own.
        slots = zip(
            (*program.inputs, *program.results), (*inputs, *results), strict=True
        )
        self._own = {
            memory: np.ndarray(slot.shape, slot.dtype, memory.array)
            for memory, slot in slots
            if isinstance(memory, MemoryBlock)
        }
        self._bound = dict(self._own)
        self._numbers = {memory: n for n, memory in enumerate(program.inputs)}
        for index, number in self.donations.items():  # they may share memory
            for memory in (program.inputs[index], program.results[number]):
                assert isinstance(memory, MemoryBlock)
                memory.home = None
        # For each parameter, by index, its array and the packed copies of it.
        self.prepacked: dict[int, tuple[Array, Prepacked]] = (
            {} if like is None else like.prepacked.copy()
        )

    @property
    def copies(self) -> Mapping[str, int]:
        """The number of copies, by what was copied and why."""
        return {
            f"{what} {number}: {reason}": count
            for (what, number, reason), count in dict(self._copies).items()
        }

    def bind(self, parameters: Mapping[int, object]) -> None:
        """Binds inputs, by index, for all later calls."""
        bound: dict[int, Array] = {}
        for index, given in parameters.items():
            if not 0 <= index < len(self.inputs):
                raise ValueError(
                    f"there is no input {index}, expected {indices(len(self.inputs))}"
                )
            slot = self.inputs[index]
            if slot.is_donated:
                raise ValueError(
                    f"input {index} is donated, expected an array for each call"
                )
            array, _ = as_array(given, slot, title(index, slot))
            if not is_plain(array) or (slot.is_variable and not array.flags.writeable):
                array = np.array(array, order="C")
            bound[index] = array
        is_settled = self.is_settled
        self.flush_rebinding()
        for index, array in bound.items():
            self._given[index] = _OTHER
            self.prepacked.pop(index, None)
            self._copies_of(self._program.inputs[index], array)
        self.parameters = {**self.parameters, **bound}
        self._last, self._read_only = [_OTHER], None
        self.is_settled = is_settled

    def repack(self) -> None:
        """Refills the packed copies from the current contents of parameters."""
        for _, copies in self.prepacked.values():
            copies.refill()

    def place_constants(self) -> None:
        """Binds the arrays of inputs that no run changes, before any calls are made."""
        self._bind(
            {
                self._program.inputs[index]: array
                for index, array in self.parameters.items()
                if self._is_constant(index)
            }
        )

    def rebind(self, arrays: tuple[object, ...]) -> bool:
        """Binds `arrays` to the inputs that are not in `parameters`, in native code.
        Returns False and does nothing unless all new arrays are for inputs that are
        only read and whose calls can be relocated."""
        if self._handed_out or self._last_out is not None:
            return False
        if self._rebinding is None:
            if not self._may_rebind or not rebinding.is_available():
                return False
            self._rebinding = self._made_rebinding()
        self.is_settled = False
        is_bound = self._rebinding(arrays)
        if is_bound:
            self._last = arrays
        else:
            self.is_settled = True
        return is_bound

    def _made_rebinding(self) -> Rebinding:
        readers = [
            None
            if slot is None or (points := self._program.points(slot.memory)) is None
            else Reader(slot.slot, points)
            for slot in self._read_only or ()
        ]
        return Rebinding(readers, self._last, self._written)

    def flush_rebinding(self) -> None:
        """Records what `rebind` has bound, and makes the next call use `accept`. Must
        come before anything else is bound or calls are made anew."""
        self.is_settled = self.is_placed = self._may_rebind = False
        self._note_rebound()
        self._rebinding = None

    def _note_rebound(self) -> None:
        """Records what `rebind` has bound."""
        if self._rebinding is None:
            return
        self._given = self._noted()
        for given, slot in zip(self._last, self._read_only or (), strict=True):
            if slot is not None and isinstance(given, np.ndarray):
                self._bound[slot.memory] = slot.memory.array = cast(Array, given)

    def _noted(self) -> list[object]:
        """The object passed for each input, if it is bound and used in place."""
        noted = self._given.copy()
        if self._rebinding is not None:
            for given, slot in zip(self._last, self._read_only or (), strict=True):
                if slot is not None:
                    noted[slot.number] = given
        return noted

    def accept(
        self, arrays: Sequence[object], out: Sequence[Array | None] | None
    ) -> Changes:
        """Binds the inputs that are not in `parameters`, and `out`. Returns how the
        memory of the arguments has changed.

        Raises `TypeError` or `ValueError` for arrays that do not match; nothing is
        bound then.
        """
        new = self._changed_inputs(arrays, out)
        if new is not None and not new and not self._handed_out:
            self.is_settled = False
            return Changes((), ())
        accepted = self._accepted(arrays, out) if new is None else None
        if new and self._rebind_new(arrays, new):
            return Changes((), ())
        self.flush_rebinding()
        moved = self._renew_owned_results() if self._handed_out else []
        if new is None or any(map(self._is_written, new)):
            if new is not None:
                accepted = {
                    x.slot.number: (x.given, x.array, x.is_in_place) for x in new
                }
            changes = self._bind_any(accepted or {}, out)
        else:
            changes = self._bind_new(arrays, new)
        return Changes([*moved, *changes.moved], changes.renewed) if moved else changes

    def unbind(self) -> None:
        """Forgets what the last calls have bound, as one of them was interrupted and
        its bindings are unknown. After the next `accept`, calls must be made anew."""
        self.is_settled = self.is_placed = self._may_rebind = False
        self._rebinding = self._read_only = self._last_out = None
        self._placing.reset()
        self._given, self._last = [_OTHER] * len(self.inputs), [_OTHER]
        for memory, handed_out in self._handed_out.items():
            self._own[memory] = handed_out.array
        for memory, array in self._own.items():
            memory.array = array
        self._bound = dict(self._own)

    def prepare_places(self) -> None:
        """Binds only the inputs that `bind` has bound, before calls are made anew."""
        self.unbind()
        inputs = self._program.inputs
        self._bind({inputs[index]: array for index, array in self.parameters.items()})

    def best_cuts(self, released: Collection[int]) -> Sequence[int]:
        """The steps at which stages of calls by address begin, without the first, to
        use the least memory. Inputs in `released` need no memory after their last use.
        """
        return self._placing.best_cuts(released)

    def divide(self, cuts: Sequence[int]) -> None:
        """Must follow `prepare_places`, with calls made anew."""
        self._placing.reset()
        self._placing.cuts = cuts

    @property
    def stage_count(self) -> int:
        return self._placing.stage_count

    @property
    def stages(self) -> Sequence[Stage]:
        """The stages of calls by address."""
        return self._placing.stages(self._unbound_inputs())

    def place(self, number: int, starts: Sequence[int]) -> Changes:
        """Binds the memory at the addresses `starts` to the inputs and results of stage
        `number`, and to its arenas. Returns how the memory of the
        arguments has changed. Must follow `prepare_places`, with calls made anew, or
        another `place`.

        Raises `ValueError` for too few or too many addresses.
        """
        placing = self._placing.of_stage(number, self._unbound_inputs())
        if len(starts) != placing.count:
            raise ValueError(
                f"the number of addresses is {len(starts)}, expected {placing.count}"
            )
        self.is_placed = False
        return self._bind(placing(starts))

    def copy_out(self, starts: Sequence[int]) -> None:
        """Copies results that lie in pools to their addresses in the last stage, and
        sets `is_placed`."""
        self._placing.copy_out(starts)
        self.is_placed = True

    def _renew_owned_results(self) -> list[MemoryBlock]:
        """Gives other memory to results whose memory callers own. Returns the memory
        blocks that have moved."""
        moved: list[MemoryBlock] = []
        for memory, handed_out in self._handed_out.items():
            if handed_out.switch_block():
                array = handed_out.array
                if self._bound[memory] is self._own[memory]:
                    self._bound[memory] = memory.array = array
                    moved.append(memory)
                self._own[memory] = array
        if moved:
            self._note_written()
        return moved

    def _changed_inputs(
        self, arrays: Sequence[object], out: Sequence[Array | None] | None
    ) -> Sequence[_New] | None:
        """The new arrays if only read inputs have changed, as in most calls; else
        None."""
        if _are_same(arrays, self._last) and (
            (out is None and self._last_out is None)
            or (out and self._last_out and _are_same(out, self._last_out))
        ):
            return []
        if out is not None or self._last_out is not None:
            return None
        if self._read_only is None or len(arrays) != len(self._read_only):
            return None
        found: list[tuple[int, object, _Input]] = []
        pairs = zip(arrays, self._last, self._read_only, strict=True)
        for at, (given, last, slot) in enumerate(pairs):
            if given is last:
                continue
            if slot is None:
                return None
            found.append((at, given, slot))
        new: list[_New] = []
        for at, given, slot in found:
            array, is_in_place = slot.shown(given), True
            if array is None:
                array, is_in_place = self._accept(slot.number, given)
            new.append(_New(at, slot, given, array, address(array), is_in_place))
        return new

    def _accepted(
        self, arrays: Sequence[object], out: Sequence[Array | None] | None
    ) -> _Accepted:
        """The arrays to bind to inputs, without those that are bound already."""
        rest = self._unbound_inputs()
        if len(arrays) != len(rest):
            raise TypeError(
                f"the number of arrays is {len(arrays)}, expected {len(rest)}"
            )
        if out is not None:
            self._check_outs(out)
        every = {**self.parameters, **dict(zip(rest, arrays, strict=True))}
        before = self._noted()
        return {
            index: (given, *self._accept(index, given))
            for index, given in every.items()
            if given is not before[index]
        }

    def _unbound_inputs(self) -> Sequence[int]:
        """The indices of inputs that calls pass."""
        return [n for n in range(len(self.inputs)) if n not in self.parameters]

    def _bind_new(self, arrays: Sequence[object], new: Sequence[_New]) -> Changes:
        moved = [x.slot.memory for x in new if x.slot.memory.start != x.start]
        self._note_new(arrays, new)
        follows = self._program.points
        self._may_rebind = all(follows(x.slot.memory) is not None for x in new)
        return Changes(moved, ())

    def _note_new(self, arrays: Sequence[object], new: Sequence[_New]) -> None:
        last = list(arrays)
        for at, slot, given, array, start, is_in_place in new:
            slot.memory.place(array, start)
            self._bound[slot.memory] = array
            last[at] = self._given[slot.number] = given if is_in_place else _OTHER
        self._last = last

    def _rebind_new(self, arrays: Sequence[object], new: Sequence[_New]) -> bool:
        """Like `rebind`, for arrays that share the memory of the passed objects."""
        if self._rebinding is None or self._handed_out:
            return False
        shown = list(arrays)
        for x in new:
            shown[x.at] = x.array
        self.is_settled = False
        if not self._rebinding(tuple(shown)):
            return False
        self._note_new(arrays, new)
        self._rebinding.note([(x.at, self._last[x.at]) for x in new])
        return True

    def _bind_any(
        self, accepted: _Accepted, out: Sequence[Array | None] | None
    ) -> Changes:
        inputs = self._program.inputs
        wanted = {inputs[index]: array for index, (_, array, _) in accepted.items()}
        in_place = self._given.copy()
        for index, (given, _, is_in_place) in accepted.items():
            in_place[index] = given if is_in_place else _OTHER
        outs = self._outs(out, wanted)
        wanted |= {v: a for v, a in outs.items() if a is not self._bound[v]}
        changes = Changes((), ())
        if wanted:
            self._separate(wanted, out)
            changes = self._bind(wanted)
            self._given = [
                _OTHER if self._bound[memory] is self._own[memory] else given
                for memory, given in zip(inputs, in_place, strict=True)
            ]
        rest = self._unbound_inputs()
        self._last = [self._given[index] for index in rest]
        self._last_out = out if out is None else list(out)
        self._ready = [self._bound_to(number) for number in range(len(self.outputs))]
        self._read_only = [self._only_read(index) for index in rest]
        self._note_written()
        return changes

    def _note_written(self) -> None:
        read = {m for m, n in self._numbers.items() if not self.inputs[n].is_written}
        self._written = sorted(
            (address(a), address(a) + a.nbytes)
            for memory, a in self._bound.items()
            if memory not in read and a.nbytes
        )

    def _only_read(self, index: int) -> "_Input | None":
        """The input `index` if other plain arrays may be bound to it without more
        checks; else None."""
        slot = self.inputs[index]
        if slot.is_written or self._is_constant(index):
            return None
        memory = self._program.inputs[index]
        return _Input(index, slot, memory) if memory.moves else None

    def _is_written(self, new: "_New") -> bool:
        """Whether the array overlaps a variable, a donated input, or a result."""
        before = bisect_left(self._written, (new.start + new.array.nbytes,))
        return before > 0 and self._written[before - 1][1] > new.start

    def results(self, out: Sequence[Array | None] | None) -> list[Array]:
        """The results of a run, in the order of the signature."""
        return [
            self._copied(number, out) if array is None else array
            for number, array in enumerate(self._ready)
        ]

    def _accept(self, index: int, given: object) -> tuple[Array, bool]:
        """The array to bind to an input, and whether it is in place: whether it shows
        all later contents of `given`."""
        slot = self.inputs[index]
        name = title(index, slot)
        array, is_shared = as_array(given, slot, name)
        if is_number(given) and not slot.is_written:
            return array, True  # a new array, but numbers never change
        if not is_shared:
            reason = f"{type(given).__name__} is not an array in memory"
        elif not is_plain(array):
            reason = "not C-contiguous and aligned"
        elif slot.is_written and not array.flags.writeable:
            what = "variable" if slot.is_variable else "donated"
            reason = f"{what} that cannot be written"
        else:
            return array, True
        self._copies["argument", index, reason] += 1
        if slot.is_variable:
            return np.array(array, order="C"), False
        own = self._own[self._program.inputs[index]]
        own[...] = array
        return own, False

    def _outs(
        self, out: Sequence[Array | None] | None, wanted: Mapping[MemoryBlock, Array]
    ) -> dict[MemoryBlock, Array]:
        """The array to bind to each argument that holds a result."""
        outs: dict[MemoryBlock, Array] = {}
        for number, result in enumerate(self.outputs):
            given = None if out is None else out[number]
            memory = self._program.results[number]
            if result.input is None and isinstance(memory, MemoryBlock):
                if given is None:
                    given = self._donated(number, memory, wanted)
                outs[memory] = self._own[memory] if given is None else given
        return outs

    def _check_outs(self, out: Sequence[Array | None]) -> None:
        if len(out) != len(self.outputs):
            raise ValueError(
                f"the number of arrays in out is {len(out)}, expected "
                f"{len(self.outputs)}: one for each result, or None"
            )
        for number, (given, result) in enumerate(zip(out, self.outputs, strict=True)):
            if given is not None:
                check_out(given, result, number)

    def _donated(
        self, number: int, memory: MemoryBlock, wanted: Mapping[MemoryBlock, Array]
    ) -> Array | None:
        """The memory of the input that is donated to a result, if that can be used."""
        if number not in self._donors:
            return None
        donor, result = self._program.inputs[self._donors[number]], self.outputs[number]
        array = wanted.get(donor, self._bound[donor])
        if array is self._own[donor] or not array.flags.writeable:
            return None
        bound = self._bound[memory]
        if address(bound) == address(array):
            return bound
        return array.reshape(-1).view(result.dtype).reshape(result.shape)

    def _bind(self, wanted: Mapping[MemoryBlock, Array]) -> Changes:
        """Makes arrays the memory of arguments."""
        moved: list[MemoryBlock] = []
        renewed: list[MemoryBlock] = []
        for memory, array in wanted.items():
            before, memory.array = memory.start, array
            if memory.start != before:
                moved.append(memory)
            copies = self._copies_of(memory, array)
            if copies is not memory.prepacked:
                memory.prepacked = copies
                renewed.append(memory)
            self._bound[memory] = array
        return Changes(moved, renewed)

    def _copies_of(self, memory: MemoryBlock, array: Array) -> Prepacked | None:
        """The packed copies of the parameter in `array`. None for other arguments, and
        for the program's own memory, into which the next call may copy other contents.
        """
        index = self._numbers.get(memory)
        if index is None or not self._is_constant(index):
            return None
        if array is self._own[memory]:
            self.prepacked.pop(index, None)
            return None
        known = self.prepacked.get(index)
        if known is None or known[0] is not array:
            known = array, Prepacked(array.reshape(-1).view(np.uint8))
            self.prepacked[index] = known
        return known[1]

    def _is_constant(self, index: int) -> bool:
        """Whether no run changes the input."""
        return self.inputs[index].is_parameter and index not in self.donations

    def _separate(
        self, wanted: dict[MemoryBlock, Array], out: Sequence[Array | None] | None
    ) -> None:
        """Ensures that written memory overlaps no other argument.

        An input that overlaps written memory is copied. Raises `ValueError` if two
        inputs that are written overlap, or if an array in `out` overlaps another
        argument.
        """
        numbers = self._numbers
        inputs = {m for m, n in numbers.items() if self.inputs[n].is_written}
        results = {m for m in self._bound if m not in numbers}
        given = {
            memory
            for number, memory in enumerate(self._program.results)
            if out is not None and out[number] is not None
        }
        for pair in list(_overlaps(self._bound | wanted)):
            written = [m for m in pair if m in inputs or m in results]
            if not written or self._is_donation(*pair):
                continue
            readers = [m for m in pair if m not in written]
            moving = readers or [m for m in pair if m in inputs]
            if len(moving) != 1 or not given.isdisjoint(pair):
                raise ValueError(
                    "arrays for variables, results or donated inputs share memory "
                    "with one another or with another input"
                )
            memory = moving[0]
            array = wanted.get(memory, self._bound[memory])
            if array is self._own[memory]:
                continue
            self._copies["argument", numbers[memory], "in memory that is written"] += 1
            if memory in inputs:
                wanted[memory] = array.copy()
            else:
                self._own[memory][...] = array
                wanted[memory] = self._own[memory]

    def _is_donation(self, *pair: MemoryBlock) -> bool:
        inputs, results = self._program.inputs, self._program.results
        return any(
            inputs[index] in pair and results[number] in pair
            for index, number in self.donations.items()
        )

    def _bound_to(self, number: int) -> Array | None:
        """The array to return for a result; None if it has to be copied."""
        memory = self._program.results[number]
        if isinstance(memory, View):  # it is in a pool
            return None
        array = self._bound[memory]
        if self.outputs[number].input is not None or self._are_views:
            return array
        return None if array is self._own[memory] else array  # in `out`, or donated

    def _copied(self, number: int, out: Sequence[Array | None] | None) -> Array:
        memory = self._program.results[number]
        if isinstance(memory, View):
            array = memory.array()
            given = None if out is None else out[number]
            if given is not None:
                given[...] = array
                self._copies["result", number, "from a pool"] += 1
                return given
            if self._are_views:
                return array
        else:
            array = self._bound[memory]
            if handed_out := self._kept_by_callers(number, memory):
                return handed_out.hand_out()
        self._copies["result", number, "handed out"] += 1
        return array.copy()

    def _kept_by_callers(self, number: int, memory: MemoryBlock) -> HandedOut | None:
        """The blocks of a large result that is returned without a copy; None if the
        result is small or relocating its calls would remake them."""
        if memory not in self._handed_out:
            if memory.array.nbytes < LEAST or not self._program.follows(memory):
                return None
            self._handed_out[memory] = HandedOut(self.outputs[number], memory.bytes)
        return self._handed_out[memory]


def _are_same(given: Sequence[object], last: Sequence[object]) -> bool:
    return len(given) == len(last) and all(map(is_, given, last))


def _overlaps(
    arrays: Mapping[MemoryBlock, Array],
) -> Iterator[tuple[MemoryBlock, MemoryBlock]]:
    """The pairs of contiguous arrays that overlap in memory."""
    live: list[tuple[int, MemoryBlock]] = []  # with end addresses
    spans = [(address(a), a.nbytes, m) for m, a in arrays.items() if a.nbytes]
    for start, size, memory in sorted(spans, key=lambda span: span[0]):
        live = [(stop, other) for stop, other in live if stop > start]
        yield from ((memory, other) for _, other in live)
        live.append((start + size, memory))
