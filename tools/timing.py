"""The table of `--timing`: the CPU time of each stage and of passes in pipelines."""

from collections.abc import Iterator, Sequence
from typing import IO

from xdsl.passes import ModulePass

from ..passes.driver import flatten
from .compiler import ToolPipeline


def print_timing(
    compiler: ToolPipeline,
    passes: Sequence[ModulePass],
    printing: float,
    stream: IO[str],
) -> None:
    """Writes the times of one program as a tree; `printing` is seconds of CPU time."""
    rows = [("read", compiler.reading, 0)]
    rows += _rows(passes, iter(compiler.steps))
    rows += [("verify", compiler.verifying, 0), ("print", printing, 0)]
    total = sum(seconds for _, seconds, depth in rows if depth == 0)
    print(f"{'CPU ms':>10}{'share':>8}", file=stream)
    for name, seconds, depth in (*rows, ("total", total, 0)):
        share = seconds / total if total else 0.0
        print(
            f"{seconds * 1e3:10.1f}{share:8.1%}  {'  ' * depth}{name}".rstrip(),
            file=stream,
        )


def _rows(
    passes: Sequence[ModulePass], steps: Iterator[tuple[ModulePass, float]]
) -> Iterator[tuple[str, float, int]]:
    for pass_ in passes:
        inner = [next(steps) for _ in flatten([pass_])]
        if [step for step, _ in inner] == [pass_]:
            yield pass_.name, inner[0][1], 0
            continue
        yield pass_.name, sum(seconds for _, seconds in inner), 0
        for step, seconds in inner:
            yield step.name, seconds, 1
