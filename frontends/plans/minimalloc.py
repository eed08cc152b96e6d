"""Reads plans in minimalloc's format: buffers as CSV, with a column `offset`.

The format has no operations. Each step writes the buffers whose live ranges start in
it, and its end reads those whose live ranges end in it. Buffers that are live in one
step therefore must not overlap.
"""

from pathlib import Path

from ...planning import csv_format, peak_of
from ...support.foreign_plan import (
    ForeignPlan,
    ForeignPlanError,
    Memory,
    Region,
    Step,
    Value,
)
from .text import text_of

ENDINGS = (".csv", ".tsv")


def read_file(path: Path) -> ForeignPlan:
    """The plan in a CSV file. Raises `ForeignPlanError` or `OSError`."""
    try:
        table = csv_format.read(text_of(path), keep_offsets=True)
    except csv_format.CsvError as error:
        raise ForeignPlanError(error.reason, f"{path}:{error.line}") from None
    written: dict[int, list[Value]] = {}
    read: dict[int, list[Value]] = {}
    sizes: dict[str, int] = {}
    for buffer in table.buffers:
        if buffer.offset is None:
            raise ForeignPlanError(
                f"buffer {buffer.id} has no offset, expected a plan", str(path)
            )
        memory = buffer.pool or "arena"
        region = Region(memory, buffer.offset, buffer.size)
        end = peak_of([buffer], [buffer.offset])
        sizes[memory] = max(sizes.get(memory, 0), end)
        for number, (start, stop) in enumerate(buffer.live):
            name = f"{buffer.id}, part {number + 1}" if number else buffer.id
            value = Value(name, region)
            written.setdefault(start, []).append(value)
            read.setdefault(stop - 1, []).append(value)
    steps: list[Step] = []
    for at in sorted({*written, *read}):
        steps.append(Step(f"step {at}", "", writes=written.get(at, ())))
        steps.append(Step(f"the end of step {at}", "", reads=read.get(at, ())))
    memories = {name: Memory(size, "temporary") for name, size in sizes.items()}
    return ForeignPlan(str(path), memories, steps, (), (), is_trace=True)
