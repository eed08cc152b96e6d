"""Divides a primitive into parts, which threads compute concurrently."""

from collections.abc import Callable, Sequence

from ...calls import Call
from ...pool import Scratch
from ..jit.records import parallel
from ..parts import Slices
from .library import Refused
from .primitives import Execution, is_reorder


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

    def implementations(blocks: Sequence[Slices]) -> set[str]:
        """The implementations for all blocks; empty if `make` refuses."""
        probe = scratch.probe
        probe.reset()
        probe.constants = [x.probe for x in scratch.constants]
        try:
            functions = [x for block in blocks for x, _ in make(block, probe)]
        except Refused:
            return set()
        return {
            x.description.implementation
            for x in functions
            if isinstance(x, Execution) and not is_reorder(x)
        }

    chosen: Sequence[Slices] = [whole]
    several = [blocks for blocks in divisions if len(blocks) > 1]
    wanted = implementations([whole]) if several else set[str]()
    for blocks in several:
        found = implementations(blocks)
        if found == wanted and len(found) == 1:
            chosen = blocks
            break
        if found and not alike and len(chosen) == 1:
            chosen = blocks
    if len(chosen) == 1:
        return make(whole, scratch)
    return parallel([make(block, scratch) for block in chosen], scratch.threads)
