"""Bytes that models need besides arguments and results: ours, and those of others.

    python benchmarks/peak.py tests/models/*.mlir
    python benchmarks/peak.py *.mlir --high --iree iree-compile --write docs/peak.md

Ours is the arena of `plan-pipeline`; XLA's is the temporary buffer that jaxlib's CPU
compiler reports for the same StableHLO text with its default settings; IREE's are the
transient bytes that its statistics show. All leave arguments out, and let donated ones
be overwritten; results are left out as well, but for IREE's that lie in no donated
argument.
"""

import argparse
import csv
import subprocess
from collections.abc import Iterator, Sequence
from hashlib import sha256
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from in_xla import compiled

import tensorplan


class Peers(NamedTuple):
    """Bytes that others need for a model; None where it was not measured."""

    iree: int | None = None
    inductor: int | None = None  # that reuses buffers; outputs included
    inductor_pool: int | None = None  # with its memory planner; outputs outside pools
    executorch: int | None = None


RECORDED = {
    "c2de4dece031": Peers(524_288, 524_288, 524_288),
    "ecf24b2b8296": Peers(1_065_984, 1_867_780, 1_867_776),
    "adf4f10c6f86": Peers(1_065_984, 2_916_356, 2_916_352),
    "ad75558917a4": Peers(1_767_424, 1_514_880, 310_656),
    "49c0aba29dc6": Peers(5_537_152, 3_612_740, 2_443_648),
    "367be8346c05": Peers(45_006_208, 32_260_096, 35_127_296, 51_380_224),
    "8945cea81dba": Peers(None, 247_894_796, 167_682_824),
    "50d6e27bd912": Peers(65_051_840, 49_201_152, 40_894_464, 33_554_432),
    "fe18fe43613c": Peers(44_040_192, 208_998_400, 12_582_912),
    "6a251403b5ef": Peers(2_243_896_320),
    "141a2326e42f": Peers(2_490_368),
    "5123d3c01295": Peers(22_296_640),
}
"""Measured once, by the first digits of the StableHLO text's SHA-256: IREE 3.13,
PyTorch 2.13 and ExecuTorch 1.4.1, the last two on the same networks written in PyTorch,
whose training steps keep other values than JAX's do."""

INTRODUCTION = """\
# What models need besides arguments and results

For those who wonder how much memory a plan saves, and what other compilers need.

Bytes. `low` and `high` are the arenas of `plan-pipeline` with that effort; `FLOPs
again` is what `high` computes again, as a part of the model's own. XLA is jaxlib's CPU
compiler with its default settings, IREE its CPU compiler (3.13), for the same StableHLO
text; its statistics count results that lie in no donated argument. Figures with a star
were measured once, elsewhere: PyTorch Inductor 2.13 (its reuse of buffers, with
outputs; and its memory planner's pools) and ExecuTorch 1.4.1, on the same networks
written in PyTorch, whose training steps keep other values. `-` is not measured, or does
not compile. The smallest figure for the same text is bold.

Written by `benchmarks/peak.py ... --high --iree iree-compile --write docs/peak.md`. The
models are those of `tests/models` and larger ones of their kind, as JAX exports them.

"""


def xla_temporary_bytes(text: str) -> int:
    """What `memory_analysis` of JAX shows as temporary size."""
    return int(compiled(text).get_compiled_memory_stats().temp_size_in_bytes)


def iree_transient_bytes(compiler: str, file: Path) -> int | None:
    """The transient bytes that IREE's statistics show; None if it can't compile."""
    with TemporaryDirectory() as folder:
        statistics = Path(folder) / "statistics.csv"
        command = [
            compiler,
            str(file),
            "--iree-input-type=stablehlo",
            "--iree-hal-target-device=local",
            "--iree-hal-local-target-device-backends=llvm-cpu",
            "--compile-to=stream",
            "--iree-scheduling-dump-statistics-format=csv",
            f"--iree-scheduling-dump-statistics-file={statistics}",
            f"-o={folder}/out.mlir",
        ]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return None
        return _transient(statistics.read_text())


def _transient(statistics: str) -> int | None:
    rows = list(csv.reader(StringIO(statistics)))
    names = next((r for r in rows if any("Transient Size" in c for c in r)), None)
    if names is None:
        return None
    column = next(i for i, name in enumerate(names) if "Transient Size" in name)
    row = rows[rows.index(names) + 1]
    return int(row[column].strip().strip('"'))


class Ours(NamedTuple):
    """What a model needs here, in bytes."""

    arena: int
    lower_bound: int
    unshared: int
    recomputed: float  # a part of its FLOPs


def ours(file: Path, effort: str) -> Ours:
    planned = tensorplan.plan(tensorplan.from_stablehlo(file), effort=effort)
    report = tensorplan.report(planned)
    pools = report["pools"]
    return Ours(
        sum(pool["bytes"] for pool in pools),
        sum(pool["lower_bound_bytes"] for pool in pools),
        sum(pool["unshared_bytes"] for pool in pools),
        report["recomputed_flops"] / max(report["flops"], 1),
    )


COLUMNS = (
    "low",
    "high",
    "FLOPs again",
    "XLA",
    "IREE",
    "Inductor",
    "Inductor pools",
    "ExecuTorch",
)


def _row(file: Path, high: bool, iree: str | None) -> list[str]:
    peers = RECORDED.get(sha256(file.read_bytes()).hexdigest()[:12], Peers())
    low = ours(file, "low")
    best = ours(file, "high") if high else None
    xla = xla_temporary_bytes(file.read_text())
    measured = iree_transient_bytes(iree, file) if iree else None
    same = [low.arena, xla, *(n for n in (measured or peers.iree,) if n)]
    if best:
        same.append(best.arena)
    least = min(same)

    def cell(number: int | None, mark: str = "") -> str:
        if number is None:
            return "-"
        bold = "**" if number == least and not mark else ""
        return f"{bold}{number:,}{bold}{mark}"

    return [
        file.stem,
        cell(low.arena),
        cell(best.arena if best else None),
        f"{100 * best.recomputed:.1f} %" if best else "-",
        cell(xla),
        cell(measured) if measured else cell(peers.iree, "\\*"),
        *(cell(number, "\\*") for number in peers[1:]),
    ]


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| model | {' | '.join(COLUMNS)} |"
    yield f"| --- |{' --: |' * len(COLUMNS)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--high", action="store_true", help="effort=high as well")
    parser.add_argument("--iree", metavar="COMMAND", help="IREE's compiler")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="all the columns")
    options = parser.parse_args()
    if options.write or options.high or options.iree:
        rows: list[list[str]] = []
        for file in options.files:
            rows.append(_row(file, options.high, options.iree))
            print(" ".join(rows[-1]), flush=True)
        if options.write:
            text = "\n".join((*table(rows), ""))
            options.write.write_text(INTRODUCTION + text)
        return
    columns = ("arena", "lower bound", "without reuse", "XLA temp")
    print(f"{'model':<20}" + "".join(f"{column:>16}" for column in columns))
    for file in options.files:
        figures = [*ours(file, "low")[:3], xla_temporary_bytes(file.read_text())]
        print(f"{file.stem:<20}" + "".join(f"{figure:>16,}" for figure in figures))


if __name__ == "__main__":
    main()
