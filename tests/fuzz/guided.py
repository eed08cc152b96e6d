"""Coverage-guided fuzzing of a reader by atheris: `python tests/fuzz/guided.py csv`.

Starts from the reader's corpus and keeps inputs that reach new code. Each kind of
failure is printed once; --failures names the folder for its input. --corpus names the
folder that keeps inputs for the next run. Needs atheris (Linux only). `python
tests/fuzz` runs the same readers without atheris and coverage.
"""

import argparse
import sys
import tempfile
import warnings
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]

from limits import limit_memory

atheris: Any = import_module("atheris")  # has few types

LONGEST = 20_000  # bytes of an input
_OF_OTHERS = ("numpy.lib._format_impl", "xdsl.parser", "xdsl.utils", "zipfile")


def _folder(name: str) -> Path:
    return Path(name).resolve()  # before a reader changes the folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reader")
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--failures", type=_folder, default=_folder("failures"))
    parser.add_argument("--corpus", type=_folder, help="to go on from, and to fill")
    parser.add_argument("--gibibytes", type=float, default=8, help="of address space")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    limit_memory(options.gibibytes)
    with atheris.instrument_imports(include=["tensorplan", *_OF_OTHERS]):
        from judging import judge_bytes
        from readers import corpus, mutated

        for data in corpus(options.reader):  # imports lazy modules
            judge_bytes(options.reader, 0, data)
    failures: Path = options.failures
    failures.mkdir(parents=True, exist_ok=True)
    kinds: set[str] = set()

    def once(data: bytes) -> None:
        verdict = judge_bytes(options.reader, 0, data)
        if verdict.failed and verdict.message not in kinds:
            kinds.add(verdict.message)
            name = f"{options.reader}-{sha256(data).hexdigest()[:8]}"
            (failures / name).write_bytes(data)
            print(f"{name}: {verdict.message}", flush=True)

    def mutate(data: bytes, longest: int, seed: int) -> bytes:
        random = Random(seed)
        if random.random() < 0.5:
            return mutated(options.reader, data, random)[:longest]
        return atheris.Mutate(data, longest)

    folder = options.corpus or Path(tempfile.mkdtemp(prefix="corpus-"))
    folder.mkdir(parents=True, exist_ok=True)
    for data in corpus(options.reader):
        (folder / sha256(data).hexdigest()).write_bytes(data)
    flags = [f"-max_total_time={60 * options.minutes:.0f}", f"-max_len={LONGEST}"]
    flags += [f"-rss_limit_mb={1024 * options.gibibytes:.0f}"]
    atheris.Setup(
        [sys.argv[0], *flags, "-timeout=120", "-print_final_stats=1", str(folder)],
        once,
        custom_mutator=mutate,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
