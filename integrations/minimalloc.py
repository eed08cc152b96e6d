"""minimalloc's Python API and command line, with tensorplan's planner.

The module has the names of minimalloc's Python bindings, and those of the fork that
snax-mlir uses (`Buffer(id, start, end, size, alignment)`, `Problem.solve`):

    from tensorplan.integrations import minimalloc as mm

    problem = mm.Problem([mm.Buffer("a", mm.Lifespan(0, 2), size=4)], capacity=12)
    solution = mm.Solver().solve(problem)  # None: no plan within the capacity

The command `plan-minimalloc` has the flags and the exit codes of `minimalloc`. The
flags that tune minimalloc's search are accepted and have no effect.

Does not: support windows in gaps, which are an error, functions that show steps of the
search (`sweep`), or reports of infeasible subsets.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from .. import planning
from ..planning import csv_format

__all__ = [
    "Buffer",
    "Duration",
    "Gap",
    "Interval",
    "Lifespan",
    "MiniMallocError",
    "Problem",
    "Solution",
    "Solver",
    "SolverParams",
    "ValidationResult",
    "Window",
    "from_csv",
    "from_csv_file",
    "to_csv",
    "to_csv_file",
    "validate",
]


class Interval(NamedTuple):
    """A half-open interval of steps or of bytes."""

    lower: int = 0
    upper: int = 0


Lifespan = Window = Interval


EMPTY = Interval()


@dataclass
class Gap:
    lifespan: Interval = EMPTY
    window: Interval | None = None


@dataclass
class Buffer:
    """`Buffer(id, lifespan, size, alignment=1, gaps=[], offset=None, hint=None)`, or in
    the fork's form `Buffer(id, start_time, end_time, size, alignment)`. An alignment of
    0 means no alignment."""

    def __init__(
        self,
        id: str = "",
        lifespan: Interval | int = EMPTY,
        size: int = 0,
        alignment: int = 1,
        gaps: Sequence[Gap] | int = (),
        offset: int | None = None,
        hint: int | None = None,
    ):
        self.id = id
        if isinstance(lifespan, int):
            lifespan, size = Interval(lifespan, size), alignment
            alignment = gaps if isinstance(gaps, int) else 1
        self.lifespan, self.size, self.alignment = lifespan, size, alignment
        self.gaps = [] if isinstance(gaps, int) else list(gaps)
        self.offset, self.hint = offset, hint

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Buffer) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.id, self.lifespan, self.size))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"Buffer({fields})"

    @property
    def start_time(self) -> int:
        return self.lifespan.lower

    @property
    def end_time(self) -> int:
        return self.lifespan.upper

    @end_time.setter
    def end_time(self, end: int) -> None:
        self.lifespan = Interval(self.start_time, end)

    def planned(self) -> planning.Buffer:
        """Converts to a buffer of tensorplan's planner. A buffer with an empty lifespan
        becomes live for one step.

        Raises `ValueError` for values that are out of range, and windows in gaps."""
        if any(gap.window for gap in self.gaps):
            raise ValueError(f"buffer {self.id}: windows in gaps are not supported")
        start, end = self.lifespan
        return planning.Buffer(
            *(self.id, self.size, start, max(end, start + 1), self.alignment or 1),
            [gap.lifespan for gap in self.gaps],
            self.offset,
            hint=self.hint,
        )


@dataclass(unsafe_hash=True)
class Solution:
    """The offset of each buffer, and the highest end of a buffer, in bytes. As in the
    fork, the items of a solution are the offsets."""

    offsets: Sequence[int] = ()
    height: int = 0

    def __iter__(self) -> Iterator[int]:
        return iter(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets)

    def __getitem__(self, index: int) -> int:
        return self.offsets[index]


class MiniMallocError(Exception):
    """There is no plan within the capacity."""


@dataclass
class Problem:
    buffers: list[Buffer] = field(default_factory=list[Buffer])
    capacity: int = 0

    def solve(self) -> Solution:
        """Raises `MiniMallocError` if there is no plan within the capacity."""
        if (solution := Solver().solve(self)) is None:
            raise MiniMallocError(f"no plan within {self.capacity} bytes")
        return solution

    def planned(self) -> Sequence[planning.Buffer]:
        return [buffer.planned() for buffer in self.buffers]

    def strip_solution(self) -> Solution | None:
        """Removes the offsets of the buffers, and returns them as a solution. Returns
        None, and changes nothing, if a buffer has no offset."""
        offsets = [b.offset for b in self.buffers if b.offset is not None]
        if len(offsets) < len(self.buffers):
            return None
        for buffer in self.buffers:
            buffer.offset = None
        return Solution(offsets)


class Duration(float):
    """A time in seconds."""

    @classmethod
    def from_seconds(cls, seconds: float) -> Duration:
        return cls(seconds)

    @classmethod
    def from_milliseconds(cls, milliseconds: float) -> Duration:
        return cls(milliseconds / 1e3)

    @classmethod
    def from_microseconds(cls, microseconds: float) -> Duration:
        return cls(microseconds / 1e6)

    @classmethod
    def infinite(cls) -> Duration:
        return cls("inf")

    def to_seconds(self) -> float:
        return float(self)


TUNING = (
    *("canonical_only", "section_inference", "dynamic_ordering", "check_dominance"),
    *("unallocated_floor", "static_preordering", "dynamic_decomposition"),
    *("monotonic_floor", "hatless_pruning"),
)
"""The techniques of minimalloc's search that users can disable."""


class SolverParams:
    """minimalloc's parameters. Only `timeout`, in seconds, and `minimize_capacity` have
    an effect."""

    def __init__(self) -> None:
        self.timeout: float | None = None
        self.minimize_capacity = False
        self.preordering_heuristics: Sequence[str] = ("WAT", "TAW", "TWA")
        self.__dict__ |= dict.fromkeys(TUNING, True)


class Solver:
    def __init__(self, params: SolverParams | None = None):
        self._params = params or SolverParams()

    def solve(self, problem: Problem) -> Solution | None:
        """Returns a plan within the capacity, with minimal height if the parameter
        `minimize_capacity` is set. Returns None if the planner finds no plan in time.

        Raises `ValueError` for values that are out of range, and windows in gaps."""
        params = self._params
        limit = None if params.timeout in (None, math.inf) else params.timeout
        limits = planning.Limits(time_limit=limit)
        buffers = problem.planned()
        ways = [("greedy-by-size", problem.capacity), ("auto", problem.capacity)]
        for strategy, capacity in (
            [("auto", None)] if params.minimize_capacity else ways
        ):
            try:
                task = planning.Problem(buffers, capacity)
                plan = planning.solve(task, strategy, limits)
            except ValueError:  # given offsets collide
                return None
            if plan.peak <= problem.capacity:
                return Solution(list(plan.offsets), plan.peak)
        return None

    def get_backtracks(self) -> int:
        return 0


class ValidationResult(Enum):
    GOOD = 0
    BAD_SOLUTION = 1
    BAD_FIXED = 2
    BAD_OFFSET = 3
    BAD_OVERLAP = 4
    BAD_ALIGNMENT = 5
    BAD_HEIGHT = 6


def validate(problem: Problem, solution: Solution) -> ValidationResult:
    """The first fault of `solution`, in minimalloc's order of checks. `GOOD` if there
    is none."""
    if len(solution.offsets) != len(problem.buffers):
        return ValidationResult.BAD_SOLUTION
    highest = 0
    for buffer, offset in zip(problem.buffers, solution.offsets, strict=True):
        end = offset + buffer.size
        highest = max(highest, end)
        if buffer.offset not in (None, offset):
            return ValidationResult.BAD_FIXED
        if offset < 0 or end > problem.capacity:
            return ValidationResult.BAD_OFFSET
        if end > solution.height:
            return ValidationResult.BAD_HEIGHT
        if offset % (buffer.alignment or 1):
            return ValidationResult.BAD_ALIGNMENT
    if highest != solution.height:
        return ValidationResult.BAD_HEIGHT
    if planning.validate(planning.Problem(problem.planned()), solution.offsets):
        return ValidationResult.BAD_OVERLAP
    return ValidationResult.GOOD


def from_csv(text: str) -> Problem | None:
    """Parses minimalloc's CSV format. Returns None for text in another format."""
    try:
        return _read(text)
    except csv_format.CsvError:
        return None


def _read(text: str) -> Problem:
    """Parses minimalloc's CSV format. As in minimalloc, a column `end` has inclusive
    ends, and a column `upper` exclusive ends. Raises `CsvError`."""
    is_inclusive = "end" in text.partition("\n")[0].split(",")
    table = csv_format.read(text, inclusive=is_inclusive, keep_offsets=True)
    return Problem([_buffer(buffer) for buffer in table.buffers])


def _buffer(buffer: planning.Buffer) -> Buffer:
    return Buffer(
        buffer.id,
        Interval(buffer.start, buffer.end),
        *(buffer.size, buffer.alignment),
        [Gap(Interval(*gap)) for gap in buffer.gaps],
        *(buffer.offset, buffer.hint),
    )


def to_csv(
    problem: Problem, solution: Solution | None = None, old_format: bool = False
) -> str:
    """Writes the columns in minimalloc's order. The columns `alignment`, `hint`, and
    `gaps` are omitted if no buffer needs them.

    old_format: writes columns `start` and `end` with inclusive ends.
    """
    buffers = problem.buffers
    last = int(old_format)
    columns: dict[str, list[object]] = {
        "id": [b.id for b in buffers],
        "start" if old_format else "lower": [b.lifespan.lower for b in buffers],
        "end" if old_format else "upper": [b.lifespan.upper - last for b in buffers],
        "size": [b.size for b in buffers],
    }
    if any(b.alignment != 1 for b in buffers):
        columns["alignment"] = [b.alignment for b in buffers]
    if any(b.hint is not None for b in buffers):
        columns["hint"] = [-1 if b.hint is None else b.hint for b in buffers]
    if any(b.gaps for b in buffers):
        columns["gaps"] = [" ".join(_gap(g, last) for g in b.gaps) for b in buffers]
    if solution is not None:
        columns["offset"] = list(solution.offsets)
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


def _gap(gap: Gap, last: int) -> str:
    window = "@{}:{}".format(*gap.window) if gap.window else ""
    return f"{gap.lifespan.lower}-{gap.lifespan.upper - last}{window}"


def from_csv_file(path: Path | str) -> Problem | None:
    return from_csv(Path(path).read_text())


def to_csv_file(
    path: Path | str, problem: Problem, solution: Solution | None = None
) -> None:
    Path(path).write_text(to_csv(problem, solution))


def _seconds(text: str) -> float:
    """Parses a duration such as `90`, `1m30s`, `250ms` or `inf`."""
    units = {"h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "": 1}
    if text in ("inf", "infinite", "infinity"):
        return math.inf
    parts = re.findall(r"([0-9.]+)([a-z]*)", text)
    try:
        if "".join(map("".join, parts)) == text:
            return sum(float(number) * units[unit] for number, unit in parts)
    except (KeyError, ValueError):
        pass
    raise argparse.ArgumentTypeError(
        f"{text!r} is not a duration, expected 10s or 1m30s"
    )


def make_parser() -> argparse.ArgumentParser:
    """The parser of the flags of minimalloc's C++ and Python commands, which spell some
    flags differently."""
    parser = argparse.ArgumentParser(
        "plan-minimalloc",
        description="minimalloc's command with tensorplan's planner: reads buffers "
        "from a CSV file, and writes them with their offsets.",
        epilog="Flags that tune minimalloc's search are accepted, and do nothing. "
        "Exit codes: 0 success, 1 no plan within the capacity, or invalid input, 2 "
        "usage error.",
    )
    parser.add_argument("--input", required=True, help="read the buffers from a file")
    parser.add_argument(
        "--output", required=True, help="write the buffers with their offsets"
    )
    parser.add_argument(
        "--capacity",
        type=int,
        default=0,
        metavar="BYTES",
        help="the largest size of the pool",
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=math.inf,
        help="limit the search: 10s, 1m30s (default: inf)",
    )
    parser.add_argument(
        "--validate", action="store_true", help="check the plan, and print PASS"
    )
    parser.add_argument(
        *("--minimize-capacity", "--minimize_capacity"),
        action="store_true",
        help="find a plan without --capacity, as small as possible",
    )
    tuning = [(name, f"no-{name}", f"no{name}") for name in TUNING]
    for names in (("preordering_heuristics",), *tuning):
        dashed = [name.replace("_", "-") for name in names]
        flags = dict.fromkeys(f"--{name}" for name in (*names, *dashed))
        parser.add_argument(*flags, nargs="?", dest="tuning", help=argparse.SUPPRESS)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """`plan-minimalloc`."""
    options = make_parser().parse_args(arguments)
    try:
        return _run(options)
    except csv_format.CsvError as error:
        message = f"{options.input}:{error.line}: {error.reason}"
    except OSError as error:
        message = f"{error.filename}: {(error.strerror or '').lower()}"
    except ValueError as error:
        message = str(error)
    except KeyboardInterrupt:
        return 130
    print(f"Error: {message}", file=sys.stderr)
    return 1


def _run(options: argparse.Namespace) -> int:
    problem = _read(Path(options.input).read_text())
    problem.capacity = options.capacity
    if options.minimize_capacity:
        problem.capacity = options.capacity or sys.maxsize
    elif not options.capacity:
        raise ValueError("--capacity is 0, expected more, or --minimize-capacity")
    params = SolverParams()
    params.timeout = options.timeout
    params.minimize_capacity = options.minimize_capacity
    start = time.time()
    solution = Solver(params).solve(problem)
    if solution is None:
        raise ValueError(f"no plan within {problem.capacity} bytes")
    print(f"Elapsed time: {time.time() - start:.3f}s", file=sys.stderr)
    if options.validate:
        is_good = validate(problem, solution) is ValidationResult.GOOD
        print("PASS" if is_good else "FAIL", file=sys.stderr)
        if not is_good:
            return 1
    to_csv_file(options.output, problem, solution)
    return 0


if __name__ == "__main__":
    sys.exit(main())
