"""Binds new arrays to arguments that are only read, in one native call.

After a few calls, it is known which arrays an argument accepts, and which words hold
its address (arguments.py, program/relocation.py). Native code then checks the fields of
each new array in NumPy's C struct, `PyArrayObject`, and writes the array's address to
these words. Any array that does not pass is left to Python; native code has changed
nothing then.
"""

import ctypes
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from ..support.arrays import Array
from ..support.slots import Slot
from .backends.jit import llvm
from .backends.jit.records import FOLLOW, triples
from .program.relocation import Point

Pairs: TypeAlias = Iterable[tuple[int, int]]


class Reader(NamedTuple):
    """An input that is only read, and the places that hold its address."""

    slot: Slot
    points: Sequence[Point]


HEAD = object.__basicsize__
"""The size in bytes of an object's header, `PyObject`; its last word is the type."""

PLAIN = 0x101
"""The bits of `flags.num` that C-contiguous, aligned arrays have set."""

BIND = f"""{FOLLOW}define i32 @{{name}}(ptr %words) {{
entry:
  %tuple = load ptr, ptr %words
  %items = getelementptr i8, ptr %tuple, i64 {tuple.__basicsize__}
  %kindat = getelementptr i64, ptr %words, i64 1
  %kind = load ptr, ptr %kindat
  %countat = getelementptr i64, ptr %words, i64 2
  %count = load i64, ptr %countat
  %spansat = getelementptr i64, ptr %words, i64 3
  %spans = load i64, ptr %spansat
  %pairsat = getelementptr i64, ptr %words, i64 4
  %pairs = load ptr, ptr %pairsat
  %inputs = getelementptr i64, ptr %words, i64 5
  br label %check
check:
  %i = phi i64 [0, %entry], [%following, %fits]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %look, label %bind
look:
  %itemat = getelementptr ptr, ptr %items, i64 %i
  %item = load ptr, ptr %itemat
  %input = getelementptr [7 x i64], ptr %inputs, i64 %i
  %last = load ptr, ptr %input
  %same = icmp eq ptr %item, %last
  br i1 %same, label %fits, label %typed
typed:
  %typeat = getelementptr i8, ptr %item, i64 {HEAD - 8}
  %type = load ptr, ptr %typeat
  %array = icmp eq ptr %type, %kind
  br i1 %array, label %alike, label %no
alike:
  %dtypeat = getelementptr i8, ptr %item, i64 {HEAD + 40}
  %dtype = load ptr, ptr %dtypeat
  %wanteddtypeat = getelementptr i64, ptr %input, i64 1
  %wanteddtype = load ptr, ptr %wanteddtypeat
  %samedtype = icmp eq ptr %dtype, %wanteddtype
  %rankat = getelementptr i8, ptr %item, i64 {HEAD + 8}
  %rank32 = load i32, ptr %rankat
  %rank = sext i32 %rank32 to i64
  %wantedrankat = getelementptr i64, ptr %input, i64 2
  %wantedrank = load i64, ptr %wantedrankat
  %samerank = icmp eq i64 %rank, %wantedrank
  %flagsat = getelementptr i8, ptr %item, i64 {HEAD + 48}
  %flags = load i32, ptr %flagsat
  %plainflags = and i32 %flags, {PLAIN}
  %plain = icmp eq i32 %plainflags, {PLAIN}
  %both = and i1 %samedtype, %samerank
  %all = and i1 %both, %plain
  %sizesat = getelementptr i8, ptr %item, i64 {HEAD + 16}
  %sizes = load ptr, ptr %sizesat
  %wantedsizesat = getelementptr i64, ptr %input, i64 3
  %wantedsizes = load ptr, ptr %wantedsizesat
  br i1 %all, label %dims, label %no
dims:
  %d = phi i64 [0, %alike], [%nextd, %dim]
  %mored = icmp slt i64 %d, %rank
  br i1 %mored, label %dim, label %place
dim:
  %sizeat = getelementptr i64, ptr %sizes, i64 %d
  %size = load i64, ptr %sizeat
  %wantedsizeat = getelementptr i64, ptr %wantedsizes, i64 %d
  %wantedsize = load i64, ptr %wantedsizeat
  %samesize = icmp eq i64 %size, %wantedsize
  %nextd = add i64 %d, 1
  br i1 %samesize, label %dims, label %no
place:
  %dataat = getelementptr i8, ptr %item, i64 {HEAD}
  %data = load i64, ptr %dataat
  %bytesat = getelementptr i64, ptr %input, i64 4
  %bytes = load i64, ptr %bytesat
  %end = add i64 %data, %bytes
  br label %apart
apart:
  %s = phi i64 [0, %place], [%nexts, %span]
  %mores = icmp slt i64 %s, %spans
  br i1 %mores, label %span, label %fits
span:
  %pair = getelementptr [2 x i64], ptr %pairs, i64 %s
  %start = load i64, ptr %pair
  %stopat = getelementptr i64, ptr %pair, i64 1
  %stop = load i64, ptr %stopat
  %before = icmp ult i64 %data, %stop
  %after = icmp ult i64 %start, %end
  %overlaps = and i1 %before, %after
  %nexts = add i64 %s, 1
  br i1 %overlaps, label %no, label %apart
fits:
  %following = add i64 %i, 1
  br label %check
bind:
  %j = phi i64 [0, %check], [%nextj, %bound]
  %morej = icmp slt i64 %j, %count
  br i1 %morej, label %take, label %yes
take:
  %newat = getelementptr ptr, ptr %items, i64 %j
  %new = load ptr, ptr %newat
  %to = getelementptr [7 x i64], ptr %inputs, i64 %j
  %old = load ptr, ptr %to
  %unchanged = icmp eq ptr %new, %old
  br i1 %unchanged, label %bound, label %moved
moved:
  store ptr %new, ptr %to
  %addressat = getelementptr i8, ptr %new, i64 {HEAD}
  %address = load i64, ptr %addressat
  %targetsat = getelementptr i64, ptr %to, i64 5
  %targets = load i64, ptr %targetsat
  %triplesat = getelementptr i64, ptr %to, i64 6
  %triples = load ptr, ptr %triplesat
  %failed = call i32 @{{name}}_follow(ptr %triples, i64 %targets, i64 %address)
  %good = icmp eq i32 %failed, 0
  br i1 %good, label %bound, label %no
bound:
  %nextj = add i64 %j, 1
  br label %bind
yes:
  ret i32 0
no:
  ret i32 1
}}"""
"""The words: a tuple; the type that its items must have, and their number; the number
of memory spans that the items must not overlap, and the address of the spans; and for
each item the object that is bound, its element type, its rank, the address of its
sizes, its bytes, the number of its targets, and their address. Returns 0 if all items
are bound, else 1.
"""


class Rebinding:
    """Binds tuples of arrays to inputs that are only read."""

    def __init__(
        self,
        readers: Sequence[Reader | None],
        last: Sequence[object],
        written: Pairs,
    ):
        """`last` are the objects that are bound now; an input without a reader accepts
        no other object. `written` are the starts and ends of memory that is written."""
        self._kept: list[Any] = []
        spans = [bound for pair in written for bound in pair]
        words = [0, id(np.ndarray), len(last), len(spans) // 2, self._listed(spans)]
        for reader, given in zip(readers, last, strict=True):
            words.append(id(given))
            if reader is None:
                words += [0] * 6
                continue
            slot, points = reader
            self._kept.append(slot.dtype)
            words += [id(slot.dtype), len(slot.shape), self._listed(slot.shape)]
            words += [prod(slot.shape) * slot.dtype.itemsize, len(points)]
            words.append(self._listed(triples(points)))
        self._count = len(last)
        self._first = len(words) - 7 * len(last)
        self._words = (ctypes.c_int64 * len(words))(*words)
        self._at = ctypes.addressof(self._words)
        self._function = _function()

    def note(self, shown: Iterable[tuple[int, object]]) -> None:
        """Records the objects that are bound, by index of the item. The caller must
        keep each object alive as long as it is bound."""
        for number, given in shown:
            self._words[self._first + 7 * number] = id(given)

    def _listed(self, numbers: Sequence[int]) -> int:
        """The address of an array of these numbers."""
        array = (ctypes.c_int64 * len(numbers))(*numbers)
        self._kept.append(array)
        return ctypes.addressof(array)

    def __call__(self, arrays: tuple[object, ...]) -> bool:
        """Returns whether all arrays are bound. If not, the previous binding is
        unchanged, unless oneDNN has failed."""
        if len(arrays) != self._count:
            return False
        self._words[0] = id(arrays)
        return self._function(self._at) == 0


def _function() -> Any:
    """The native function; it runs with Python's global interpreter lock held."""
    address = llvm.compiler().function(BIND).address
    return ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(address)


def is_available() -> bool:
    """Whether native code is available and objects have the layout that it expects."""
    if not llvm.is_available():
        return False
    sample = cast(Array, np.zeros((2, 3), np.float32))
    rank, flags = (
        ctypes.c_int.from_address(id(sample) + HEAD + at).value for at in (8, 48)
    )
    items = (sample,)
    dtype, kind, item = (
        ctypes.c_size_t.from_address(at).value
        for at in (
            *(id(sample) + HEAD + 40, id(sample) + HEAD - 8),
            id(items) + tuple.__basicsize__,
        )
    )
    is_array = (dtype, kind) == (id(sample.dtype), id(np.ndarray))
    return is_array and (rank, flags, item) == (2, sample.flags.num, id(sample))
