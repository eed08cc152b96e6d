"""Fuzzes all targets for hours: `python3 dev.py fuzz nightly --minutes 240`.

Each target runs in a separate process, with seeds that differ every day. If atheris is
installed, most readers are fuzzed with coverage. `--folder` keeps a log of each target,
failing inputs, and the corpora, from which the next night continues. A line for each
target summarizes the run. The exit code is 1 if anything failed.
"""

import argparse
import re
import subprocess
import sys
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import NamedTuple

HERE = Path(__file__).parent
GUIDED = (
    *("csv", "mlir", "npz", "onnx", "plan", "stablehlo"),
    *("view-csv", "view-json", "view-mlir"),
)
SHARES = {
    "tensor": 6,
    "models": 4,
    "memref": 2,
    "foreign": 1,
    "onnxruntime": 1,
} | dict.fromkeys(("cli", "bytecode"), 0.5)
"""Relative shares of the time; other readers have 1."""


class Line(NamedTuple):
    """A row of the table. `failed` counts inputs, or kinds of failure with coverage."""

    target: str
    tried: int
    refused: int
    failed: int
    minutes: float
    ended: int  # exit code


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("fuzz nightly", description=__doc__)
    parser.add_argument("--minutes", type=float, default=240, help="for all of it")
    parser.add_argument("--folder", type=Path, default=Path("fuzz-nightly"))
    options = parser.parse_args(arguments)
    folder: Path = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    guided = GUIDED if find_spec("atheris") else ()
    shares = SHARES | dict.fromkeys(GUIDED, 1)
    minute = options.minutes / sum(shares.values())
    lines: list[Line] = []
    for target, share in shares.items():
        is_guided = target in guided
        command = _guided if is_guided else _by_seed
        log = folder / f"{target}.log"
        start = monotonic()
        with log.open("w") as stream:
            ended = subprocess.call(
                command(target, share * minute, folder), stdout=stream, stderr=stream
            )
        count = _count_guided if is_guided else _count_seeds
        tried, refused, failed = count(log.read_text(errors="replace"), target)
        minutes = (monotonic() - start) / 60
        lines.append(Line(target, tried, refused, failed, minutes, ended))
        print(_row(lines[-1]), flush=True)
    failures = sum(line.failed > 0 or line.ended != 0 for line in lines)
    print(f"{sum(line.tried for line in lines):,} inputs, {failures} targets failed")
    return int(failures > 0)


def _by_seed(target: str, minutes: float, folder: Path) -> list[str]:
    seed = 100_000 * date.today().toordinal()
    limits = ["--count", "100000", "--minutes", f"{minutes:g}", "--seed", str(seed)]
    return [sys.executable, str(HERE), target, *limits]


def _guided(target: str, minutes: float, folder: Path) -> list[str]:
    kept = ["--corpus", str(folder / "corpus" / target)]
    kept += ["--failures", str(folder / "failures")]
    program = str(HERE / "guided.py")
    return [sys.executable, program, target, "--minutes", f"{minutes:g}", *kept]


def _count_seeds(log: str, target: str) -> tuple[int, int, int]:
    """The numbers of inputs, of refused inputs, and of failed inputs in a log."""
    summary = re.search(rf"^{target}: (.*) in [\d.]+ min of CPU", log, re.MULTILINE)
    counts = dict.fromkeys(("ok", "refused", "failed"), 0)
    for number, name in re.findall(r"(\d+) (\w+)", summary[1] if summary else ""):
        counts[name] = int(number)
    return sum(counts.values()), counts["refused"], counts["failed"]


def _count_guided(log: str, target: str) -> tuple[int, int, int]:
    units = re.search(r"^stat::number_of_executed_units: (\d+)", log, re.MULTILINE)
    kinds = re.findall(rf"^{target}-[0-9a-f]{{8}}: ", log, re.MULTILINE)
    return int(units[1]) if units else 0, 0, len(kinds)


def _row(line: Line) -> str:
    row = f"{line.target:10} {line.tried:9,} tried {line.refused:6,} refused"
    row += f" {line.failed:4} failed {line.minutes:6.1f} min"
    return row + (f"  exit code {line.ended}" if line.ended else "")
