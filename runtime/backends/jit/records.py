"""Calls of native functions; joins sequences, loops and branches of them into one call.

A native function takes the address of an array of 64-bit words, most of which are
addresses. It returns 0 or, only if it calls oneDNN, the status of an error.
"""

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol, cast

from ....support.arrays import Array, address, span
from ...calls import Call
from .inlining import ALIGNMENT, LARGEST, Local, Part, branch, loop
from .llvm import Function, compiler
from .subnormals import FLUSHED, MODE
from .team import PARALLEL, team

TAPE = """define i32 @{name}(ptr %words) {
entry:
  %count = load i64, ptr %words
  %first = getelementptr i64, ptr %words, i64 1
  %some = icmp ne i64 %count, 0
  br i1 %some, label %next, label %done
next:
  %left = phi i64 [%count, %entry], [%fewer, %next]
  %at = phi ptr [%first, %entry], [%following, %next]
  %function = load ptr, ptr %at
  %sizeat = getelementptr i64, ptr %at, i64 1
  %size = load i64, ptr %sizeat
  %arguments = getelementptr i64, ptr %at, i64 2
  %status = call i32 %function(ptr %arguments)
  %following = getelementptr i64, ptr %arguments, i64 %size
  %fewer = sub i64 %left, 1
  %more = icmp ne i64 %fewer, 0
  %good = icmp eq i32 %status, 0
  %goes_on = and i1 %more, %good
  br i1 %goes_on, label %next, label %done
done:
  %result = phi i32 [0, %entry], [%status, %next]
  ret i32 %result
}"""
"""Calls functions one after the other, up to the first that fails. The words: the
number of functions, then for each its address, the number of its words, and these
words.
"""

_FLUSHING = f"""{TAPE.replace("i32 @{name}", "internal i32 @tape")}
define i32 @{{name}}(ptr %words) {{
  %before = call i64 @mode()
  %mode = or i64 %before, {FLUSHED}
  call void @set_mode(i64 %mode)
  %status = call i32 @tape(ptr %words)
  call void @set_mode(i64 %before)
  ret i32 %status
}}
{MODE}"""
"""Like `TAPE`, with subnormal numbers as zero."""

_CONTROL = """define i32 @{name}(ptr %words) {
entry:
  %flag = load ptr, ptr %words
  %functionat = getelementptr ptr, ptr %words, i64 1
  %function = load ptr, ptr %functionat
  %firstat = getelementptr ptr, ptr %words, i64 2
  %first = load ptr, ptr %firstat
  %secondat = getelementptr ptr, ptr %words, i64 3
  %second = load ptr, ptr %secondat
"""
"""The words: the addresses of a flag, of `TAPE`, and of the words of two tapes."""

WHILE = f"""{_CONTROL}  br label %next
next:
  %tested = call i32 %function(ptr %first)
  %is_set = load i8, ptr %flag
  %holds = icmp ne i8 %is_set, 0
  %good = icmp eq i32 %tested, 0
  %goes_on = and i1 %holds, %good
  br i1 %goes_on, label %run, label %done
run:
  %status = call i32 %function(ptr %second)
  %again = icmp eq i32 %status, 0
  br i1 %again, label %next, label %done
done:
  %result = phi i32 [%tested, %next], [%status, %run]
  ret i32 %result
}}"""
"""Runs the first tape; while it sets the flag, runs the second and the first again."""

IF = f"""{_CONTROL}  %is_set = load i8, ptr %flag
  %holds = icmp ne i8 %is_set, 0
  %tape = select i1 %holds, ptr %first, ptr %second
  %status = call i32 %function(ptr %tape)
  ret i32 %status
}}"""
"""Runs the first tape if the flag is set, otherwise the second."""


class Target(NamedTuple):
    """An address is written to `place`, or passed to `function` after `place`."""

    place: int
    function: int = 0


FOLLOW = """define internal i32 @{name}_follow(ptr %triples, i64 %count, i64 %start) {
entry:
  br label %next
next:
  %t = phi i64 [0, %entry], [%following, %written], [%following, %called]
  %more = icmp slt i64 %t, %count
  br i1 %more, label %write, label %yes
write:
  %triple = getelementptr [3 x i64], ptr %triples, i64 %t
  %target = load ptr, ptr %triple
  %functionat = getelementptr i64, ptr %triple, i64 1
  %function = load ptr, ptr %functionat
  %offsetat = getelementptr i64, ptr %triple, i64 2
  %offset = load i64, ptr %offsetat
  %address = add i64 %start, %offset
  %following = add i64 %t, 1
  %direct = icmp eq ptr %function, null
  br i1 %direct, label %written, label %called
written:
  store i64 %address, ptr %target
  br label %next
called:
  %status = call i32 %function(ptr %target, i64 %address)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %next, label %no
yes:
  ret i32 0
no:
  ret i32 1
}
"""
"""Updates all targets in `triples` for memory that starts at `start`. Returns 0, or 1
if a function fails.
"""


class Pointer(Protocol):
    """Makes a record use an array at another address, in memory that the caller keeps
    alive."""

    def __call__(self, address: int) -> object:
        """Sets the address."""
        ...

    @property
    def target(self) -> Target:
        """The target for native code, valid until the record's words move."""
        ...


def triples(points: Iterable[tuple[int, Pointer]]) -> list[int]:
    """The target, as two numbers, and the offset in bytes of each pointer."""
    return [x for offset, point in points for x in (*point.target, offset)]


class Record:
    """A call of a native function; it keeps the memory alive that its words point to.

    Raises `RuntimeError` if the function fails.
    """

    def __init__(self, function: Function):
        self._function = function

    @cached_property
    def words(self) -> ctypes.Array[ctypes.c_int64]:
        """The words, made on first use: measuring a kernel's workspace needs none."""
        words = self._made_words()
        return (ctypes.c_int64 * len(words))(*words)

    def _made_words(self) -> Sequence[int]:
        raise NotImplementedError

    def __call__(self) -> None:
        if status := self._function.entry(self.words):
            raise RuntimeError(f"native code (oneDNN) returned status {status}")

    @property
    def function(self) -> Function:
        return self._function

    def functions(self) -> Iterator[Function]:
        """All functions that the record calls."""
        yield self._function

    def pointers(self) -> Iterator[tuple[Array, Pointer]]:
        """The arrays that the record uses, each with the pointer that moves it."""
        return iter(())


class ArrayRecord(Record):
    """A record whose words are the addresses of arrays, followed by other words."""

    def __init__(self, function: Function, arrays: Sequence[Array], *others: int):
        super().__init__(function)
        self.arrays: list[Array | None] = list(arrays)
        """None for arrays that have been moved."""
        self.others = others
        """The words after the addresses."""

    def _made_words(self) -> Sequence[int]:
        arrays = (array for array in self.arrays if array is not None)
        return [*map(address, arrays), *self.others]

    def pointers(self) -> Iterator[tuple[Array, Pointer]]:
        for index, array in enumerate(self.arrays):
            if array is not None:
                yield array, _Word(self, index)

    def point(self, index: int, address: int) -> None:
        self.words[index] = address
        self.arrays[index] = None


class _Word(NamedTuple):
    record: ArrayRecord
    number: int

    def __call__(self, address: int) -> None:
        self.record.point(self.number, address)

    @property
    def target(self) -> Target:
        return Target(ctypes.addressof(self.record.words) + 8 * self.number)


class Tape:
    """Records that are called one after the other in one native call."""

    __slots__ = ("_function", "_words", "address", "records")

    def __init__(self, records: Sequence[Record], flush_subnormals: bool = False):
        """Moves the words of the records into this tape."""
        self._function = compiler().function(_FLUSHING if flush_subnormals else TAPE)
        self.records = records
        compiler().make(f for record in records for f in record.functions())
        words = [len(records)]
        for record in records:
            words += (record.function.address, len(record.words), *record.words)
        self._words = (ctypes.c_int64 * len(words))(*words)
        self.address = ctypes.addressof(self._words)
        at = 1
        for record in records:
            at += 2
            record.words = type(record.words).from_buffer(self._words, 8 * at)
            at += len(record.words)

    def __call__(self) -> None:
        if status := self._function.entry(self._words):
            raise RuntimeError(f"native code (oneDNN) returned status {status}")


class Control(ArrayRecord):
    """Runs tapes depending on a flag, in one call."""

    def __init__(self, text: str, flag: Array, *tapes: Tape):
        """`text` is `WHILE` or `IF`."""
        function, tape = compiler().function(text), compiler().function(TAPE)
        words = (tape.address, *(x.address for x in tapes))
        super().__init__(function, [flag], *words)
        self.text, self.tapes = text, tapes

    def pointers(self) -> Iterator[tuple[Array, Pointer]]:
        yield from super().pointers()
        for tape in self.tapes:
            for record in tape.records:
                yield from record.pointers()


class Parallel(Record):
    """Runs parts concurrently, in one call."""

    def __init__(self, members: int, parts: Sequence[Sequence[Record]]):
        """`members` is the number of threads that may help the caller's thread."""
        super().__init__(compiler().function(PARALLEL, quick=True))
        self.members, self._parts = members, parts

    def functions(self) -> Iterator[Function]:
        yield from super().functions()
        for part in self._parts:
            for record in part:
                yield from record.functions()

    @cached_property
    def tapes(self) -> Sequence[Tape]:
        return list(map(Tape, self._parts))

    def _made_words(self) -> Sequence[int]:
        words = [team().address, self.members, compiler().function(TAPE).address]
        return [*words, len(self.tapes), *(tape.address for tape in self.tapes)]

    def pointers(self) -> Iterator[tuple[Array, Pointer]]:
        for tape in self.tapes:
            for record in tape.records:
                yield from record.pointers()


def parallel(parts: Sequence[Sequence[Call]], threads: int) -> list[Call]:
    """The calls of independent parts, with their native calls in one concurrent call
    after all other calls. If other calls follow native ones in a part, the parts run
    one after the other."""
    in_order = [call for part in parts for call in part]
    kinds = [[isinstance(function, Record) for function, _ in part] for part in parts]
    if len(parts) == 1 or any(kind != sorted(kind) for kind in kinds):
        return in_order
    before = [call for call in in_order if not isinstance(call[0], Record)]
    records = [
        [function for function, _ in part if isinstance(function, Record)]
        for part in parts
    ]
    return [*before, (Parallel(min(threads, len(parts)) - 1, records), ())]


def controlled(
    text: str, flag: Array, *regions: Sequence[Call], own: Sequence[Array] = ()
) -> Call | None:
    """A call of `WHILE` or `IF`; None if a call in a region, after joining, is not
    native. `own` is memory that nothing outside the calls accesses while they run."""
    if record := _inlined(text, flag, regions, own):
        return record, ()
    make(call for calls in regions for call in calls)
    tapes: list[Tape] = []
    for calls in regions:
        functions = [function for function, _ in calls]
        if len(functions) == 1 and isinstance(functions[0], Tape):
            tapes.append(functions[0])
        elif all(isinstance(function, Record) for function in functions):
            tapes.append(Tape(cast("Sequence[Record]", functions)))
        else:
            return None
    return Control(text, flag, *tapes), ()


def make(calls: Iterable[Call]) -> None:
    """Compiles the machine code of all native calls together."""
    records = [function for function, _ in calls if isinstance(function, Record)]
    if records:
        compiler().make(f for record in records for f in record.functions())


def _inlined(
    text: str, flag: Array, regions: Sequence[Sequence[Call]], own: Sequence[Array]
) -> Record | None:
    """A loop or branch as one function; None if that is too long or not possible."""
    parts: list[list[Part]] = []
    arrays: list[Array | None] = [flag]
    for calls in regions:
        parts.append([])
        for record in _records(calls):
            if type(record) is not ArrayRecord:
                return None
            called, count = record.function.text, len(record.arrays)
            parts[-1].append(Part(called, count, record.others))
            arrays += record.arrays
    known = [array for array in arrays if array is not None]
    if len(known) < len(arrays):
        return None
    condition, body = parts
    if text is WHILE:
        function = loop(condition, body, _locals(known, own))
    else:
        function = branch(condition, body)
    if function is None:
        return None
    return ArrayRecord(compiler().function(function), known)


def _locals(arrays: Sequence[Array], own: Sequence[Array]) -> list[Local]:
    """Small buffers in `own` memory, each with the indices of the arrays in it."""
    blocks = [span(block) for block in own]
    spans = {number: span(array) for number, array in enumerate(arrays)}
    found: list[tuple[int, int, dict[int, int]]] = []
    for number in sorted(spans, key=spans.__getitem__):
        start, stop = spans[number]
        if not any(low <= start and stop <= high for low, high in blocks):
            continue
        first, last, words = start, stop, dict[int, int]()
        if found and start < found[-1][1]:  # overlaps the last buffer
            first, last, words = found.pop()
        words[number] = address(arrays[number]) - first
        found.append((first, max(last, stop), words))
    return [
        Local(last - first, words)
        for first, last, words in found
        if last - first <= LARGEST and first % ALIGNMENT == 0 and 0 in words.values()
    ]


def _records(calls: Sequence[Call]) -> Iterator[object]:
    for function, _ in calls:
        if isinstance(function, Tape):
            yield from function.records
        else:
            yield function


def is_native(calls: Sequence[Call]) -> bool:
    """Whether no call is a Python or NumPy function."""
    return all(isinstance(function, Record | Tape) for function, _ in calls)


def joined(calls: Sequence[Call], flush_subnormals: bool = False) -> list[Call]:
    """The same calls, with consecutive records joined into tapes."""
    result: list[Call] = []
    run: list[Record] = []

    def end_run() -> None:
        if run:
            result.append((Tape(run.copy(), flush_subnormals), ()))
        run.clear()

    for call in calls:
        if isinstance(call[0], Record):
            run.append(call[0])
        else:
            end_run()
            result.append(call)
    end_run()
    return result
