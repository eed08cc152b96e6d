"""Tests that BFC behaves as TensorFlow's allocator until the latter reaches a defect.

Both get the same requests. After each request, the chunks, the regions, the queue of
stamped chunks and the calls of the sub-allocator must be equal.
"""

import itertools
from collections import Counter

import pytest
from fake_memory import FakeMemory, check_sound
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tensorflow_bfc import TensorFlowBFC

from tensorplan.runtime.allocators import BFC, OutOfMemoryError, Regions

LIMIT = 16 << 10


class Pair:
    """BFC and the reimplementation of TensorFlow's allocator, over equal memories."""

    def __init__(
        self, *, is_timed: bool, collects: bool = False, coalesces: bool = True
    ):
        self.memories = [FakeMemory(supports_coalescing=coalesces) for _ in range(2)]
        ours, theirs = self.memories
        clock = itertools.count(1).__next__ if is_timed else None
        self.ours = BFC(Regions(ours, LIMIT), garbage_collection=collects, clock=clock)
        self.theirs = TensorFlowBFC(theirs, LIMIT, collects=collects, is_timed=is_timed)
        self.live: list[int] = []

    def allocate(self, size: int, freed_before: int = 0) -> None:
        expected = self.theirs.allocate(size, freed_before)
        try:
            address = self.ours.allocate(size, freed_before=freed_before)
        except OutOfMemoryError:
            address = None
        if not self.theirs.is_defective:
            assert address == expected
        if address is not None:
            self.live.append(address)

    def free(self, address: int) -> None:
        self.live.remove(address)
        self.ours.deallocate(address)
        self.theirs.free(address)

    def set_safe_frontier(self, stamp: int) -> None:
        self.ours.set_safe_frontier(stamp)
        self.theirs.set_safe_frontier(stamp)

    def check(self) -> None:
        check_sound(self.ours)
        if self.theirs.is_defective:
            return
        dump = self.ours.dump()
        theirs = self.theirs
        assert list(dump.regions) == [(r.address, r.size) for r in theirs.regions]
        assert [
            (block.address, block.size, block.id, 0 if block.id else block.freed_at)
            for block in dump.blocks
        ] == [
            (chunk.address, chunk.size, chunk.id, 0 if chunk.id else chunk.stamp)
            for chunk in theirs.chunks()
        ]
        assert dump.stamped == [chunk.address for chunk in theirs.queue]
        ours, other = (memory.calls for memory in self.memories)
        assert ours == other


class Histories(RuleBasedStateMachine):
    """Random histories, which restart when TensorFlow's allocator reaches a defect."""

    def __init__(self) -> None:
        super().__init__()
        self.pair = Pair(is_timed=True)

    @precondition(lambda self: self.pair.theirs.is_defective)
    @rule(is_timed=st.booleans(), collects=st.booleans(), coalesces=st.booleans())
    def start_anew(self, is_timed: bool, collects: bool, coalesces: bool) -> None:
        self.pair = Pair(is_timed=is_timed, collects=collects, coalesces=coalesces)

    @precondition(lambda self: not self.pair.theirs.is_defective)
    @rule(size=st.integers(1, 24), is_timed=st.booleans(), data=st.data())
    def allocate(self, size: int, is_timed: bool, data: st.DataObject) -> None:
        stamp = self.pair.theirs.stamp
        before = data.draw(st.integers(1, stamp)) if is_timed and stamp else 0
        self.pair.allocate(size * 256 - 1, before)

    @precondition(lambda self: self.pair.live)
    @precondition(lambda self: not self.pair.theirs.is_defective)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        self.pair.free(data.draw(st.sampled_from(self.pair.live)))

    @rule(share=st.integers(1, 4))
    def advance(self, share: int) -> None:
        self.pair.set_safe_frontier(self.pair.theirs.stamp * share // 4)

    @invariant()
    def is_same(self) -> None:
        self.pair.check()


def test_random_histories() -> None:
    run_state_machine_as_test(  # pyright: ignore
        Histories, settings=settings(max_examples=60, stateful_step_count=80)
    )


@pytest.mark.slow
def test_long_random_histories() -> None:
    run_state_machine_as_test(  # pyright: ignore
        Histories, settings=settings(max_examples=1000, stateful_step_count=120)
    )


def test_chunk_of_a_forced_merge_is_not_queued() -> None:
    pair = Pair(is_timed=True)
    for _ in range(4):
        pair.allocate(LIMIT // 4)
    for address in (0, LIMIT // 4):
        pair.free(address)
    pair.allocate(LIMIT // 2)
    assert pair.theirs.forced_merges == 1
    assert pair.ours.dump().stamped == []
    pair.check()


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_forced_merges_of_all_orders(order: tuple[int, ...]) -> None:
    """All blocks are freed in `order`. Then a request of each size forces a merge."""
    seen: Counter[bool] = Counter()
    for blocks in range(1, 5):
        pair = Pair(is_timed=True)
        for _ in range(4):
            pair.allocate(LIMIT // 4)
        for place in order:
            pair.free(place * LIMIT // 4)
        pair.allocate(blocks * LIMIT // 4)
        pair.check()
        seen[pair.theirs.is_defective] += 1
    assert seen[False]
