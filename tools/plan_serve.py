"""`plan-serve`: lays out the programs of a server in memory, and counts the pages of KV
cache that fit beside them; see `plan-serve --help`.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from .arguments import Parser, byte_count
from .colors import diagnostic
from .common import OPTION_ERRORS, UsageError, check_inputs, guard, read_source
from .plan_arguments import add_plan_options, given_options

if TYPE_CHECKING:
    from ..reporting.serving import Layout, Program

_DESCRIPTION = """\
Plans the programs of a server, and prints how they lie in the memory of each device,
with the pages of KV cache that are left. A MODEL is a program, or several separated by
commas, such as its prefills for several lengths and its decoding step: they run in
turns, in the same bytes, and share parameters and state, which are the same if they
have the same name and type. Several models run at the same time, each with bytes of its
own (but see --in-turns).

The figures are those of the plans, each of which is checked, with all arguments and
results. The exit code is 1 if the memory is too small.
"""
_EXAMPLES = """\
examples:
  plan-serve prefill.mlir,decode.mlir --memory 64MiB --page 16KiB
  plan-serve prefill.mlir,decode.mlir draft.mlir --memory 64MiB --in-turns
"""


def make_parser() -> Parser:
    parser = Parser("plan-serve", "[OPTION ...] MODEL ...", _DESCRIPTION, _EXAMPLES)
    parser.add_argument(
        "models",
        nargs="+",
        type=_files,
        metavar="MODEL",
        help="FILE or FILE,FILE,...: its programs; '-' reads one from stdin",
    )
    memory = parser.add_argument_group("memory")
    memory.add_argument(
        "--memory", type=byte_count, metavar="BYTES", help="the memory of each device"
    )
    memory.add_argument(
        "--page",
        type=byte_count,
        metavar="BYTES",
        help="the size of a page of KV cache",
    )
    memory.add_argument(
        "--pages", type=int, default=0, metavar="N", help="fail if fewer pages fit"
    )
    memory.add_argument(
        "--in-turns", action="store_true", help="only one model runs at a time"
    )
    add_plan_options(parser.add_argument_group("how to plan"))
    return parser


def _files(text: str) -> Sequence[str]:
    files = text.split(",")
    if "" in files:
        raise argparse.ArgumentTypeError(f"{text!r}, expected FILE or FILE,FILE,...")
    return files


def run(options: argparse.Namespace) -> int:
    """Runs the tool with parsed options; returns the exit code."""
    if options.page is not None and options.memory is None:
        raise UsageError("--page requires --memory")
    if options.pages and options.page is None:
        raise UsageError("--pages requires --page")
    for name in ("memory", "page"):
        if (size := vars(options)[name]) is not None and size < 1:
            raise UsageError(f"--{name} is {size}, expected 1 or more bytes")
    if options.pages < 0:
        raise UsageError(f"--pages is {options.pages}, expected 0 or more")
    files = [file for model in options.models for file in model]
    if files.count("-") > 1:
        raise UsageError("only one FILE can be stdin")
    check_inputs(*files)
    from ..reporting.serving import layouts

    names = _names(files)
    models = [_planned(model, names, options) for model in options.models]
    found = layouts(models, options.in_turns)
    print("\n".join(_text(found, options)))
    errors = list(_errors(found, options))
    for error in errors:
        print(diagnostic(f"plan-serve: error: {error}", sys.stderr), file=sys.stderr)
    return int(bool(errors))


def _names(files: Sequence[str]) -> Mapping[str, str]:
    """A name for each program: the file's stem, with its folder if stems are equal."""
    stems = {file: PurePath(file).stem for file in files}
    count = Counter(stems.values())
    return {
        file: stem if count[stem] == 1 else str(PurePath(file).with_suffix(""))
        for file, stem in stems.items()
    }


def _planned(
    files: Sequence[str], names: Mapping[str, str], options: argparse.Namespace
) -> "list[Program]":
    from xdsl.context import Context
    from xdsl.dialects import get_all_dialects as xdsl_dialects

    from ..analysis.allocations import is_planned
    from ..dialects import get_all_dialects
    from ..passes.plan.check import PlanCheck
    from ..passes.plan.pipeline import PlanPipeline
    from ..reporting.serving import Program
    from .compiler import ToolPipeline

    try:
        pipeline = PlanPipeline(**given_options(options))
    except OPTION_ERRORS as error:
        raise UsageError(str(error)) from None
    context = Context()
    for name, factory in (xdsl_dialects() | get_all_dialects()).items():
        context.register_dialect(name, factory)
    programs: list[Program] = []
    for file in files:
        compiler = ToolPipeline("plan-serve", context)
        source = read_source(file)
        module = compiler.read(source, simplify=False)  # keeps names of parameters
        given = PlanCheck(report=False) if is_planned(module) else pipeline
        compiler.run(module, [given])
        name = source.name if file == "-" else names[file]
        programs.append(Program(name, module))
    return programs


def _text(found: "Sequence[Layout]", options: argparse.Namespace) -> Iterator[str]:
    from ..reporting.wording import aligned, readable

    for layout in found:
        yield f"{layout.device or 'memory'}: {readable(layout.size)}"
        rows = [("at", "size", "")]
        rows += [(f"{b.offset:,}", f"{b.size:,}", b.what) for b in layout.blocks]
        if options.page is not None:
            count = max(layout.pages(options.memory, options.page), 0)
            pages = f"{count:,} pages of {readable(options.page)}"
            rows.append((f"{layout.size:,}", f"{count * options.page:,}", pages))
        yield from (f"  {line}" for line in aligned(rows, ">>"))


def _errors(found: "Sequence[Layout]", options: argparse.Namespace) -> Iterator[str]:
    """An error for each device whose memory is too small."""
    if options.memory is None:
        return
    for layout in found:
        needed = layout.size + options.pages * (options.page or 0)
        if needed > options.memory:
            yield (
                f"{layout.device or 'the memory'} has {options.memory:,} bytes, "
                f"{needed - options.memory:,} too few for {needed:,}"
                + (f", with {options.pages:,} pages" if options.pages else "")
            )


def main(args: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code (see `common`)."""
    return guard("plan-serve", lambda: run(make_parser().parse(args)))


if __name__ == "__main__":
    sys.exit(main())
