"""Bytes that models need besides arguments and results, here and in other compilers.

    python benchmarks/peak.py tests/models/*.mlir
    python benchmarks/peak.py *.mlir --high --write docs/peak.md
    python benchmarks/peak.py *.mlir --peers xla,iree,tvm --record

Our figure is the arena of `plan-pipeline`. `benchmarks/peers.csv` records the figures
of other compilers. `--peers` measures the named compilers again, which must be
installed, and updates that file. The modules in `benchmarks/peers/` list the settings
of each compiler and say what is counted. `--record` stops after that, so it works
without tensorplan.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

from peak_chart import chart
from peers.recorded import PEERS, Row, least, measured, record, recorded

NAMES = "XLA", "IREE", "TVM", "ONNX Runtime", "Inductor", "ExecuTorch"
COLUMNS = "low", "kernels", "high", "FLOPs again", *NAMES

INTRODUCTION = """\
# What models need besides arguments and results

This page shows how much memory a plan saves for twelve models, and how much six other
compilers need for the same networks.

![Bytes of each compiler relative to ours, model by model](pictures/peak.svg)

All figures are bytes. `low` and `high` are the arenas of `plan-pipeline` with that
effort, and `kernels` is what the scratch memory of kernels adds to `low` on a machine
with oneDNN on two threads of a processor with AVX-512 and AMX. `FLOPs again` is the
share of the model's FLOPs that `high` computes a second time. The other compilers
target the CPU, and each figure is from the settings that need the fewest bytes. XLA and
IREE read the same StableHLO text, so only the compilers differ. The rest read the same
networks written in PyTorch, channels first. Those are other programs: their loops are
unrolled, and their training steps keep other values. `-` means that the compiler cannot
compile the model or that nobody measured it. The smallest figure is bold.

"""

NOTES = """
No figure but `kernels` counts arguments, parameters, results, or what kernels allocate
for themselves. `plan-run` prints `kernels` for your machine. For each compiler, the
figures are:

* XLA: the temporary buffer that it reports, with the default or the memory-optimized
  scheduler.
* IREE: its transient allocations, by default or with `min-peak-memory`. A program with
  loops may have several; the figure is their sum.
* TVM: the storages of Relax's `StaticPlanBlockMemory`, with or without
  `DataflowUseInplaceCalls`. Its importer leaves out the updates of training steps.
* ONNX Runtime: the block that its memory pattern planner requests according to its log,
  at the highest optimization level. ONNX has no gradients. An LSTM is one kernel.
* Inductor: the most bytes that its code holds at once, with or without
  `memory_planning` (and one pool) or `freezing`. Training was also measured with
  forward and backward apart, and with activation budgets of 1, 0.5 and 0. In inference
  an LSTM is one kernel. Where results share a pool with temporaries, only the rest of
  the pool counts.
* ExecuTorch: the buffers of its memory planner, with portable operators, and with or
  without constant folding.

`benchmarks/peak.py FILES --high --write docs/peak.md` writes this page. It takes the
figures of the other compilers and the settings of each from `benchmarks/peers.csv`;
`--peers` measures them again. The models are those of `tests/models` and larger ones of
the same kinds, as JAX exports them. [What training steps take](footprint.md) has
six more, with the memory that the processes take.

{versions}.
"""


class Ours(NamedTuple):
    """The memory of a model in tensorplan, in bytes."""

    arena: int
    lower_bound: int
    unshared: int
    recomputed: float  # share of the model's FLOPs


def ours(file: Path, **options: Any) -> Ours:
    import tensorplan

    planned = tensorplan.plan(tensorplan.from_stablehlo(file), **options)
    report = tensorplan.report(planned)
    pools = report["pools"]
    return Ours(
        sum(pool["bytes"] for pool in pools),
        sum(pool["lower_bound_bytes"] for pool in pools),
        sum(pool["unshared_bytes"] for pool in pools),
        report["recomputed_flops"] / max(report["flops"], 1),
    )


class Line(NamedTuple):
    """A row of the table."""

    model: str
    low: Ours
    kernels: int
    """Bytes that scratch memory of this machine's kernels adds to `low.arena`."""
    high: Ours | None
    peers: list[int | None]
    """Bytes of other compilers, in the order of `PEERS`; None if not measured."""

    def cells(self) -> Iterator[str]:
        arenas = self.low.arena, self.high.arena if self.high else None
        smallest = min(n for n in (*arenas, *self.peers) if n is not None)
        cells = [_cell(number, smallest) for number in (*arenas, *self.peers)]
        again = f"{100 * self.high.recomputed:.1f} %" if self.high else "-"
        low, high, *peers = cells
        return iter([self.model, low, f"{self.kernels:,}", high, again, *peers])


def _cell(number: int | None, smallest: int) -> str:
    if number is None:
        return "-"
    return f"**{number:,}**" if number == smallest else f"{number:,}"


def line(file: Path, rows: Sequence[Row], high: bool) -> Line:
    low = ours(file)
    return Line(
        file.stem,
        low,
        ours(file, workspaces="native").arena - low.arena,
        ours(file, effort="high") if high else None,
        [least(rows, peer, file) for peer in PEERS],
    )


def page(lines: Sequence[Line], rows: Sequence[Row]) -> str:
    table = [
        f"| model | {' | '.join(COLUMNS)} |",
        f"| --- |{' --: |' * len(COLUMNS)}",
        *(f"| {' | '.join(line.cells())} |" for line in lines),
    ]
    version_of = {row.peer: row.version for row in rows}
    versions = [
        f"{name} {version_of[peer]}"
        for peer, name in zip(PEERS, NAMES, strict=True)
        if peer in version_of
    ]
    listed = f"Versions (XLA of jaxlib, Inductor of PyTorch): {', '.join(versions)}"
    notes = NOTES.format(versions=fill(listed, 88))
    return INTRODUCTION + "\n".join(table) + "\n" + notes


def _picture(lines: Sequence[Line]) -> str:
    names = "ours (high)", *NAMES
    figures = [
        (line.model, line.low.arena, [line.high and line.high.arena, *line.peers])
        for line in lines
    ]
    return chart("ours (low)", names, figures)


def _xla_bytes(rows: Sequence[Row], file: Path) -> int:
    known = least(rows, "xla", file)
    return known or min(row.bytes for row in measured("xla", file))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--high", action="store_true", help="effort=high as well")
    parser.add_argument(
        "--peers", default="recorded", help=f"of {','.join(PEERS)}; default: recorded"
    )
    parser.add_argument("--record", action="store_true", help="measure the peers only")
    parser.add_argument(
        "--write", type=Path, metavar="FILE.md", help="all columns, and a picture"
    )
    options = parser.parse_args()
    peers: str = options.peers
    named = [] if peers == "recorded" else peers.split(",")
    if unknown := [name for name in named if name not in PEERS]:
        parser.error(f"no peers: {', '.join(unknown)} (known: {', '.join(PEERS)})")
    for peer in named:
        record(peer, options.files)
    if options.record:
        return
    rows = recorded()
    if options.write or options.high:
        lines: list[Line] = []
        for file in options.files:
            lines.append(line(file, rows, options.high))
            print(*lines[-1].cells(), flush=True)
        if options.write:
            options.write.write_text(page(lines, rows))
            picture = options.write.parent / "pictures" / "peak.svg"
            picture.write_text(_picture(lines))
        return
    columns = ("arena", "lower bound", "without reuse", "XLA temp")
    print(f"{'model':<20}" + "".join(f"{column:>16}" for column in columns))
    for file in options.files:
        figures = [*ours(file)[:3], _xla_bytes(rows, file)]
        print(f"{file.stem:<20}" + "".join(f"{figure:>16,}" for figure in figures))


if __name__ == "__main__":
    main()
