"""Reads and updates `peers.csv`: the bytes that other compilers need for models.

The other modules in this folder measure them. A row has the peer, its version and
settings, the model, the first digits of the SHA-256 of its StableHLO text, and bytes.
"""

import csv
import sys
from collections.abc import Sequence
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

PEERS = "xla", "iree", "tvm", "onnxruntime", "inductor", "executorch"
TABLE = Path(__file__).parent.with_suffix(".csv")


class Row(NamedTuple):
    peer: str
    version: str
    settings: str
    model: str
    text: str
    bytes: int


def digits(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()[:12]


def recorded() -> list[Row]:
    with TABLE.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [Row(a, b, c, d, e, int(count)) for a, b, c, d, e, count in rows]


def least(rows: Sequence[Row], peer: str, file: Path) -> int | None:
    """The minimum bytes of `peer` over its settings; None if nothing is recorded."""
    text = digits(file)
    return min(
        (r.bytes for r in rows if (r.peer, r.text) == (peer, text)), default=None
    )


def record(peer: str, files: Sequence[Path]) -> None:
    """Measures an installed peer on `files` and replaces its rows in `peers.csv`.

    One environment can hold all peers: `jaxlib`, `torch`, `executorch`, `apache-tvm`,
    `onnxruntime`, `onnxscript`, and `iree-compile` of `iree-base-compiler` on the PATH.
    """
    for file in files:
        rows = measured(peer, file)
        for row in rows:
            print(*row, flush=True)
        key = peer, digits(file)
        others = [row for row in recorded() if (row.peer, row.text) != key]
        with TABLE.open("w", newline="") as table:
            writer = csv.writer(table, lineterminator="\n")
            writer.writerows([Row._fields, *sorted([*others, *rows])])


def measured(peer: str, file: Path) -> list[Row]:
    module: Any = import_module(f"peers.{peer}")
    rows: list[Row] = []
    try:
        for settings, count in module.measure(file):
            rows.append(
                Row(peer, module.VERSION, settings, file.stem, digits(file), count)
            )
    except Exception as error:  # compilers raise anything; report it
        reason = (str(error).splitlines() or [""])[0]
        print(f"{peer} can't take {file.stem}: {reason}", file=sys.stderr)
    return rows
