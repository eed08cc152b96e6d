"""`plan-opt`: reads a tensor program, runs passes on it, prints the IR.

Its options are those of `xdsl-opt`, and ours; see `plan-opt --help`. What it does is in
`plan_opt_main.py`, which takes longer to load than this help.
"""

import argparse
import sys
from collections.abc import Sequence

from ..dialects.garbage import seldom_collected
from .arguments import Parser, seconds
from .common import guard, parse_sizes

_DESCRIPTION = """\
Reads StableHLO (text or bytecode), an ONNX model, tgraph or memref IR, told apart
by content, runs passes on it, and prints the result.
"""
_EXAMPLES = """\
examples:
  plan-opt model.mlir -p plan-pipeline
  plan-opt model.mlir -p 'tgraph-infer-shapes, tgraph-fuse' -o fused.mlir
  plan-opt model.mlir -p 'plan-pipeline{alignment=256}' --report report.json
  plan-opt model.mlir --explain
  plan-opt model.mlir --frontier=json | plan-view --svg curve.svg
"""
_STRAY = (
    "; there is one FILE, and passes are named by -p: -p 'plan-pipeline{budget=1MiB}'"
)


def make_parser() -> Parser:
    parser = Parser(
        "plan-opt", "[OPTION ...] [FILE]", _DESCRIPTION, _EXAMPLES, stray=_STRAY
    )
    _add_input(parser)
    _add_passes(parser)
    _add_output(parser)
    _add_insight(parser)
    _add_testing(parser)
    return parser


def _flag(
    group: argparse._ArgumentGroup,  # pyright: ignore[reportPrivateUsage]
    name: str,
    help: str,
) -> None:
    group.add_argument(name, action="store_true", help=help)


def _add_input(parser: Parser) -> None:
    group = parser.add_argument_group("input")
    group.add_argument(
        "input_file", nargs="?", metavar="FILE", help="'-', or none, is stdin"
    )
    group.add_argument(
        "--sizes",
        type=parse_sizes,
        default={},
        metavar="NAME=N,...",
        help="sizes of the dimensions that an ONNX model leaves open",
    )
    _flag(group, "--split-input-file", "each part between '// -----' is a program")
    _flag(
        group,
        "--allow-unregistered-dialect",
        "operations of dialects that nobody knows may occur",
    )
    _flag(group, "--no-implicit-module", "the input has its module around it")
    group.add_argument(
        "-f", "--frontend", choices=("mlir",), help="what the input is; told by itself"
    )


def _add_passes(parser: Parser) -> None:
    group = parser.add_argument_group("passes")
    group.add_argument(
        "-p",
        "--passes",
        default="",
        metavar="PIPELINE",
        help="passes and their options: 'a,b{option=1 other=x}'",
    )
    _flag(group, "--list-passes", "list the passes with their options, and exit")
    _flag(group, "--disable-verify", "don't check the IR after every pass")


def _add_output(parser: Parser) -> None:
    group = parser.add_argument_group(
        "output", "Files are written whole or not at all; '-' is stdout."
    )
    group.add_argument("-o", "--output-file", metavar="FILE", help="in place of stdout")
    group.add_argument(
        "-t",
        "--target",
        default="mlir",
        metavar="TARGET",
        help="what is printed: mlir (default); json or c-header, the plan of a planned "
        "program; or another target of xdsl-opt",
    )
    _flag(group, "--print-op-generic", "in MLIR's generic form")
    _flag(group, "--print-no-properties", "properties as attributes, as they once were")
    _flag(group, "--print-debuginfo", "with places in the source")
    _flag(group, "--syntax-highlight", "in colours")


def _add_insight(parser: Parser) -> None:
    group = parser.add_argument_group("insight")
    group.add_argument(
        "--explain",
        nargs="?",
        const="text",
        choices=("text", "json"),
        help="instead of the IR, print why the planned program's arenas are as large "
        "as they are, and what would help, by trying it; -p ends with plan-pipeline, "
        "or is left out",
    )
    group.add_argument(
        "--explain-limit",
        type=seconds,
        default=60.0,
        metavar="SECONDS",
        help="of CPU time, after which nothing more is tried (default: 60)",
    )
    group.add_argument(
        "--frontier",
        nargs="?",
        const="text",
        choices=("text", "json"),
        help="instead of the IR, print the plans with ever fewer bytes that take ever "
        "more time, as estimated, and the budget for each; json is for plan-view",
    )
    group.add_argument(
        "--frontier-points",
        type=int,
        default=20,
        metavar="N",
        help="plans at most (default: 20)",
    )
    group.add_argument(
        "--report",
        metavar="FILE",
        help="write the figures of the planned program as JSON",
    )
    _flag(group, "--timing", "print the CPU time of each stage and pass to stderr")
    group.add_argument(
        "--print-ir-after",
        action="append",
        default=[],
        metavar="PASS",
        help="print the IR after each run of PASS to stderr ('all': after every pass); "
        "may be repeated",
    )
    _flag(group, "--print-between-passes", "print the IR between passes to stdout")
    _flag(group, "--time-passes", "print the time of each pass to stdout")


def _add_testing(parser: Parser) -> None:
    group = parser.add_argument_group("for tests of passes")
    _flag(group, "--verify-diagnostics", "print an error of a pass, and exit with 0")
    _flag(group, "--parsing-diagnostics", "print an error of syntax, and exit with 0")
    _flag(group, "--shrink", "for reducers: exit with 0 if ShrinkException is raised")


def main(args: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code (see `common`)."""

    @seldom_collected()
    def body() -> int:
        options = make_parser().parse(args)
        from .plan_opt_main import PlanOptMain

        PlanOptMain(options).run()
        return 0

    return guard("plan-opt", body)


if __name__ == "__main__":
    sys.exit(main())
