"""`plan-solve`: places the buffers in CSV files, by one or several strategies.

Prints one line per strategy: its peak, the lower bound, and whether the plan is proved
optimal; see `plan-solve --help`.
"""

import argparse
import csv
import errno
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from math import inf
from time import monotonic
from typing import TextIO

from ..planning import (
    Limits,
    Plan,
    Problem,
    Progress,
    csv_format,
    deadline,
    find,
    names,
    peak_of,
    solve,
    validate,
)
from .arguments import Parser, byte_count
from .common import (
    Source,
    UsageError,
    check_outputs,
    check_program,
    guard,
    read_source,
    write_atomically,
)
from .interrupts import ending_searches
from .progress import Ticker

INTERRUPTED = 130

_DEFAULT_STRATEGY = "auto"
_ENDINGS = (".csv", ".tsv")
_COLUMNS = ("strategy", "peak", "lower bound", "gap", "CPU s", "optimal")
_RULES = (" --- |", " --: |")
"""Markdown's rules under the headers of left-aligned and right-aligned columns."""

_PROGRAM = re.compile(
    rb"ML\xef\x52"  # bytecode
    rb"|\s*(//|#[\w.]+ *=|\"?builtin\.module\b|module *[@{a]|func(\.func)? [^,]*@)"
)

_HELP = """\
plan programs with plan-opt; docs/how-to/compare-planners.md exports their buffers"""

_DESCRIPTION = """\
Finds an offset for each buffer, so that buffers that are live at the same time never
overlap. Prints for each strategy: the peak (the end of the highest buffer), the lower
bound (the largest sum of live bytes), the gap between the two, the CPU time, and
whether the plan is proved optimal. Sizes are in bytes, or have a unit: 1.5KiB.

BUFFERS.csv is in minimalloc's format: a header, then one buffer per line. The required
columns, in any order and between commas, semicolons, tabs, or bars, are id; lower (or
begin, start), the first step in which the buffer is live; upper (or end), the first
step in which it is no longer live; and size. The optional columns are alignment; gaps
('3-5 7-9': steps in which other buffers may use its bytes); offset; hint (an offset;
'auto' is never worse than a sound plan of hints); and pool (pools have separate address
spaces, and their peaks are added up). Other columns are preserved.

Ctrl-C ends the search and writes the best plan so far; a second Ctrl-C ends the tool.

The exit code is 1 if no strategy meets --capacity, and 130 after Ctrl-C.
"""


def make_parser() -> Parser:
    parser = Parser("plan-solve", "[OPTION ...] [BUFFERS.csv ...]", _DESCRIPTION)
    parser.add_argument(
        "files",
        nargs="*",
        metavar="BUFFERS.csv",
        help="a file, or a folder of such files; '-' is stdin, the default unless "
        "stdin is a terminal",
    )
    parser.add_argument(
        "--list-strategies",
        action="store_true",
        help="list and describe the strategies, and exit",
    )
    how = parser.add_argument_group("how to plan")
    how.add_argument(
        "--strategy",
        default=_DEFAULT_STRATEGY,
        metavar="S",
        help="'all', or names separated by commas (default: %(default)s)",
    )
    how.add_argument(
        "--capacity",
        type=byte_count,
        metavar="BYTES",
        help="the largest size of a pool, such as 64MiB; a search ends when it is met",
    )
    how.add_argument(
        "--time-limit",
        type=float,
        default=60.0,
        metavar="SEC",
        help="limit the wall-clock time of each strategy; buffers not placed by then "
        "are placed above the others (default: %(default)g; 'inf' for no limit)",
    )
    how.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="the random seed of searches (default: 0)",
    )
    how.add_argument(
        "--alignment",
        type=byte_count,
        default=1,
        metavar="BYTES",
        help="the alignment of buffers without a column 'alignment' (default: 1)",
    )
    how.add_argument(
        "--inclusive",
        action="store_true",
        help="the upper ends of live ranges and gaps in the file are inclusive (as "
        "minimalloc reads a column called 'end')",
    )
    how.add_argument(
        "--keep-offsets",
        action="store_true",
        help="keep the offsets in the file; otherwise, a column 'offset' is ignored",
    )
    out = parser.add_argument_group("outputs")
    out.add_argument(
        "-o",
        "--output",
        metavar="OUT.csv",
        help="write the buffers with the offsets of the best plan, if it meets the "
        "capacity ('-': to stdout, with the table on stderr)",
    )
    out.add_argument(
        "--table",
        choices=_Table.STYLES,
        default="text",
        help="the format of the table (default: %(default)s)",
    )
    out.add_argument("--report", metavar="R.json", help="write statistics as JSON")
    return parser


def parse_arguments(args: Sequence[str] | None = None) -> argparse.Namespace:
    parser = make_parser()
    options = parser.parse(args)
    if options.files.count("-") > 1:
        parser.error("only one BUFFERS.csv can be stdin")
    for name, least in (("capacity", 0), ("time_limit", 0), ("alignment", 1)):
        value = getattr(options, name)
        if value is not None and not value >= least:
            option = name.replace("_", "-")
            parser.error(f"argument --{option}: {value}, expected {least} or more")
    return options


def chosen(wanted: str) -> Sequence[str]:
    """The requested strategies. Raises `UsageError` for an unknown strategy."""
    if wanted == "all":
        return names()
    result = list(dict.fromkeys(name.strip() for name in wanted.split(",")))
    for name in result:
        try:
            find(name)
        except ValueError as error:
            raise UsageError(f"{error}") from None
    return result


def run(options: argparse.Namespace) -> int:
    """Runs the tool with parsed options; returns the exit code."""
    if options.list_strategies:
        for name in names():
            summary = (find(name).__doc__ or "").strip().partition("\n")[0]
            print(f"{name:20}{summary}".rstrip())
        return 0
    check_outputs(options.output, options.report)
    strategies = chosen(options.strategy)
    files = [file for path in options.files or [None] for file in _files_in(path)]
    for option in ("output", "report"):
        if len(files) > 1 and getattr(options, option):
            raise UsageError(f"--{option} applies to one file, not {len(files)}")
    stream = sys.stderr if "-" in (options.output, options.report) else sys.stdout
    table = _Table(options.table, files, strategies, stream)
    code = 0
    for file in files:
        code = max(code, _solve_file(file, strategies, options, table))
        if code == INTERRUPTED:
            break
    return code


def _files_in(path: str | None) -> Sequence[str | None]:
    """Returns `path`, or the CSV files in the folder `path`.

    Raises the exceptions of `check_program`, and `OSError` for a folder without CSV
    files.
    """
    if path is None or not os.path.isdir(path):
        check_program(path)
        return [path]
    files = [name for name in sorted(os.listdir(path)) if name.endswith(_ENDINGS)]
    if not files:
        raise OSError(errno.ENOENT, "a folder without .csv or .tsv files", path)
    return [os.path.join(path, name) for name in files]


def _solve_file(
    file: str | None,
    strategies: Sequence[str],
    options: argparse.Namespace,
    rows: "_Table",
) -> int:
    """Plans the buffers of one file and prints the results; returns the exit code."""
    begin = monotonic()
    source = read_source(file)
    if _is_program(source):
        return _fail(source.name, "this is a program, expected buffers as CSV", _HELP)
    try:
        table = csv_format.read(
            source.data.decode("utf-8-sig"),
            inclusive=options.inclusive,
            alignment=options.alignment,
            keep_offsets=options.keep_offsets,
        )
    except csv_format.CsvError as error:
        return _fail(f"{source.name}:{error.line}", error.reason)
    except UnicodeDecodeError as error:
        line = source.data.count(b"\n", 0, error.start) + 1
        return _fail(f"{source.name}:{line}", "this is not UTF-8")
    fixed = [b for b in table.buffers if b.offset is not None]
    if reason := validate(Problem(fixed), [b.offset or 0 for b in fixed]):
        return _fail(source.name, f"the offsets in the file: {reason}")
    problem = Problem(table.buffers, options.capacity)
    # With one strategy, the time limit includes the time to read the file.
    whole = begin + options.time_limit if len(strategies) == 1 else inf
    with ending_searches() as is_interrupted, deadline.until(whole):
        rows.begin()
        add_row = partial(rows.add, source.name)
        plans = solve_all(problem, strategies, options, is_interrupted, add_row)
    if options.report:
        report = json.dumps(_report(problem, plans), indent=2)
        write_atomically(options.report, f"{report}\n".encode())
    capacity = inf if options.capacity is None else options.capacity
    best = min(plans, key=lambda p: (largest_pool(problem, p) > capacity, p.peak))
    is_met = largest_pool(problem, best) <= capacity
    if options.output and is_met:
        text = csv_format.write(table, best.offsets)
        write_atomically(options.output, text.encode())
    if is_interrupted():
        written = f"written to {options.output}" if options.output and is_met else ""
        return _interrupted(best, written or "not written")
    if not is_met:
        least = largest_pool(problem, best)
        reason = f"the best plan needs {least} bytes, expected at most"
        return _fail(source.name, f"{reason} {options.capacity} (--capacity)")
    return 0


def _is_program(source: Source) -> bool:
    """Whether `source` is a program for `plan-opt`, by its name or its first bytes."""
    is_named_so = source.name.endswith((".mlir", ".mlirbc", ".onnx", ".tflite"))
    return is_named_so or _PROGRAM.match(source.data) is not None


def largest_pool(problem: Problem, plan: Plan) -> int:
    """The size of the largest pool, in bytes."""
    return peak_of(problem.buffers, plan.offsets)


def _interrupted(best: Plan, what: str) -> int:
    """Reports the best plan and whether it is written; returns the exit code."""
    text = f"interrupted: the best plan so far has {best.peak} bytes and is {what}"
    print(f"plan-solve: {text}", file=sys.stderr)
    return INTERRUPTED


def _fail(place: str, reason: str, note: str = "") -> int:
    """Prints an error about the input; returns the exit code."""
    print(f"{place}: error: {reason}", file=sys.stderr)
    if note:
        print(f"note: {note}", file=sys.stderr)
    return 1


def solve_all(
    problem: Problem,
    strategies: Sequence[str],
    options: argparse.Namespace,
    is_interrupted: Callable[[], bool],
    add_row: Callable[..., None],
) -> Sequence[Plan]:
    """Plans by each strategy until an interrupt; adds a row after each."""
    plans: list[Plan] = []
    for name in strategies:
        watch = _Watch(name) if sys.stderr.isatty() else None
        limits = Limits(options.time_limit, options.seed, watch and watch.report)
        with watch or nullcontext():
            plan = solve(problem, name, limits)
        ended = "interrupted" if is_interrupted() else "time limit"
        add_row(
            name,
            str(plan.peak),
            str(plan.lower_bound),
            _gap(plan.peak, plan.lower_bound),
            f"{plan.seconds:.3f}",
            "yes" if plan.optimal else ended if plan.was_ended else "not proved",
        )
        plans.append(plan)
        if is_interrupted():
            break
    return plans


class _Table:
    """The printed table of results: a row for each file and strategy.

    The column of the file is omitted if there is only one file.
    """

    STYLES = ("text", "csv", "markdown")

    def __init__(
        self,
        style: str,
        files: Sequence[str | None],
        strategies: Sequence[str],
        stream: TextIO,
    ):
        self._style = style
        self._is_one = len(files) == 1
        self._stream = stream
        names = [max(map(len, ("strategy", *strategies)))]
        if not self._is_one:
            names.insert(0, max(len(str(file)) for file in files) + 2)
        self._widths = (*names, *(-width for width in (15, 15, 10, 10, 12)))
        self._is_begun = False

    def begin(self) -> None:
        """Prints the header on the first call."""
        if self._is_begun:
            return
        self._is_begun = True
        self.add("file", *_COLUMNS)
        if self._style == "markdown":
            self._print("|" + "".join(_RULES[w < 0] for w in self._widths))

    def add(self, file: str, *cells: str) -> None:
        row = cells if self._is_one else (file, *cells)
        match self._style:
            case "csv":
                csv.writer(self._stream, lineterminator="\n").writerow(row)
            case "markdown":
                self._print(f"| {' | '.join(row)} |")
            case _:
                pairs = zip(row, self._widths, strict=True)
                padded = (f"{c:<{w}}" if w > 0 else f" {c:>{-w - 1}}" for c, w in pairs)
                self._print("".join(padded))

    def _print(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


class _Watch(Ticker):
    """Shows the state of a search in one line on the terminal, unless it is short."""

    def __init__(self, strategy: str) -> None:
        super().__init__(self._line)
        self._strategy = strategy
        self._last: Progress | None = None

    def report(self, progress: Progress) -> None:
        """Is called for each better plan."""
        self._last = progress
        if progress.seconds >= 1:
            self.write(self._line(progress.seconds))

    def _line(self, seconds: float) -> str:
        if not self._last:
            return f"{self._strategy}: {seconds:.0f} s"
        peak, bound, _ = self._last
        gap = _gap(peak, bound)
        return (
            f"{self._strategy}: peak {peak}, lower bound {bound}, gap {gap}, "
            f"{seconds:.0f} s"
        )


def _gap(peak: int, lower_bound: int) -> str:
    return f"{peak / lower_bound - 1:.2%}" if lower_bound else "0.00%"


def _report(problem: Problem, plans: Sequence[Plan]) -> Mapping[str, object]:
    return {
        "buffers": len(problem.buffers),
        "lower_bound_bytes": problem.lower_bound,
        "results": [
            {
                "strategy": plan.strategy,
                "peak_bytes": plan.peak,
                "optimal": plan.optimal,
                "seconds": round(plan.seconds, 6),
            }
            for plan in plans
        ],
    }


def main(args: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code (see `common`)."""
    return guard("plan-solve", lambda: run(parse_arguments(args)))


if __name__ == "__main__":
    sys.exit(main())
