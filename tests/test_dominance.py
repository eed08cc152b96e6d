"""Tests the dominance of blocks against xDSL's slower analysis."""

from random import Random

import pytest
from xdsl.dialects import test
from xdsl.ir import Block, Region
from xdsl.irdl.dominance import DominanceInfo

from tensorplan.dialects.dominance import Dominance, in_order


def graph(random: Random, count: int) -> Region:
    """Blocks with random successors."""
    blocks = [Block() for _ in range(count)]
    for block in blocks:
        chosen = random.choices(blocks, k=random.randrange(3))
        block.add_op(test.TestTermOp.create(successors=chosen))
    return Region(blocks)


@pytest.mark.parametrize("seed", range(100))
def test_dominance_agrees_with_xdsl(seed: int) -> None:
    """Dominance agrees if at least one block is reachable. Unreachable blocks lose
    their successors first, because xDSL counts edges from them."""
    random = Random(seed)
    region = graph(random, random.randint(1, 9))
    alive = in_order(region.blocks[0])
    for dead in [block for block in region.blocks if block not in alive]:
        (op,) = dead.ops
        dead.erase_op(op)
        dead.add_op(test.TestTermOp.create())
    expected, found = DominanceInfo(region), Dominance(region)
    for one in region.blocks:
        for other in region.blocks:
            if one in alive or other in alive:
                assert found.dominates(one, other) == expected.dominates(one, other)


def test_dominance_of_unreachable_blocks() -> None:
    """An unreachable block dominates its unreachable successor, but not a reachable
    one."""
    blocks = [Block() for _ in range(4)]
    for block, others in zip(blocks, ([1], [], [3, 1], []), strict=True):
        block.add_op(test.TestTermOp.create(successors=[blocks[n] for n in others]))
    dominance = Dominance(Region(blocks))
    below = [[dominance.dominates(a, b) for b in blocks] for a in blocks]
    assert below == [
        [True, True, False, False],
        [False, True, False, False],
        [False, False, True, True],
        [False, False, False, True],
    ]


def test_blocks_come_before_their_successors() -> None:
    random = Random(0)
    blocks = [Block() for _ in range(50)]
    for number, block in enumerate(blocks):
        later = blocks[number + 1 : number + 4]
        chosen = random.sample(later, min(2, len(later)))
        block.add_op(test.TestTermOp.create(successors=chosen))
    region = Region([blocks[0], *random.sample(blocks[1:], 49)])
    order = {block: number for number, block in enumerate(in_order(blocks[0]))}
    assert len(order) > 40
    for block in filter(order.__contains__, region.blocks):
        for successor in block.last_op.successors if block.last_op else ():
            assert order[block] < order[successor]
