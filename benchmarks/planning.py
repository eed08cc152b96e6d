"""Peaks and CPU times of all planning strategies, as tables in Markdown.

    python benchmarks/planning.py buffers/*.csv
    python benchmarks/planning.py --sizes 1000 10000 100000 --write docs/planning.md
    python benchmarks/planning.py --minimalloc ../minimalloc   # a checkout, built there

CSV files are in minimalloc's format; `--sizes` adds synthetic sets (synthetic.py).
Strategies whose time is quadratic in the number of buffers skip large sets. Limits are
CPU seconds, so other load on the machine does not change peaks.
"""

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

time.monotonic = time.process_time  # before deadlines bind it

from synthetic import KINDS

from tensorplan.planning import Limits, Plan, Problem, csv_format, names, solve

QUADRATIC = ("usmp-hill-climb", "inductor-reuse", "inductor-tree")
QUADRATIC_LIMIT = 10_000  # buffers

INTRODUCTION = """\
# Planning strategies compared

From these tables you can choose a strategy: they show how close each one comes to the
lower bound, and how long it takes.

Each cell is the peak divided by the lower bound. The lower bound is the largest sum of
live bytes, so no plan is below 1. The CPU seconds of the strategy in this Python follow
in parentheses, without the check of its plan. A bold figure is proved to be optimal.
Searches stop after {time_limit:g} s of CPU. `plan-solve --list-strategies` says what
each strategy does, and `plan-solve BUFFERS.csv --strategy all` compares them on your
own buffers.

`benchmarks/planning.py --sizes {sizes} --minimalloc FOLDER --write
docs/planning.md` writes this page.
`benchmarks/synthetic.py` makes the sets:

* training: activations live until their mirrored backward operation, some values are
  temporary, and the gradients of weights live until the end;
* inference: most live ranges are short, residual connections make some long;
* dag: live ranges are Pareto-distributed, sizes are log-normal;
* tile: a rectangle of steps and bytes is cut up, so that some plan has no gap.

Some strategies only share storages. To compare them, their storages are placed as their
systems would. NNVM and TVM Relay keep a storage for the whole run, so their storages
lie one after the other. PyTorch Inductor deletes what is not reused, so best fit,
standing in for PyTorch's allocator, places each chain of reuse.

Quadratic strategies skip sets of more than {limit:,} buffers ("-"). All was measured
on {machine}.
"""


def table(title: str, problems: Mapping[str, Problem], limits: Limits) -> str:
    """A section with a row for each strategy and a column for each set."""
    rows = [["strategy", *problems], ["---", *("--:" for _ in problems)]]
    for strategy in names():
        row = [strategy]
        for name, problem in problems.items():
            if strategy in QUADRATIC and len(problem.buffers) > QUADRATIC_LIMIT:
                row.append("-")
                continue
            row.append(_cell(solve(problem, strategy, limits)))
            print(f"{title}: {name}, {strategy}: {row[-1]}", file=sys.stderr)
        rows.append(row)
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(("", f"## {title}", "", *lines, ""))


MINIMALLOC = """
## minimalloc's challenging cases

[minimalloc](https://github.com/google/minimalloc) fits buffers into a given capacity,
here of 1,048,576 bytes. `auto` also minimizes the peak without one. Times are CPU
seconds; that of the first hard case may include loading numba. Searches of `auto`
stop after {limit:g} s.

"""


def beside_minimalloc(folder: Path, limits: Limits) -> str:
    """A section with a row for each challenging case of minimalloc in `folder`."""
    rows = [
        ["case", "buffers", "minimalloc", "auto, same capacity", "auto, no capacity"],
        ["---", *4 * ["--:"]],
    ]
    for file in sorted(folder.glob("benchmarks/challenging/*.csv")):
        name, capacity = file.stem.split(".")
        arguments = f"--capacity={capacity}", f"--input={file}", "--output=/dev/null"
        before = os.times().children_user
        subprocess.run([folder / "minimalloc", *arguments], check=True)
        theirs = os.times().children_user - before
        buffers = csv_format.read(file.read_text()).buffers
        fitted = solve(Problem(buffers, int(capacity)), "auto", limits)
        assert fitted.peak <= int(capacity)
        lowest = _cell(solve(Problem(buffers), "auto", limits))
        times = f"{theirs:.2f}", f"{fitted.seconds:.2f}"
        rows.append([name, str(len(buffers)), *times, lowest])
        print(*rows[-1], file=sys.stderr)
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return MINIMALLOC.format(limit=limits.time_limit) + "\n".join((*lines, ""))


def _cell(plan: Plan) -> str:
    ratio = plan.peak / plan.lower_bound if plan.lower_bound else 1
    shown = f"{ratio:.4f}" if ratio < 10 else f"{ratio:.1f}"
    bold = "**" if plan.optimal else ""
    return f"{bold}{shown}{bold} ({plan.seconds:.{3 if plan.seconds < 1 else 1}f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE.csv")
    parser.add_argument("--sizes", nargs="*", type=int, default=[], metavar="N")
    parser.add_argument("--time-limit", type=float, default=10.0, metavar="SEC")
    parser.add_argument(
        "--write", type=Path, metavar="FILE.md", help="the tables with an introduction"
    )
    parser.add_argument(
        "--machine", default=platform.machine(), help="as the page names it"
    )
    parser.add_argument("--minimalloc", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    limits = Limits(options.time_limit)
    tables: list[str] = []
    if options.files:
        read = {f.stem: csv_format.read(f.read_text()).buffers for f in options.files}
        problems = {name: Problem(buffers) for name, buffers in read.items()}
        tables.append(table("Files", problems, limits))
    for size in options.sizes:
        problems = {kind: Problem(make(size, 0)) for kind, make in KINDS.items()}
        tables.append(table(f"{size:,} buffers", problems, limits))
    if options.minimalloc:
        tables.append(beside_minimalloc(options.minimalloc, Limits(60.0)))
    print("".join(tables))
    if options.write:
        introduction = INTRODUCTION.format(
            time_limit=options.time_limit,
            machine=options.machine,
            sizes=" ".join(map(str, options.sizes)),
            limit=QUADRATIC_LIMIT,
        )
        options.write.write_text(introduction + "".join(tables))


if __name__ == "__main__":
    main()
