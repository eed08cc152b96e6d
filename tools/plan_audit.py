"""`plan-audit`: checks memory plans of other compilers, and reports what they waste.

See `plan-audit --help`.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from .arguments import Parser
from .colors import diagnostic
from .common import (
    UsageError,
    check_inputs,
    check_outputs,
    guard,
    say,
    write_atomically,
)

if TYPE_CHECKING:
    from ..checking.foreign import Audit, Finding
    from ..reporting.foreign import Account
    from ..support.foreign_plan import ForeignPlan

_LISTED = 10
"""The largest number of groups of values at the peak that are listed."""

_DESCRIPTION = """\
Audits the memory plans of other compilers: runs through the steps of a plan, tracks
which bytes hold which values, and reports each read of a value that is lost. Also
prints what the bytes of the largest plan are used for, and how many are wasted. A FILE
is one of these; a FOLDER holds any number of them:

  XLA         *-buffer-assignment.txt, beside the text of the optimized HLO
  IREE        *.iree.mlir: the IR before and after planning (see the how-to)
  ExecuTorch  *.pte: the first method
  LiteRT      *.tflite, with offsets in it or the interpreter's addresses beside
  Inductor    *output_code.py, its code for a CPU or a GPU: the files of a
              forward and a backward pass side by side are one plan
  PyTorch     *.pickle of torch.cuda.memory._dump_snapshot
  CSV         buffers in minimalloc's format, with offsets (plan-solve --help)

A plan is 'unsound' if a step reads a value whose bytes hold another one; 'suspicious'
if it depends on an order of elements, or on numbers, that the plan does not show; 'not
refuted' if the audit does not understand all of it; and otherwise 'proved', under the
assumptions that are printed.

The exit code is 1 if a plan is unsound or cannot be read.
"""
_EXAMPLES = """\
examples:
  XLA_FLAGS="--xla_dump_to=dump --xla_dump_hlo_as_text" python train.py
  plan-audit dump
  plan-audit dump/...jit_step.*-buffer-assignment.txt --against step.mlir
  plan-audit dump --json audit.json --sarif audit.sarif
"""
_SEVERITIES = {"unsound": "error", "suspicious": "warning"}
"""The levels that compilers and SARIF use, by tensorplan's severity."""

_KINDS = {
    **{kind: f"{kind}s" for kind in ("argument", "result", "constant")},
    "temporary": "temporaries",
    "host": "host memory",
    "scratch": "scratch memory of kernels",
}
"""The kinds of memory in words."""


class _Audited(NamedTuple):
    audit: "Audit"
    account: "Account | None"
    """None for an unsound plan."""
    needed: int | None = None
    """Bytes of tensorplan's plan for the same program, with arguments and results."""
    simulated: "Mapping[str, int]" = MappingProxyType({})
    """Bytes that other allocators would take for the blocks of a PyTorch trace."""


def make_parser() -> Parser:
    parser = Parser("plan-audit", "[OPTION ...] FILE ...", _DESCRIPTION, _EXAMPLES)
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="a file with a plan, or a FOLDER"
    )
    parser.add_argument(
        "--against",
        metavar="PROGRAM",
        help="the input of the other compiler, in a format that plan-opt reads: plan "
        "it with plan-pipeline, and compare its bytes with those of one sound plan",
    )
    out = parser.add_argument_group(
        "outputs", "'-' is stdout. Files are written atomically."
    )
    out.add_argument("--json", metavar="FILE", help="write all findings as JSON")
    out.add_argument(
        "--sarif", metavar="FILE", help="write the findings as SARIF, for code scanning"
    )
    return parser


def run(options: argparse.Namespace) -> int:
    """Runs the tool with parsed options; returns the exit code."""
    check_outputs(options.json, options.sarif)
    if options.against:
        check_inputs(options.against)
    from ..checking.foreign import audit
    from ..frontends.plans.reading import plan_files, read
    from ..reporting.foreign import account
    from ..support.foreign_plan import ForeignPlanError

    files = dict.fromkeys(f for path in options.files for f in plan_files(path))
    found: list[_Audited] = []
    is_read = True
    for file in files:
        try:
            plan = read(file)
        except ForeignPlanError as error:
            say(f"{error.place}: error: {error.reason}")
            is_read = False
            continue
        result = audit(plan)
        is_unsound = result.verdict == "unsound"
        each = _Audited(result, None if is_unsound else account(plan))
        if plan.devices and not is_unsound:
            each = each._replace(simulated=_simulated(plan))
        found.append(each)
    if options.against:
        if len(found) != 1 or found[0].account is None:
            raise UsageError("--against requires exactly one plan that is not unsound")
        found = [found[0]._replace(needed=_needed(options.against))]
    if found and "-" not in (options.json, options.sarif):
        print("\n".join(_text(found)))
    for path, content in ((options.json, _json(found)), (options.sarif, _sarif(found))):
        if path:
            write_atomically(path, f"{json.dumps(content, indent=2)}\n".encode())
    is_unsound = any(each.audit.verdict == "unsound" for each in found)
    return int(is_unsound or not is_read)


def _simulated(plan: "ForeignPlan") -> Mapping[str, int]:
    from ..reporting.foreign import lives
    from ..reporting.segments import expandable, offline

    values = lives(plan)
    return {
        "expandable_segments_bytes": expandable(values, plan.devices),
        "offline_plan_bytes": offline(values, plan.devices),
    }


def _needed(path: str) -> int:
    """Bytes of tensorplan's plan for the program in `path`."""
    from .. import dialects
    from ..passes.plan.pipeline import PlanPipeline
    from ..reporting.trials import outcome
    from .common import read_source
    from .compiler import ToolPipeline

    compiler = ToolPipeline("plan-audit", dialects.context())
    module = compiler.read(read_source(path), simplify=True)
    compiler.run(module, [PlanPipeline()])
    return outcome(module).total


def _text(found: Sequence[_Audited]) -> Iterator[str]:
    """The lines of the printed report."""
    for each, *_ in found:
        for finding in each.findings:
            severity = _SEVERITIES[finding.severity]
            text = f"{_place(each, finding)}: {severity}: {finding.message}"
            yield diagnostic(text, sys.stdout)
    yield from _table(found)
    for what, count in _not_understood(found).items():
        yield f"not understood: {count} x {what}"
    assumptions = (line for each in found for line in each.audit.plan.assumptions)
    for number, line in enumerate(dict.fromkeys(assumptions)):
        yield f"{'         ' if number else 'assumed: '}{line}"
    accounts = [each for each in found if each.account]
    if accounts:
        yield from _peak(*max(accounts, key=lambda each: each.audit.plan.bytes))


def _place(audit: "Audit", finding: "Finding") -> str:
    return finding.location or audit.plan.name


def _table(found: Sequence[_Audited]) -> Iterator[str]:
    from ..reporting.wording import aligned, readable

    rows = [["plan", "verdict", "steps", "values", "in place", "size", "live at most"]]
    for audit, account, *_ in found:
        counts = (audit.steps, audit.values, audit.shared)
        live = readable(account.live) if account else "-"
        bytes = (readable(audit.plan.bytes), live)
        rows.append([audit.plan.name, audit.verdict, *map(str, counts), *bytes])
    yield from aligned(rows, "<<>>>>>")


def _not_understood(found: Sequence[_Audited]) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for each, *_ in found:
        for what, count in each.plan.not_understood.items():
            counts[what] = counts.get(what, 0) + count
    return counts


def _peak(
    audit: "Audit",
    account: "Account | None",
    needed: int | None,
    simulated: Mapping[str, int],
) -> Iterator[str]:
    """The bytes of a plan by kind, the values at its peak, and the waste by cause."""
    from ..reporting.wording import aligned, plural, readable

    if account is None:
        return
    kinds = ", ".join(
        f"{readable(size)} of {_KINDS[kind]}"
        for kind, size in account.by_kind.items()
        if size
    )
    yield ""
    yield f"{audit.plan.name} takes {readable(account.bytes)}: {kinds}"
    step = account.step or "the start"
    place = f" ({account.location})" if account.location else ""
    yield f"at the peak, in {step}{place}, {readable(account.live)} are live:"
    rows: list[tuple[str, str, str, str, str]] = []
    for size, values, type, origin, place in account.groups[:_LISTED]:
        count = f"{values} x" if type else plural(values, "buffer")
        rows.append((readable(size), count, type, place, origin))
    yield from (f"  {line}" for line in aligned(rows, ">>"))
    if rest := account.groups[_LISTED:]:
        yield f"  and {readable(sum(group.bytes for group in rest))} in others"
    yield f"lost by placement: {readable(account.lost_by_placement)}"
    if simulated:
        expandable, offline = map(readable, simulated.values())
        yield f"with expandable segments, simulated: {expandable}"
        yield f"with offsets planned for this trace: {offline}"
    if account.lost_by_order is not None:
        yield f"lost by order: {readable(account.lost_by_order)}"
    if account.lost_by_copies is not None:
        yield f"lost by copies: {readable(account.lost_by_copies)}"
    if needed is not None:
        lost = account.lost_by_program(needed)
        sign = "-" if lost < 0 else ""
        yield f"lost by fusion, tiles and the rest: {sign}{readable(abs(lost))}"
        yield f"tensorplan's plan takes {readable(needed)}"


def _json(found: Sequence[_Audited]) -> Mapping[str, Any]:
    return {"plans": [_plan_json(*each) for each in found]}


def _plan_json(
    audit: "Audit",
    account: "Account | None",
    needed: int | None,
    simulated: Mapping[str, int],
) -> Mapping[str, Any]:
    plan = audit.plan
    compared: dict[str, int] = {}
    if account and needed is not None:
        lost = account.lost_by_program(needed)
        compared = {"tensorplan_bytes": needed, "lost_by_program_bytes": lost}
    return {
        "name": plan.name,
        "verdict": audit.verdict,
        "steps": audit.steps,
        "values": audit.values,
        "in_place": audit.shared,
        "bytes": plan.bytes,
        **(_account_json(account) if account else {}),
        **compared,
        **simulated,
        "findings": [finding._asdict() for finding in audit.findings],
        "not_understood": dict(plan.not_understood),
        "assumptions": list(plan.assumptions),
    }


def _account_json(account: "Account") -> Mapping[str, Any]:
    return {
        "bytes_by_kind": dict(account.by_kind),
        "live_bytes": account.live,
        "peak_step": account.step,
        "peak_location": account.location,
        "lost_by_placement_bytes": account.lost_by_placement,
        "lost_by_order_bytes": account.lost_by_order,
        "lost_by_copies_bytes": account.lost_by_copies,
        "at_peak": [group._asdict() for group in account.groups],
    }


def _sarif(found: Sequence[_Audited]) -> Mapping[str, Any]:
    """The findings as SARIF 2.1.0, which code scanning reads."""
    from ..version import VERSION

    results = [
        _result(audit, finding) for audit, *_ in found for finding in audit.findings
    ]
    rules = [{"id": severity} for severity in _SEVERITIES]
    driver = {"name": "plan-audit", "version": VERSION, "rules": rules}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _result(audit: "Audit", finding: "Finding") -> Mapping[str, Any]:
    file, *numbers = _parts(_place(audit, finding))
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(file)}}
    if numbers:
        keys = ("startLine", "startColumn")
        place["region"] = dict(zip(keys, numbers, strict=False))
    return {
        "ruleId": finding.severity,
        "level": _SEVERITIES[finding.severity],
        "message": {"text": f"{audit.plan.name}: {finding.message}"},
        "locations": [{"physicalLocation": place}],
    }


def _parts(place: str) -> tuple[str, *tuple[int, ...]]:
    """Splits `file:3:14` into file, line, and column; file names may contain colons."""
    parts = place.replace(os.sep, "/").split(":")
    numbers: list[int] = []
    while len(parts) > 1 and len(numbers) < 2 and parts[-1].isdigit():
        numbers.insert(0, int(parts.pop()))
    return (":".join(parts), *numbers)


def main(args: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code (see `common`)."""
    return guard("plan-audit", lambda: run(make_parser().parse(args)))


if __name__ == "__main__":
    sys.exit(main())
