"""Tests boxes: buffers that together fill a rectangle of steps and bytes are planned as
one buffer."""

from itertools import accumulate, combinations
from random import Random

import pytest
from rectangles import rectangle

from tensorplan.planning import Buffer, Limits, Problem, solve, validate
from tensorplan.planning.solver.boxes import Borders, Boxes
from tensorplan.planning.solver.sections import Part, parts_of


def part_of(buffers: list[Buffer]) -> Part:
    [part] = parts_of([(b.start, b.end) for b in buffers], [b.size for b in buffers])
    return part


def test_adjacent_stacks_of_equal_height_form_a_box() -> None:
    buffers = [
        Buffer("a", 700, 0, 4),
        Buffer("b", 311, 0, 4),
        Buffer("c", 1011, 4, 9),
        Buffer("other", 500, 2, 6),
    ]
    part = part_of(buffers)
    boxes = Boxes(Borders.of(part), 0.1)
    spans = zip(boxes.part.first, boxes.part.end, boxes.part.size, strict=True)
    assert sorted(spans) == [(0, 1, 500), (0, 1, 1011)]  # both across step 4
    offsets = boxes.offsets([500 if size == 1011 else 0 for size in boxes.part.size])
    by_name = {
        buffers[i].id: offset for i, offset in zip(part.indices, offsets, strict=True)
    }
    assert by_name["other"] == 0
    assert by_name["c"] == 500
    assert sorted((by_name["a"], by_name["b"])) in ([500, 811], [500, 1200])


def test_equal_sums_of_few_bytes_form_no_box() -> None:
    buffers = [
        *(Buffer(f"a{n}", 5, 0, 4) for n in range(3)),
        *(Buffer(f"b{n}", 5, 4, 9) for n in range(3)),
        Buffer("across", 5, 2, 6),
    ]
    part = part_of(buffers)
    assert len(Boxes(Borders.of(part), 0.1).part.size) == len(buffers)
    assert len(Boxes(Borders.of(part), 10).part.size) < len(buffers)


def test_box_with_the_lifetime_of_another_comes_first() -> None:
    buffers = [
        Buffer("a", 1000, 0, 4),
        Buffer("b", 1000, 4, 8),
        Buffer("c", 1000, 4, 9),
        Buffer("across", 50, 3, 10),
    ]
    for twin in ("b", "c"):
        end = next(b.end for b in buffers if b.id == twin)
        part = part_of([*buffers, Buffer("other", 300, 0, end)])
        boxes = Boxes(Borders.of(part), 0.1).part
        spans = list(zip(boxes.first, boxes.end, boxes.size, strict=True))
        joined = next(span for span in spans if span[2] == 300)
        assert (*joined[:2], 1000) in spans


@pytest.mark.parametrize("seed", range(4))
def test_plan_of_boxes_is_a_valid_plan_of_buffers(seed: int) -> None:
    buffers = rectangle(seed, 150, 60, 100_000)
    part = max(
        parts_of([(b.start, b.end) for b in buffers], [b.size for b in buffers]),
        key=lambda part: len(part.size),
    )
    boxes = Boxes(Borders.of(part), 0.2, Random(seed))
    assert len(boxes.part.size) < len(part.size) // 2
    above = list(accumulate(boxes.part.size, initial=0))  # one above the other
    offsets = boxes.offsets(above[:-1])
    placed = list(zip(offsets, part.size, part.first, part.end, strict=True))
    for (low, size, first, end), (other, their, a, b) in combinations(placed, 2):
        assert end <= a or b <= first or low + size <= other or other + their <= low


def test_pieces_of_a_rectangle_are_planned_without_waste() -> None:
    problem = Problem(rectangle(1, 400, 150, 16_384))
    plan = solve(problem, "auto", Limits(effort=0.05))
    assert validate(problem, plan.offsets) is None
    assert plan.peak == 16_384
