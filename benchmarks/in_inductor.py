"""Peak memory of Inductor's graphs in its own orders and in ours, as it estimates them.

    python -W ignore benchmarks/in_inductor.py              # some of small_networks.py
    python -W ignore benchmarks/in_inductor.py inception

A row for each graph (inference, forward pass, backward pass) has the peak in bytes of
the initial order, of the best order among the three that Inductor tries, and of our
order. Kernels are neither compiled nor run.
"""

import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from unittest.mock import patch

from peers.inductor import without_kernels
from small_networks import models

from tensorplan.integrations import inductor

torch: Any = import_module("torch")
config: Any = import_module("torch._inductor.config")
memory: Any = import_module("torch._inductor.memory")
leaves: Any = import_module("torch.utils._pytree").tree_leaves

NAMES = "unet", "gpt2_block", "gpt2", "bert_block", "inception", "densenet_block"

Peaks = Mapping[str, int]
"""The peak in bytes of each method that orders a graph."""


@contextmanager
def recorded() -> Generator[list[dict[str, int]]]:
    """Collects the peaks of each graph that Inductor compiles inside the context."""
    found: list[dict[str, int]] = []

    @dataclass
    class Result(memory.PeakMemoryResult):
        def __post_init__(self) -> None:
            if self.method == "baseline":
                found.append({})
            found[-1][self.method] = self.peak_memory

    with patch.object(memory, "PeakMemoryResult", Result):
        yield found


def peaks(module: Any, inputs: Any, *, train: bool) -> Sequence[Peaks]:
    torch._dynamo.reset()
    fresh = config.patch(force_disable_caches=True)
    with fresh, without_kernels(), inductor.scheduled(), recorded() as found:
        compiled = torch.compile(module.train(train))
        with torch.set_grad_enabled(train):
            result, *_ = leaves(compiled(*inputs))
        if train:
            result.sum().backward()
    return found


def main() -> None:
    print(f"{'graph':28}{'given':>12}{'Inductor':>12}{'tensorplan':>12}")
    for name in sys.argv[1:] or NAMES:
        for train in (False, True):
            torch.manual_seed(0)
            module, inputs = models()[name]()
            titles = ("forward", "backward") if train else ("inference",)
            graphs = peaks(module, inputs, train=train)
            for title, by_method in zip(titles, graphs, strict=True):
                theirs = [n for method, n in by_method.items() if method != "order"]
                row = by_method["baseline"], min(theirs), by_method["order"]
                cells = "".join(f"{bytes:12,}" for bytes in row)
                print(f"{name + ', ' + title:28}{cells}", flush=True)


if __name__ == "__main__":
    main()
