"""Fuzzes targets with one input per seed: `python3 dev.py fuzz tensor --count 1000`.

A target is a kind of random program (tensor, memref, models; foreign, onnxruntime and
litert, which other systems plan) or a reader, which gets mutated files. `all` means all
targets but litert, whose package is not a dependency. `nightly` runs all of these for
hours (see `nightly.py`). Each kind of failure is printed once, with the first seed that
reproduces it. The exit code is 1 if anything failed.
"""

import argparse
import logging
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]

import foreign_arrays
import foreign_programs
import nightly
from judging import (
    TARGETS,
    Verdict,
    generate,
    judge,
    judge_bytes,
    judge_module,
    program_and_plan,
)
from oracles import text_of
from readers import READERS, input_of
from shrinking import shrink
from xdsl.dialects.builtin import ModuleOp

EVERY = [*TARGETS, "foreign", "onnxruntime", *READERS]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("fuzz", description=__doc__)
    parser.add_argument("target", nargs="+", choices=["all", *EVERY, "litert"])
    parser.add_argument("--seed", type=int, default=0, help="the first (default: 0)")
    parser.add_argument("--count", type=int, default=1, help="of seeds (default: 1)")
    parser.add_argument(
        "--minutes", type=float, help="of CPU time: stops each target after these"
    )
    parser.add_argument(
        "--shrink", action="store_true", help="print the smallest program that fails so"
    )
    parser.add_argument(
        "--print", action="store_true", help="print programs and their plans instead"
    )
    parser.add_argument("--verbose", action="store_true", help="print the passes")
    return parser.parse_args()


def main() -> int:
    if sys.argv[1:2] == ["nightly"]:
        return nightly.main(sys.argv[2:])
    options = parse_arguments()
    warnings.simplefilter("ignore")
    if options.verbose:
        logging.basicConfig(level=logging.INFO, format="  %(message)s")
    targets = EVERY if "all" in options.target else options.target
    return max([_try(target, options) for target in targets])


def _try(target: str, options: argparse.Namespace) -> int:
    """Runs one target; returns the exit code."""
    if options.print:
        for seed in range(options.seed, options.seed + options.count):
            print(_text(target, seed))
        return 0
    start = time.process_time()
    outcomes: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    failures: set[str] = set()
    for seed in range(options.seed, options.seed + options.count):
        if options.minutes and time.process_time() - start > 60 * options.minutes:
            break
        verdict = _judge(target, seed)
        outcomes[verdict.outcome] += 1
        if verdict.outcome == "refused":
            refusals[verdict.message[:60]] += 1
        if verdict.failed and verdict.kind not in failures:
            failures.add(verdict.kind)
            print(f"{target}, seed {seed}: {verdict.message}", flush=True)
            if options.shrink and target in TARGETS:
                print(_smallest(target, seed, verdict.kind), flush=True)
    minutes = (time.process_time() - start) / 60
    counts = ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items()))
    print(f"{target}: {counts} in {minutes:.1f} min of CPU time", flush=True)
    for reason, count in refusals.most_common():
        print(f"{count:8} refused: {reason}")
    return int(bool(failures))


def _text(target: str, seed: int) -> str:
    if target == "foreign":
        return foreign_programs.text(seed)
    if target in foreign_arrays.RUNNERS:
        return foreign_arrays.text(seed)
    return program_and_plan(target, seed)


def _judge(target: str, seed: int) -> Verdict:
    if target in TARGETS:
        return judge(target, seed)
    if target == "foreign":
        return foreign_programs.judge(seed)
    if target in foreign_arrays.RUNNERS:
        return foreign_arrays.judge(target, seed)
    return judge_bytes(target, seed, input_of(target, seed))


def _smallest(target: str, seed: int, kind: str) -> str:
    def fails(module: ModuleOp) -> bool:
        return judge_module(target, module, seed).kind == kind

    return text_of(shrink(generate(target, seed), fails))


if __name__ == "__main__":
    sys.exit(main())
