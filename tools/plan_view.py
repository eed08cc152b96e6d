"""`plan-view`: draws which buffer has which bytes when, and what makes the peak.

Writes an interactive page, a drawing, a picture in the terminal, a trace, or a snapshot
for PyTorch's viewer; see `plan-view --help`.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .arguments import FILE, Parser
from .common import (
    FileError,
    Source,
    UsageError,
    check_outputs,
    check_program,
    check_sizes,
    guard,
    parse_sizes,
    read_source,
    write_atomically,
)
from .plan_arguments import add_plan_options, given_options

if TYPE_CHECKING:
    from .views.model import FrontierView, PlanView

_FILES = ("output", "html", "svg", "trace", "snapshot")
"""The options that name output files."""

_DESCRIPTION = """\
Draws plans: each buffer is a rectangle, with steps from left to right and addresses
from bottom to top. Also shows the curve of live bytes and the buffers live at its
peak. A FILE is one of these:

  a program      as plan-opt and plan-run read it; a program without arenas is
                 planned by plan-pipeline first
  planned IR     plan-opt model.mlir -p plan-pipeline -o FILE.mlir
                 (--print-debuginfo keeps source locations)
  a report       plan-opt or plan-run with --report FILE.json
  a frontier     plan-opt with --frontier=json; drawn in the terminal or as SVG
  another plan   of XLA or PyTorch (plan-audit --help), unless it is unsound
  buffers        CSV in minimalloc's format; a column 'offset' is drawn as it
                 is, otherwise 'auto' places the buffers first (plan-solve)

Several files, and the strategies of --compare, are drawn side by side. Without an
option from 'outputs', the drawing goes to the terminal.
"""
_EXAMPLES = """\
examples:
  plan-view model.mlir --explain -o page.html
  plan-opt model.mlir -p plan-pipeline | plan-view
  plan-view model.mlir --budget 64MiB
  plan-view before.mlir after.mlir -o page.html
  plan-opt model.mlir --frontier=json | plan-view --svg curve.svg
  plan-view buffers.csv --compare greedy-by-size,auto --svg plans.svg
"""


def make_parser() -> Parser:
    parser = Parser("plan-view", "[OPTION ...] [FILE ...]", _DESCRIPTION, _EXAMPLES)
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help=FILE.replace("program", "plans")
    )
    parser.add_argument(
        "--compare",
        metavar="S1,S2",
        help="also draw the plans of these strategies, or of 'all' "
        "(plan-solve --list-strategies)",
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="for a program, also try changes that lower its peak (takes minutes for a "
        "large program)",
    )
    parser.add_argument(
        "--sizes",
        type=parse_sizes,
        default={},
        metavar="NAME=N,...",
        help="sizes of the dynamic dimensions of an ONNX model",
    )
    csv = parser.add_argument_group("CSV input")
    csv.add_argument(
        "--inclusive",
        action="store_true",
        help="the upper ends of live ranges and gaps are inclusive",
    )
    plan = parser.add_argument_group("planning of programs")
    further = " (default: 64); for CSV, the default of the buffers (default: 1)"
    add_plan_options(plan, {"alignment": further})
    out = parser.add_argument_group(
        "outputs", "'-' is stdout. Files are written atomically."
    )
    out.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write the format of the extension: .html (or none), .svg, or .png "
        "(requires the extra 'png')",
    )
    out.add_argument(
        "--html",
        metavar="FILE",
        help="write an interactive page that works offline",
    )
    out.add_argument("--svg", metavar="FILE", help="write a drawing")
    out.add_argument(
        "--trace",
        metavar="FILE",
        help="write a trace for chrome://tracing and ui.perfetto.dev",
    )
    out.add_argument(
        "--snapshot",
        metavar="FILE",
        help="write a snapshot for pytorch.org/memory_viz ('Allocator State History')",
    )
    out.add_argument("--ascii", action="store_true", help="draw in the terminal")
    return parser


def parse_arguments(args: Sequence[str] | None = None) -> argparse.Namespace:
    parser = make_parser()
    options = parser.parse(args)
    if (alignment := getattr(options, "alignment", 1)) < 1:
        parser.error(f"argument --alignment: {alignment}, expected 1 or more")
    if options.files.count("-") > 1:
        parser.error("only one FILE can be stdin")
    if options.output:
        from .views.formats import suffix_of

        try:
            suffix_of(options.output)
        except ValueError as error:
            parser.error(f"argument -o/--output: {error}")
    options.ascii |= not any(getattr(options, name) for name in _FILES)
    options.files = options.files or [None]
    return options


def run(options: argparse.Namespace) -> int:
    """Runs the tool with parsed options; returns the exit code."""
    terminal = "-" if options.ascii else None
    check_outputs(*(getattr(options, name) for name in _FILES), terminal)
    for file in options.files:
        check_program(file)
    from .plan_solve import chosen
    from .views.reading import Reader

    strategies = chosen(options.compare) if options.compare is not None else ()
    planning = given_options(options)
    reader = Reader(strategies, options.inclusive, options.explain, planning)
    plans: list[PlanView] = []
    frontiers: list[FrontierView] = []
    try:
        for file in options.files:
            source = read_source(file, options.sizes)
            check_sizes(source)
            if found := reader.frontier(source):
                _expect_drawn(source, options)
                frontiers.append(found)
            else:
                plans += reader.read(source)
    except FileError as error:
        print(f"{error.place}: error: {error.reason}", file=sys.stderr)
        return 1
    from .views.formats import MissingPackage

    try:
        made = _outputs(plans, frontiers, options)
    except MissingPackage as error:
        raise UsageError(str(error)) from None
    for path, data in made:
        write_atomically(path, data)
    return 0


def _expect_drawn(source: Source, options: argparse.Namespace) -> None:
    """Raises `FileError` for outputs that can't show a frontier."""
    from .views.formats import suffix_of

    is_page = options.output and suffix_of(options.output) == ".html"
    asked = {name: getattr(options, name) for name in ("html", "trace", "snapshot")}
    asked["html"] = asked["html"] or is_page
    for name, is_asked in asked.items():
        if is_asked:
            raise FileError(source, f"this is a frontier, but --{name} requires a plan")


def _outputs(
    plans: "Sequence[PlanView]",
    frontiers: "Sequence[FrontierView]",
    options: argparse.Namespace,
) -> list[tuple[str, bytes]]:
    """(path, contents) of all outputs; all are made before the first is written."""
    from .views import formats, page, snapshot, svg, terminal, trace

    made: list[tuple[str, bytes]] = []
    if options.output:
        made.append(
            (options.output, formats.rendered(options.output, plans, frontiers))
        )
    if options.html:
        made.append((options.html, page.page(plans).encode()))
    if options.svg:
        made.append((options.svg, svg.draw(plans, frontiers).encode()))
    if options.trace:
        made.append((options.trace, trace.trace(plans).encode()))
    if options.snapshot:
        made.append((options.snapshot, snapshot.snapshot(plans)))
    if options.ascii:
        width = shutil.get_terminal_size().columns
        made.append(("-", terminal.draw(plans, width, frontiers).encode()))
    return made


def main(args: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code (see `common`)."""
    return guard("plan-view", lambda: run(parse_arguments(args)))


if __name__ == "__main__":
    sys.exit(main())
