"""Tests plans for memories with banks: plan-memory places operands of an operation in
different banks.

The simulator reads operands element by element and finds the bank of each element. The
planner computes collisions from periods and runs instead.
"""

from random import Random

import pytest
from modules import run
from unchanged_ir import parsed
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.checking.plan_check import check_plan
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.planning import Buffer, Problem, solve
from tensorplan.planning.banks import Banks, Together, collisions, spread
from tensorplan.planning.problem import peak_of

M = 'memref<16xf32, "L1">'
CLUSTER = (
    '"capacity" = 4096 : i64, "alignment" = 8 : i64, "banks" = 16 : i64, '
    '"interleaving" = 4 : i64'
)
BLOCKS = '"capacity" = 1024 : i64, "alignment" = 8 : i64, "banks" = 4 : i64'


def simulated(banks: Banks, pair: Together, first: int, second: int) -> int:
    """The number of cycles in which two reads access the same bank."""
    count = 0
    for n in range(pair.elements):
        addresses = (
            banks.base + first + n * pair.strides[0],
            banks.base + second + n * pair.strides[1],
        )
        one, other = (address % banks.row // banks.width for address in addresses)
        count += one == other
    return count


def test_collisions_agree_with_simulation() -> None:
    random = Random(0)
    for _ in range(300):
        banks = Banks(
            random.choice([2, 3, 8, 16]),
            random.choice([4, 6, 64]),
            random.choice([0, 36]),
        )
        strides = random.choice([1, 2, 4, 8]), random.choice([1, 4, 8])
        pair = Together(0, 1, strides, random.randrange(200))
        offsets = random.randrange(0, 300, 2), random.randrange(300)
        assert collisions(banks, pair, *offsets) == simulated(banks, pair, *offsets)


@pytest.mark.parametrize("seed", range(30))
def test_spread_buffers_do_not_overlap_or_collide_more(seed: int) -> None:
    random = Random(seed)
    buffers: list[Buffer] = []
    for n in range(20):
        start = random.randrange(10)
        end = start + random.randrange(1, 6)
        buffers.append(Buffer(f"b{n}", random.randrange(8, 200), start, end, 8))
    plan = solve(Problem(buffers), "greedy-by-size")
    pairs = [
        Together(a, b, (4, 4), min(buffers[a].size, buffers[b].size) // 4)
        for a in range(20)
        for b in range(a)
        if buffers[a].overlaps(buffers[b]) and random.random() < 0.5
    ]
    banks, limit = Banks(8, 4), plan.peak + random.choice([0, 0, 64])

    def total(offsets: list[int]) -> int:
        return sum(
            simulated(banks, p, offsets[p.first], offsets[p.second]) for p in pairs
        )

    found = spread(buffers, plan.offsets, pairs, banks, limit)
    assert total(found) <= total(list(plan.offsets))
    assert peak_of(buffers, found) <= limit
    assert not any(offset % 8 for offset in found)
    for a in range(20):
        for b in range(a):
            assert (
                not buffers[a].overlaps(buffers[b])
                or found[a] + buffers[a].size <= found[b]
                or found[b] + buffers[b].size <= found[a]
            )


def program(memory: str, before: int = 0) -> ModuleOp:
    """A program that reads %a and %b together, and needs `before` bytes before that."""
    large = f'memref<{before}xi8, "L1">'
    return parsed(f"""
module attributes {{dlti.target_system_spec = #dlti.target_system_spec<
    "L1" = #dlti.target_device_spec<{memory}>>}} {{
  func.func @f(%w: memref<{before}xi8>, %x: memref<16xf32>, %y: memref<16xf32>) {{
    %large = memref.alloc() : {large}
    "memref.copy"(%w, %large) : (memref<{before}xi8>, {large}) -> ()
    "memref.copy"(%large, %w) : ({large}, memref<{before}xi8>) -> ()
    %a = memref.alloc() : {M}
    %b = memref.alloc() : {M}
    %c = memref.alloc() : {M}
    "memref.copy"(%x, %a) : (memref<16xf32>, {M}) -> ()
    "memref.copy"(%x, %b) : (memref<16xf32>, {M}) -> ()
    tgraph.add %a, %b outs(%c) : ({M}, {M}) -> {M}
    "memref.copy"(%c, %y) : ({M}, memref<16xf32>) -> ()
    func.return
  }}
}}""")


def measured(module: ModuleOp) -> tuple[int, int]:
    """The bytes of the arena, and the number of bank collisions."""
    (pool,) = tensorplan.report(module)["pools"]
    assert "bank_collisions" in pool
    return pool["bytes"], pool["bank_collisions"]


@pytest.mark.parametrize(
    ("memory", "before", "slack", "expected"),
    [
        (CLUSTER, 256, 0, (256, 0)),
        (CLUSTER, 8, 0, (192, 16)),
        (CLUSTER, 8, 4, (192, 16)),
        (CLUSTER, 8, 8, (200, 0)),
        (CLUSTER, 8, 128, (200, 0)),
        (BLOCKS, 512, 0, (512, 0)),
    ],
)
def test_bytes_and_collisions_of_plans(
    memory: str, before: int, slack: int, expected: tuple[int, int]
) -> None:
    module = run(program(memory, before), PlanMemory(bank_slack=slack))
    assert measured(module) == expected
    (planned,) = check_plan(module)
    places = {buffer.name: buffer.offset for buffer in planned.buffers}
    banks = Banks(16, 4) if memory is CLUSTER else Banks(4, 256)
    pair = Together(0, 1, (4, 4), 16)
    assert simulated(banks, pair, places["%a"], places["%b"]) == expected[1]


def test_memories_without_banks_have_no_collisions() -> None:
    module = run(program('"capacity" = 4096 : i64', 8), PlanMemory())
    (pool,) = tensorplan.report(module)["pools"]
    assert "bank_collisions" not in pool


def test_a_negative_slack_is_refused() -> None:
    with pytest.raises(ValueError, match="bank-slack is -1, expected 0 or more"):
        PlanMemory(bank_slack=-1)
