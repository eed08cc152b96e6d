"""The main class of plan-opt: `xdsl-opt` with all its flags, and tensorplan's own.

It registers the passes of tensorplan, of xDSL, and of every installed `xdsl.universe`.
"""

import re
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from inspect import cleandoc
from textwrap import fill, indent
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.passes import ModulePass, PassOptionInfo, get_pass_option_infos
from xdsl.printer import Printer
from xdsl.universe import Universe
from xdsl.utils.arg_spec import parse_spec
from xdsl.utils.diagnostic import Diagnostic
from xdsl.utils.exceptions import DiagnosticException, ParseError, ShrinkException
from xdsl.utils.target import Target
from xdsl.xdsl_opt_main import xDSLOptMain

from ..dialects import get_all_dialects
from ..frontends.reading import decode
from ..passes import get_all_passes
from ..passes.driver import flatten
from ..passes.options import documented
from ..passes.plan.attach_target import PlanAttachTarget
from ..passes.plan.pipeline import PlanPipeline
from ..support.choices import one_of
from . import colors, pipelines
from .common import (
    OPTION_ERRORS,
    Source,
    UsageError,
    check_sizes,
    read_source,
    write_atomically,
    write_report,
)
from .compiler import ToolPipeline
from .messages import describe
from .progress import tracked
from .targets import get_all_targets
from .timing import print_timing

_QUESTIONS = ("explain", "frontier")
"""Options that print something else instead of the IR."""

_NOT_GIVEN = (None, False, "mlir")

_get_multiverse = cache(Universe.get_multiverse)


class PlanOptMain(xDSLOptMain):
    """`xdsl-opt` with more input formats, located errors, and atomic output."""

    passes: Sequence[ModulePass]
    """The passes that `-p` names, without `asked`."""

    asked: PlanPipeline
    """The `plan-pipeline` at the end of `-p`, with `--explain` or `--frontier`."""

    def __init__(self, args: Namespace):
        # The constructor of the base class would parse the command line.
        self.args = args
        self.available_passes = {}
        self.available_targets = {}
        self.ctx = Context()
        self.register_all_dialects()
        self.register_all_passes()
        self.register_all_targets()
        target = parse_spec(self.args.target).name
        if target not in self.available_targets:
            raise UsageError(f"target is {one_of(target, self.available_targets)}")
        self.ctx.allow_unregistered = self.args.allow_unregistered_dialect
        if self.args.disable_verify:
            Attribute.__post_init__ = _no_check
        if self.args.syntax_highlight:
            Diagnostic.colored = True
        self.setup_pipeline()

    @cached_property
    def compiler(self) -> ToolPipeline:
        return ToolPipeline("plan-opt", self.ctx)

    # Registers all installed universes, and tensorplan's even if it is not installed.

    def register_all_dialects(self) -> None:
        for name, factory in (
            _get_multiverse().all_dialects | get_all_dialects()
        ).items():
            self.ctx.register_dialect(name, factory)

    def register_all_passes(self) -> None:
        self.available_passes = get_all_passes() | _get_multiverse().all_passes

    def register_all_targets(self) -> None:
        self.available_targets = {**_get_multiverse().all_targets, **get_all_targets()}

    def setup_pipeline(self) -> None:
        question = next((o for o in _QUESTIONS if getattr(self.args, o)), None)
        if self.args.list_passes:
            return
        named = ",".join(self.args.passes) or ("plan-pipeline" if question else "")
        self.passes = pipelines.parse(named, self.available_passes)
        if self.args.target_memory:
            self.passes = [PlanAttachTarget(self.args.target_memory), *self.passes]
        try:
            if question:
                self._check_question(question)
            self.flat = list(flatten(self.passes))
        except OPTION_ERRORS as error:  # an option that a pipeline forwards to a pass
            raise UsageError(str(error)) from None
        for name in self.args.print_ir_after:
            if name != "all":
                pipelines.check_name(name, self.available_passes)
        for option in ("report", *_QUESTIONS):
            if getattr(self.args, option) and self.args.split_input_file:
                message = f"--{option} takes one program, not --split-input-file"
                raise UsageError(message)
        target = parse_spec(self.args.target)
        if not target.parameters:
            return
        factory = cast(Callable[[], type[Target]], self.available_targets[target.name])
        try:
            factory().from_spec(target)
        except ValueError as error:
            raise UsageError(f"argument -t/--target: {error}") from None

    # Reading, compiling, and printing.

    def get_input_name(self) -> str:
        name = self.args.input_file
        return "<stdin>" if name in (None, "-") else name

    def _chunks(self) -> Iterator[Source]:
        """The programs in the input."""
        data = read_source(self.args.input_file).data
        line = 1
        for chunk in data.split(b"// -----") if self.args.split_input_file else [data]:
            source = Source(self.get_input_name(), chunk, line, self.args.sizes)
            check_sizes(source)
            yield source
            line += chunk.count(b"\n")

    def _read(self, source: Source) -> ModuleOp:
        if not self.args.no_implicit_module:
            return self.compiler.read(source, simplify=False)
        text = decode(source.data, source.name)
        lines = "\n" * (source.first_line - 1)
        return Parser(self.ctx, lines + text, source.name).parse_module(False)

    def run(self) -> None:
        if self.args.list_passes:
            print_passes(get_all_passes(), self.available_passes)
            return
        if name := self.args.help_pass:
            pipelines.check_name(name, self.available_passes)
            print(pass_help(name, self.available_passes[name]()))
            return
        pieces: list[str] = []
        emit = pieces.append if self.args.output_file else _print_now
        try:
            for index, source in enumerate(self._chunks()):
                if index:
                    emit("// -----\n")
                emit(self._process(source))
        except ShrinkException:
            if not self.args.shrink:
                raise
            print("Success, can shrink")
            sys.exit(0)
        if self.args.output_file:
            write_atomically(self.args.output_file, "".join(pieces).encode())
        if self.args.shrink:
            print("Failure, can't shrink")
            sys.exit(1)

    def _process(self, source: Source) -> str:
        """The output for one program; empty if it has an error that was requested."""
        try:
            module = self._read(source)
            if self.args.explain:
                return self._explained(module)
            if self.args.frontier:
                return self._frontier(module)
            self.apply_passes(module)
            start = time.process_time()
            text = self.output_resulting_program(module)
            printing = time.process_time() - start
        except ParseError as error:
            if not self.args.parsing_diagnostics:
                raise
            print(describe(error))
            return ""
        except DiagnosticException as error:
            if not self.args.verify_diagnostics:
                raise
            print(describe(error))
            return ""
        if self.args.timing:
            print_timing(self.compiler, self.passes, printing, sys.stderr)
        if self.args.report:
            write_report(self.args.report, module, self.compiler.seconds())
        return text

    def _check_question(self, option: str) -> None:
        last = self.passes[-1] if self.passes else None
        if not isinstance(last, PlanPipeline):
            raise UsageError(
                f"--{option}: the last pass is {last.name if last else 'missing'}, "
                "expected plan-pipeline"
            )
        for other in ("report", "timing", "target", *_QUESTIONS):
            if other != option and getattr(self.args, other) not in _NOT_GIVEN:
                raise UsageError(f"--{option} prints no IR, so --{other} has no effect")
        self.passes, self.asked = self.passes[:-1], last
        if option == "frontier":
            from ..reporting.frontier import check_options

            check_options(last, self.args.frontier_points)

    def _explained(self, module: ModuleOp) -> str:
        from ..reporting.explanation import explain

        self.apply_passes(module)
        explanation = explain(
            self.ctx,
            module,
            self.asked,
            limit=self.args.explain_limit,
            track=lambda options: tracked("trying", options),
        )
        if self.args.explain == "json":
            return f"{explanation.json()}\n"
        is_shown = not self.args.output_file and colors.wanted(sys.stdout)
        return f"{explanation.text(color=is_shown)}\n"

    def _frontier(self, module: ModuleOp) -> str:
        from ..reporting.frontier import as_json, frontier, table

        self.apply_passes(module)
        points, measure = self.args.frontier_points, self.args.frontier_measure
        found = frontier(self.ctx, module, self.asked, points, measure)
        return f"{(as_json if self.args.frontier == 'json' else table)(found)}\n"

    def apply_passes(self, prog: ModuleOp) -> None:
        left = len(self.flat)
        wanted = set(self.args.print_ir_after)

        def after(pass_: ModulePass, module: ModuleOp, seconds: float) -> None:
            nonlocal left
            left -= 1
            if self.args.time_passes:
                print(f"Pass {pass_.name} took {seconds} seconds")
            if self.args.print_between_passes and left:
                print(f"IR after {pass_.name}:")
                Printer().print_op(module)
                print("\n\n\n")
            if wanted & {pass_.name, "all"}:
                print(
                    f"// -----// IR Dump After {pass_.name} //----- //", file=sys.stderr
                )
                generic = self.args.print_op_generic
                Printer(sys.stderr, print_generic_format=generic).print_op(module)
                print(file=sys.stderr)

        verify = not self.args.disable_verify
        self.compiler.run(prog, self.passes, verify=verify, after=after)


def _no_check(self: Attribute) -> None:
    pass


def _print_now(text: str) -> None:
    print(text, end="", flush=True)


def pass_help(name: str, cls: type[ModulePass]) -> str:
    """The full documentation of a pass, and its options with their meaning."""
    is_ours = name in get_all_passes()
    text = (sys.modules[cls.__module__] if is_ours else cls).__doc__
    lines = [_filled(cleandoc(text or name))]
    meanings = documented(cls)
    for option in get_pass_option_infos(cls):
        lines += ["", _option(option)]
        if meaning := meanings.get(option.name):
            lines.append(indent(fill(" ".join(meaning.split()), 76), "    "))
    return "\n".join(lines)


_ITEM = re.compile(r"(?= *\* |Needs:|Leaves:|Does not:)")
"""Matches the start of a line that is not joined to the paragraph before it."""


def _filled(text: str) -> str:
    """Wraps prose to the width of a terminal; indented code is unchanged."""
    items: list[list[str]] = []
    was_prose = False
    for line in text.splitlines():
        is_prose = bool(line) and not line.startswith("    ")
        if not (is_prose and was_prose) or _ITEM.match(line):
            items.append([])
        items[-1].append(line)
        was_prose = is_prose
    return "\n".join(map(_item, items))


def _item(lines: Sequence[str]) -> str:
    first = lines[0].lstrip()
    margin = lines[0][: len(lines[0]) - len(first)]
    if len(margin) >= 4:
        return lines[0]
    return fill(
        " ".join(line.strip() for line in lines),
        80,
        initial_indent=margin,
        subsequent_indent=margin + "  " * first.startswith("* "),
        break_long_words=False,
        break_on_hyphens=False,
    )


def print_passes(
    ours: Iterable[str], known: dict[str, Callable[[], type[ModulePass]]]
) -> None:
    """Prints the passes with their summaries and options; `ours` come first."""
    for name in (*ours, *sorted(known.keys() - set(ours))):
        try:
            cls = known[name]()
        except ImportError as error:  # an optional package is not installed
            print(f"{name:40}(not available: {error})")
            continue
        summary = (cls.__doc__ or "").strip().partition("\n")[0]
        if summary.startswith(f"{cls.__name__}("):  # generated by dataclasses
            summary = ""
        print(f"{name:40}{summary}".rstrip())
        for option in get_pass_option_infos(cls):
            print(f"    {_option(option)}")


def _option(option: PassOptionInfo) -> str:
    name, default = option.name.replace("_", "-"), option.default_value
    return f"{name}: {option.expected_type}{'' if default is None else f' = {default}'}"
