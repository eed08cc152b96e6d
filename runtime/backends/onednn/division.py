"""Divides a primitive into parts, which threads compute concurrently, and into turns,
which one thread computes one after the other."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ...calls import Call
from ...pool import UNLIMITED, Scratch
from ..jit.records import parallel
from ..parts import Slices
from .library import Refused
from .primitives import Execution, is_reorder

TURN = 1 << 17
"""The scratch memory of a turn in bytes. Starting the primitives of a turn takes some
thousand nanoseconds, a twentieth of the time of a turn of this size."""


def turns(make: Callable[[Scratch], list[Call]], count: int, scratch: Scratch) -> int:
    """The number of turns, up to `count`, so that converting a turn's images to other
    layouts takes at most about `TURN` bytes of scratch memory, or as few as possible.
    `make` returns the calls for all."""
    if count < 2:
        return 1
    probe = _probe(scratch)
    make(probe)
    step = -(-count // min(count, max(1, -(-probe.peak // TURN))))
    return -(-count // step)


def in_turns(
    makes: Iterable[Callable[[Scratch], list[Call]]], scratch: Scratch
) -> list[Call]:
    """The calls of `makes`, one after the other, in the same scratch memory."""
    calls: list[Call] = []
    start = end = scratch.mark
    for make in makes:
        scratch.mark = start
        calls += make(scratch)
        end = max(end, scratch.mark)
    scratch.mark = end
    return calls


def peak(makes: Iterable[Callable[[Scratch], list[Call]]], scratch: Scratch) -> int:
    """The bytes of scratch memory that `makes` need in turns."""
    probe = _probe(scratch)
    try:
        in_turns(makes, probe)
    except Refused:
        return UNLIMITED
    return probe.peak


def implementations(
    makes: Iterable[Callable[[Scratch], list[Call]]], scratch: Scratch
) -> set[str]:
    """oneDNN's implementations of the primitives that `makes` call, except those that
    convert layouts; empty if one of `makes` refuses."""
    probe = _probe(scratch)
    try:
        functions = [function for make in makes for function, _ in make(probe)]
    except Refused:
        return set()
    return {
        x.description.implementation
        for x in functions
        if isinstance(x, Execution) and not is_reorder(x)
    }


def _probe(scratch: Scratch) -> Scratch:
    probe = scratch.probe
    probe.reset()
    probe.constants = [x.probe for x in scratch.constants]
    return probe


def in_parts(
    make: Callable[[Slices, Scratch], list[Call]],
    divisions: Sequence[Sequence[Slices]],
    scratch: Scratch,
    alike: bool = True,
) -> list[Call]:
    """The calls that `make` returns for blocks of a result, run concurrently. Takes the
    first of `divisions` for which oneDNN uses the same implementation as for the whole
    result, since others are mostly slower. If the parts need not be `alike`, otherwise
    takes the first for which it has more than its reference implementation. Without
    such a division, computes the whole result at once."""
    whole = (slice(None),) * len(divisions[0][0])

    def found_for(blocks: Sequence[Slices]) -> set[str]:
        return implementations([partial(make, block) for block in blocks], scratch)

    chosen: Sequence[Slices] = [whole]
    several = [blocks for blocks in divisions if len(blocks) > 1]
    wanted = found_for([whole]) if several else set[str]()
    for blocks in several:
        found = found_for(blocks)
        if found == wanted and len(found) == 1:
            chosen = blocks
            break
        if found and not alike and len(chosen) == 1:
            chosen = blocks
    if len(chosen) == 1:
        return make(whole, scratch)
    return parallel([make(block, scratch) for block in chosen], scratch.threads)
