"""Measures the share of allocations in MLIR programs of others that is planned.

    python tests/suites/mlir_memory.py FOLDER... [--remarks] [--details]

FOLDER holds `.mlir` files, such as MLIR's own `mlir/test/Dialect/Bufferization` and
`mlir/test/Dialect/MemRef`. They are split like `mlir-opt --split-input-file` does.
`mlir-opt` makes three variants of each part: unchanged ("raw"), after
`-buffer-deallocation-pipeline` ("dealloc"), and after one-shot-bufferize and that
pipeline ("bufferized"). Variants that `mlir-opt` rejects or that allocate nothing do
not count. `plan-memory` runs once on each variant.

An allocation is static if its type has no `?`, and planned if `plan-memory` erases it.
"""

import argparse
import logging
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp
from xdsl.utils.exceptions import ParseError, VerifyException

import tensorplan
from tensorplan.analysis.allocations import is_arena
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.frontends.mlir_text import parse_module, permissive
from tensorplan.passes import driver
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.support.remarks import REMARKS

_DEALLOCATION = "--buffer-deallocation-pipeline"
_BUFFERIZATION = (
    "--one-shot-bufferize=allow-unknown-ops bufferize-function-boundaries "
    "function-boundary-type-conversion=identity-layout-map"
)
VARIANTS: dict[str, Sequence[str]] = {
    "raw": (),
    "dealloc": (_DEALLOCATION,),
    "bufferized": (_BUFFERIZATION, _DEALLOCATION),
}
_SEPARATOR = re.compile(r"^// -----.*$", re.MULTILINE)


@dataclass
class Outcome:
    """The result of planning one program."""

    static: int = 0  # number of allocations
    dynamic: int = 0
    planned_static: int = 0
    planned_dynamic: int = 0
    remarks: list[str] = field(default_factory=list[str])
    error: str = ""

    @property
    def kind(self) -> str:
        if self.error:
            return "error"
        planned = self.planned_static + self.planned_dynamic
        if planned == self.static + self.dynamic:
            return "planned"
        if planned:
            return "in part"
        return "left" if self.remarks else "unchanged"


class _Remarks(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def programs(
    folders: Sequence[Path], mlir_opt: str, variants: Sequence[str]
) -> Iterator[tuple[str, str, str]]:
    """Yields variant, name and generic text of each program that allocates memory."""
    for folder in folders:
        for path in sorted(folder.rglob("*.mlir")):
            parts = _SEPARATOR.split(path.read_text())
            for number, part in enumerate(parts):
                for variant in variants:
                    text = _lowered(part, mlir_opt, VARIANTS[variant])
                    if '"memref.alloc"' in text:
                        yield variant, f"{path.relative_to(folder)}#{number}", text


def _lowered(part: str, mlir_opt: str, options: Sequence[str]) -> str:
    """Runs mlir-opt on a part; returns generic text, or "" if it is invalid."""
    command = [mlir_opt, "--allow-unregistered-dialect", "--mlir-print-op-generic"]
    done = subprocess.run(
        [*command, *options], input=part, capture_output=True, text=True, timeout=60
    )
    return "" if done.returncode else done.stdout


def judge(name: str, text: str) -> Outcome:
    """Plans one program and counts its allocations before and after."""
    outcome, listener = Outcome(), _Remarks()
    counts = Counter(re.findall(r'"memref\.alloc"\(.*-> memref<(.*)>', text))
    for type, count in counts.items():
        if "?" in type.partition(",")[0]:
            outcome.dynamic += count
        else:
            outcome.static += count
    REMARKS.addHandler(listener)
    try:
        ctx = permissive(tensorplan.context())
        module = parse_module(text, name, ctx)
        driver.run(ctx, module, [PlanMemory()])
        static, dynamic = _left(module)
        outcome.planned_static = outcome.static - static
        outcome.planned_dynamic = outcome.dynamic - dynamic
    except (LocatedError, ParseError, VerifyException) as error:
        outcome.error = str(error)
    finally:
        REMARKS.removeHandler(listener)
    outcome.remarks = listener.texts
    return outcome


def _left(module: ModuleOp) -> tuple[int, int]:
    """The numbers of static and of dynamic allocations that are not planned."""
    static = dynamic = 0
    for op in module.walk():
        if isinstance(op, memref.AllocOp) and not is_arena(op):
            if DYNAMIC_INDEX in op.memref.type.get_shape():
                dynamic += 1
            else:
                static += 1
    return static, dynamic


def _reason(remark: str) -> str:
    """The text of a remark without its location, and with types and names as `_`."""
    text = re.sub(r"^\S+ remark: ", "", remark)
    return re.sub(r"(memref|vector|tensor)<\S*( \S+>)?|\d+|%\S+", "_", text)


def _table(outcomes: dict[str, list[Outcome]]) -> None:
    kinds = ("planned", "in part", "left", "unchanged", "error")
    print(f"{'variant':12}{'programs':>9}" + "".join(f"{k:>10}" for k in kinds))
    for variant, of in outcomes.items():
        counts = Counter(outcome.kind for outcome in of)
        row = "".join(f"{counts[kind]:>10}" for kind in kinds)
        print(f"{variant:12}{len(of):>9}{row}")
    every = [outcome for of in outcomes.values() for outcome in of]
    for what in ("static", "dynamic"):
        total = sum(getattr(outcome, what) for outcome in every)
        planned = sum(getattr(outcome, f"planned_{what}") for outcome in every)
        share = 100 * planned / total if total else 0
        print(f"{what} allocations: {planned} of {total} planned, {share:.1f} %")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="+", type=Path)
    parser.add_argument("--mlir-opt", default="mlir-opt-22")
    parser.add_argument("--variant", action="append", choices=VARIANTS)
    parser.add_argument("--remarks", action="store_true", help="counts their reasons")
    parser.add_argument("--details", action="store_true", help="a line per program")
    parser.add_argument("--save", type=Path, help="writes the programs to a folder")
    given = parser.parse_args()
    if shutil.which(given.mlir_opt) is None:
        parser.error(f"no {given.mlir_opt} on PATH")
    REMARKS.setLevel(logging.INFO)
    variants: list[str] = given.variant or list(VARIANTS)
    outcomes: dict[str, list[Outcome]] = {variant: [] for variant in variants}
    reasons: Counter[str] = Counter()
    for variant, name, text in programs(given.folder, given.mlir_opt, variants):
        if given.save:
            target = given.save / variant / (name.replace("/", "_") + ".mlir")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        outcome = judge(name, text)
        outcomes[variant].append(outcome)
        reasons.update(map(_reason, outcome.remarks))
        if given.details or outcome.error:
            print(f"{variant} {name}: {outcome.kind} {outcome.error}".rstrip())
        if given.details:
            print(*(f"    {text}" for text in outcome.remarks), sep="\n")
    _table(outcomes)
    if given.remarks:
        for reason, count in reasons.most_common():
            print(f"{count:5}  {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
