"""`plan-solve`: offsets for buffers in a CSV file, by one strategy or by many.

Prints one line per strategy: its peak, the lower bound, and whether the plan is proved
to be optimal; see `plan-solve --help`.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial

from tensorplan.planning import (
    Limits,
    Plan,
    Problem,
    Progress,
    csv_format,
    find,
    names,
    solve,
    validate,
)
from tensorplan.tools.arguments import Parser, byte_count
from tensorplan.tools.common import (
    UsageError,
    check_outputs,
    guard,
    read_source,
    write_atomically,
)

_DEFAULT_STRATEGY = "auto"

_CLEAR_LINE = "\r\x1b[K"  # for terminals

_DESCRIPTION = """\
Finds an offset for each buffer, so that no two which are live at the same time share a
byte, and prints for each strategy: the peak (the end of the highest buffer), the lower
bound (the largest sum of live bytes), by how much the peak exceeds it, the CPU time,
and whether the plan is proved to be optimal. Sizes are in bytes.

BUFFERS.csv is in minimalloc's format: a header, then one buffer per line. Columns, in
any order: id; lower (or begin, start), the first step in which the buffer is live;
upper (or end), the first step in which it is no longer live; size; and, optional,
alignment, gaps ('3-5 7-9': steps in which others may have its bytes), offset and hint
(where a search may start). Other columns are carried along.

Exit code: 1 if no strategy met --capacity, or the file is at fault.
"""


def make_parser() -> Parser:
    parser = Parser("plan-solve", "[OPTION ...] BUFFERS.csv", _DESCRIPTION)
    parser.add_argument("file", nargs="?", metavar="BUFFERS.csv", help="'-' is stdin")
    parser.add_argument(
        "--list-strategies",
        action="store_true",
        help="list the strategies with what they do, and exit",
    )
    how = parser.add_argument_group("how to plan")
    how.add_argument(
        "--strategy",
        default=_DEFAULT_STRATEGY,
        metavar="S",
        help="'all', or names with commas between them (default: %(default)s)",
    )
    how.add_argument(
        "--capacity",
        type=byte_count,
        metavar="BYTES",
        help="the peak must not be greater; 64MiB, ...",
    )
    how.add_argument(
        "--time-limit",
        type=float,
        default=60.0,
        metavar="SEC",
        help="CPU time for each search (default: %(default)g); strategies that do not "
        "search ignore it",
    )
    how.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of searches (default: 0)"
    )
    how.add_argument(
        "--alignment",
        type=int,
        default=1,
        metavar="BYTES",
        help="of buffers that do not say theirs (default: 1)",
    )
    how.add_argument(
        "--inclusive",
        action="store_true",
        help="the upper ends in the file, of gaps too, are the last live steps (as "
        "minimalloc reads a column called 'end')",
    )
    how.add_argument(
        "--keep-offsets",
        action="store_true",
        help="the offsets in the file are fixed; else a column 'offset' is ignored",
    )
    out = parser.add_argument_group("outputs")
    out.add_argument(
        "-o",
        "--output",
        metavar="OUT.csv",
        help="write the buffers with the offsets of the best plan ('-': to stdout, and "
        "the table to stderr), unless the capacity is not met",
    )
    out.add_argument("--report", metavar="R.json", help="write the figures as JSON")
    return parser


def parse_arguments(args: Sequence[str] | None = None) -> argparse.Namespace:
    parser = make_parser()
    options = parser.parse(args)
    if not options.file and not options.list_strategies:
        parser.error("the following arguments are required: BUFFERS.csv")
    for name, least in (("capacity", 0), ("time_limit", 0), ("alignment", 1)):
        value = getattr(options, name)
        if value is not None and not value >= least:
            option = name.replace("_", "-")
            parser.error(f"argument --{option}: {value}, expected {least} or more")
    return options


def chosen(wanted: str) -> Sequence[str]:
    """The strategies that the user asks for. Raises `UsageError` for unknown ones."""
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
    """Does what the command line says; returns the exit code."""
    if options.list_strategies:
        for name in names():
            summary = (find(name).__doc__ or "").strip().partition("\n")[0]
            print(f"{name:20}{summary}".rstrip())
        return 0
    check_outputs(options.output, options.report)
    strategies = chosen(options.strategy)
    source = read_source(options.file)
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
    plans = solve_all(problem, strategies, options)
    if options.report:
        report = json.dumps(_report(problem, plans), indent=2)
        write_atomically(options.report, f"{report}\n".encode())
    best = min(plans, key=lambda plan: plan.peak)
    if options.capacity is not None and best.peak > options.capacity:
        reason = f"the capacity is {options.capacity} bytes, and the best peak"
        return _fail(source.name, f"{reason} {best.peak}")
    if options.output:
        text = csv_format.write(table, best.offsets)
        write_atomically(options.output, text.encode())
    return 0


def _fail(place: str, reason: str) -> int:
    """Says what is wrong with the input; returns the exit code."""
    print(f"{place}: error: {reason}", file=sys.stderr)
    return 1


def solve_all(
    problem: Problem, strategies: Sequence[str], options: argparse.Namespace
) -> Sequence[Plan]:
    """A plan by each strategy; prints the table as they come."""
    table = sys.stderr if "-" in (options.output, options.report) else sys.stdout
    width = max(map(len, ("strategy", *strategies)))

    def print_row(name: str, *cells: str) -> None:
        aligned = "".join(map(str.rjust, cells, (15, 15, 10, 10, 12)))
        print(f"{name:{width}}{aligned}", file=table, flush=True)

    print_row("strategy", "peak", "lower bound", "gap", "CPU s", "optimal")
    plans: list[Plan] = []
    for name in strategies:
        show = partial(_show, name) if sys.stderr.isatty() else None
        plan = solve(problem, name, Limits(options.time_limit, options.seed, show))
        if show:
            print(end=_CLEAR_LINE, file=sys.stderr, flush=True)
        print_row(
            name,
            str(plan.peak),
            str(plan.lower_bound),
            _gap(plan.peak, plan.lower_bound),
            f"{plan.seconds:.3f}",
            "yes" if plan.optimal else "not proved",
        )
        plans.append(plan)
    return plans


def _show(strategy: str, progress: Progress) -> None:
    """Where a search is, in one line on the terminal; short ones say nothing."""
    if progress.seconds < 1:
        return
    line = (
        f"{strategy}: peak {progress.peak}, lower bound {progress.lower_bound}, gap "
        f"{_gap(progress.peak, progress.lower_bound)}, {progress.seconds:.0f} s"
    )
    print(f"{_CLEAR_LINE}{line}", end="", file=sys.stderr, flush=True)


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
