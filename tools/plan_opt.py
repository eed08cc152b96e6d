"""`plan-opt`: reads a tensor program, runs passes on it, prints the IR.

It has the options of `xdsl-opt` and its own; see `plan-opt --help`. This file only
parses the command line. `plan_opt_main.py`, which takes longer to import, does the
work.
"""

import argparse
import sys
from collections.abc import Sequence

from .arguments import FILE, Parser, at_least, number
from .common import check_outputs, check_program, guard, parse_sizes

_DESCRIPTION = """\
Reads StableHLO (text or bytecode), an ONNX or LiteRT model, tgraph IR, or
memref IR, runs passes on it, and prints the result. The input format is
detected from the content.
"""
_EXAMPLES = """\
examples:
  plan-opt model.mlir -p plan-pipeline
  plan-opt model.mlir -p 'tgraph-infer-shapes, tgraph-fuse' -o fused.mlir
  plan-opt model.mlir -p 'plan-pipeline{alignment=256}' --report report.json
  plan-opt memrefs.mlir --canonicalize --plan-memory='strategy=best-fit'
  plan-opt model.mlir -p plan-pipeline --target-memory cortex-m.toml
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
    _add_analysis(parser)
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
    group.add_argument("input_file", nargs="?", metavar="FILE", help=FILE)
    group.add_argument(
        "--sizes",
        type=parse_sizes,
        default={},
        metavar="NAME=N,...",
        help="sizes of the dynamic dimensions of an ONNX model",
    )
    _flag(group, "--split-input-file", "split the input at '// -----' into programs")
    _flag(
        group,
        "--allow-unregistered-dialect",
        "allow operations of unregistered dialects",
    )
    _flag(group, "--no-implicit-module", "do not add a top-level module")
    group.add_argument(
        "-f",
        "--frontend",
        choices=("mlir",),
        help="the input format (default: detected)",
    )


def _add_passes(parser: Parser) -> None:
    group = parser.add_argument_group("passes")
    group.add_argument(
        "-p",
        "--passes",
        "--pass-pipeline",
        action="append",
        default=[],
        metavar="PIPELINE",
        help="passes and their options: 'a,b{option=1 other=x}'; may be "
        "repeated. The forms of mlir-opt, --a --b='option=1 other=x' and "
        "'builtin.module(a,b)', work, too",
    )
    _flag(group, "--list-passes", "list the passes and their options, and exit")
    group.add_argument(
        "--help-pass", metavar="PASS", help="describe a pass and its options, and exit"
    )
    group.add_argument(
        "--target-memory",
        metavar="FILE",
        help="describe the memories of the target: their capacities, base addresses, "
        "alignments, and more, in TOML or JSON (see docs/how-to/target-memory.md)",
    )
    _flag(group, "--disable-verify", "do not verify the IR after each pass")


def _add_output(parser: Parser) -> None:
    group = parser.add_argument_group(
        "output", "'-' is stdout. Files are written atomically."
    )
    group.add_argument(
        "-o", "--output-file", metavar="FILE", help="write the output to FILE"
    )
    group.add_argument(
        "-t",
        "--target",
        default="mlir",
        metavar="TARGET",
        help="the output format: mlir (default); json or c-header for the plan of a "
        "planned program; or another target of xdsl-opt",
    )
    _flag(group, "--print-op-generic", "print the generic form of operations")
    _flag(
        group, "--print-no-properties", "print properties as attributes (legacy form)"
    )
    _flag(group, "--print-debuginfo", "print source locations")
    _flag(group, "--syntax-highlight", "highlight the syntax")


def _add_analysis(parser: Parser) -> None:
    group = parser.add_argument_group("analysis")
    group.add_argument(
        "--explain",
        nargs="?",
        const="text",
        choices=("text", "json"),
        help="instead of the IR, print what makes up the peak of each arena, and which "
        "changes would lower it, tried on copies; -p must end with plan-pipeline, or "
        "be omitted",
    )
    group.add_argument(
        "--explain-limit",
        type=at_least(0, number),
        default=60.0,
        metavar="SECONDS",
        help="limit the CPU time of --explain (default: 60)",
    )
    group.add_argument(
        "--frontier",
        nargs="?",
        const="text",
        choices=("text", "json"),
        help="instead of the IR, print plans that trade time for memory, and the "
        "budget for each; plan-view reads json",
    )
    group.add_argument(
        "--frontier-points",
        type=int,
        default=20,
        metavar="N",
        help="the largest number of plans (default: 20)",
    )
    _flag(
        group,
        "--frontier-measure",
        "run each plan on this machine and measure its time, instead of estimating it",
    )
    group.add_argument(
        "--report",
        metavar="FILE",
        help="write statistics of the planned program as JSON",
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
    group = parser.add_argument_group("testing")
    _flag(group, "--verify-diagnostics", "print errors of passes, and exit with 0")
    _flag(group, "--parsing-diagnostics", "print syntax errors, and exit with 0")
    _flag(group, "--shrink", "exit with 0 if ShrinkException is raised (for reducers)")


def parse_arguments(args: Sequence[str] | None = None) -> argparse.Namespace:
    parser = make_parser()
    given = sys.argv[1:] if args is None else args
    options = parser.parse(_with_pipelines(parser, given))
    options.list_passes |= options.passes == ["help"]
    return options


def _with_pipelines(parser: Parser, args: Sequence[str]) -> Sequence[str]:
    """Rewrites mlir-opt's options for passes, `--NAME` and `--NAME='a=1'`, as `-p`."""
    if all(map(parser.knows, args)):
        return args
    from xdsl.universe import Universe  # takes as long to import as all of the above

    from ..passes import get_all_passes

    passes = get_all_passes() | Universe.get_multiverse().all_passes
    parser.words = [f"--{name}" for name in passes]
    pipelines: list[str] = []
    for arg in args:
        name, _, values = arg.removeprefix("--").partition("=")
        is_pass = not parser.knows(arg) and name in passes
        pipelines += ["-p", f"{name}{{{values}}}"] if is_pass else [arg]
    return pipelines


def main(args: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code (see `common`)."""

    def body() -> int:
        options = parse_arguments(args)
        if not (options.list_passes or options.help_pass):
            check_outputs(options.output_file, options.report)
            check_program(options.input_file)
        from .plan_opt_main import PlanOptMain

        PlanOptMain(options).run()
        return 0

    return guard("plan-opt", body)


if __name__ == "__main__":
    sys.exit(main())
