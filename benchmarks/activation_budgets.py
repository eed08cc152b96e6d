"""Frontiers of training steps beside those of Inductor's `activation_memory_budget`.

    python -W ignore benchmarks/activation_budgets.py         # takes minutes
    python -W ignore benchmarks/activation_budgets.py mlp --points 8

Each step is a PyTorch module that returns a loss: forward and backward pass, in f32 and
one thread. Inductor compiles it with budgets from 1, which keeps what its partitioner
wants to keep, to 0, which keeps the inputs and recomputes everything. tensorplan takes
the same module by `from_torch(..., gradients=True)`, and the points of its frontier.

For each point:

 * the most bytes at a time during a call besides the module and its inputs: loss,
   gradients, saved activations and temporaries. Of Inductor, what PyTorch's allocator
   gave during the call and was not given back, as the profiler records it; of
   tensorplan, the results, the planned arena, and the scratch memory of its kernels.
   Nobody sees what oneDNN and MKL allocate by themselves.
 * the CPU time of a call in milliseconds, the least of rounds that alternate between
   all points of both; of tensorplan also the estimate.

After each point: the fewest bytes of the other's points that are as fast, and how many
times these the point takes. No point of tensorplan's is above Inductor's where this is
at most 1. The exit code is 1 if gradients differ by more than 2e-4 of the largest.
"""

import argparse
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import accumulate
from time import process_time
from typing import Any, NamedTuple

# Before PyTorch and NumPy are loaded, which read these when they start.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TENSORPLAN_THREADS"):
    os.environ[variable] = "1"

import tensorplan
from tensorplan.dialects.tgraph.signature import signature

torch: Any = import_module("torch")
config: Any = import_module("torch._functorch.config")
nn = torch.nn

BUDGETS = (1.0, 0.75, 0.5, 0.25, 0.0)
TOLERANCE = 2e-4


class Loss(nn.Module):
    """The mean square of what a network computes."""

    def __init__(self, network: Any) -> None:
        nn.Module.__init__(self)
        self.network = network

    def forward(self, x: Any) -> Any:
        return self.network(x).square().mean()


class Residual(nn.Module):
    """`x + network(x)`."""

    def __init__(self, *layers: Any) -> None:
        nn.Module.__init__(self)
        self.network = nn.Sequential(*layers)

    def forward(self, x: Any) -> Any:
        return x + self.network(x)


class Attention(nn.Module):
    """Causal attention, written out."""

    def __init__(self, width: int, heads: int) -> None:
        nn.Module.__init__(self)
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        shape = batch, length, 3, self.heads, width // self.heads
        q, k, v = self.qkv(x).reshape(shape).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(shape[-1])
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(hidden, -1e9).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


def mlp() -> tuple[Any, Any]:
    """Eight layers with GELUs."""
    layers = [part for _ in range(8) for part in (nn.Linear(256, 256), nn.GELU())]
    return nn.Sequential(*layers), torch.randn(512, 256)


def transformer() -> tuple[Any, Any]:
    """Two blocks of GPT-2."""

    def block(n: int) -> Any:
        wide = nn.Linear(n, 4 * n), nn.GELU(), nn.Linear(4 * n, n)
        attention = Residual(nn.LayerNorm(n), Attention(n, 4))
        return nn.Sequential(attention, Residual(nn.LayerNorm(n), *wide))

    return nn.Sequential(block(128), block(128)), torch.randn(4, 128, 128)


def convolutions() -> tuple[Any, Any]:
    """Residual blocks of convolutions with group norms."""

    def block(n: int) -> Any:
        layers = [
            part
            for _ in range(2)
            for part in (
                nn.Conv2d(n, n, 3, padding=1),
                nn.GroupNorm(4, n),
                nn.ReLU(),
            )
        ]
        return Residual(*layers)

    stem, *blocks = nn.Conv2d(3, 32, 3, padding=1), block(32), block(32), block(32)
    return nn.Sequential(stem, *blocks), torch.randn(8, 3, 32, 32)


STEPS: Mapping[str, Callable[[], tuple[Any, Any]]] = {
    "mlp": mlp,
    "transformer": transformer,
    "convolutions": convolutions,
}


class Point(NamedTuple):
    """A compiled step."""

    title: str
    bytes: int
    call: Callable[[], Sequence[Any]]
    estimate: float | None = None  # milliseconds


class Measured(NamedTuple):
    point: Point
    time: float  # milliseconds


def of_inductor(step: Any, x: Any, budget: float) -> Point:
    torch._dynamo.reset()
    parameters = list(step.parameters())
    with config.patch(activation_memory_budget=budget):
        compiled = torch.compile(step)

        def call() -> Sequence[Any]:
            loss = compiled(x)
            return [loss.detach(), *torch.autograd.grad(loss, parameters)]

        call()
    return Point(f"budget {budget}", peak(call), call)


def peak(call: Callable[[], object]) -> int:
    """The most bytes that PyTorch's allocator has given during a call."""
    call()
    with torch.profiler.profile(profile_memory=True) as profile:
        call()
    events = profile.profiler.kineto_results.events()
    changes = [event.nbytes() for event in events if event.name() == "[memory]"]
    return max(accumulate(changes), default=0)


def of_tensorplan(step: Any, x: Any, points: int) -> Sequence[Point]:
    model = tensorplan.from_torch(step, (x,), gradients=True)
    given = sum(
        slot.dtype.itemsize * math.prod(slot.shape)
        for slot in signature(model.module).results
    )
    found: list[Point] = []
    for point in tensorplan.frontier(model, points=points, workspaces="native"):
        plan = tensorplan.plan(model, budget=point.budget, workspaces="native")
        run = tensorplan.compile(plan)
        arenas = sum(pool["bytes"] for pool in tensorplan.report(plan)["pools"])
        bytes = given + arenas + run.scratch_bytes
        call = partial(run, x.numpy())
        found.append(Point(point.change, bytes, call, point.time / 1e6))
    return found


def least(calls: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Milliseconds of each call, the least of all rounds."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, taken in zip(calls, times, strict=True):
            call()
            start = process_time()
            call()
            taken.append(1e3 * (process_time() - start))
    return [min(taken) for taken in times]


def compare(name: str, points: int, rounds: int) -> bool:
    """Prints the points of a step; returns whether values differ."""
    torch.manual_seed(0)
    network, x = STEPS[name]()
    step = Loss(network)
    inductor = [of_inductor(step, x, budget) for budget in BUDGETS]
    ours = of_tensorplan(step, x, points)
    times = least([point.call for point in (*inductor, *ours)], rounds)
    measured = [Measured(*pair) for pair in zip((*inductor, *ours), times, strict=True)]
    theirs, ours_measured = measured[: len(inductor)], measured[len(inductor) :]
    print(f"{name}\n{'bytes':>12}{'ms':>9}{'estimate':>9}{'other':>12}{'ratio':>6}")
    for point in ours_measured:
        print_row(point, theirs, point.point.title)
    for point in theirs:
        print_row(point, ours_measured, f"Inductor, {point.point.title}")
    return any(differ(inductor[0].call(), point.call()) for point in ours)


def print_row(measured: Measured, others: Sequence[Measured], title: str) -> None:
    """A point, and the fewest bytes of other points that are as fast."""
    point, time = measured
    estimate = "" if point.estimate is None else f"{point.estimate:.2f}"
    row = f"{point.bytes:>12,}{time:>9.2f}{estimate:>9}"
    as_fast = [other.point.bytes for other in others if other.time <= time]
    cells = f"{'none':>12}{'':>6}"
    if as_fast:
        cells = f"{min(as_fast):>12,}{point.bytes / min(as_fast):>6.2f}"
    print(f"{row}{cells}  {title}", flush=True)


def differ(expected: Sequence[Any], results: Sequence[Any]) -> bool:
    pairs = [(a, torch.as_tensor(b)) for a, b in zip(expected, results, strict=True)]
    most = max(float(a.abs().max()) for a, _ in pairs[1:])
    return any(
        float((a - b.reshape(a.shape)).abs().max()) > TOLERANCE * most
        for a, b in pairs[1:]
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("steps", nargs="*", metavar="STEP", default=list(STEPS))
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    if unknown := [name for name in options.steps if name not in STEPS]:
        parser.error(f"step {unknown[0]!r}, expected one of {', '.join(STEPS)}")
    if options.points < 2 or options.rounds < 1:
        parser.error("expected 2 points or more, and 1 round or more")
    torch.set_num_threads(1)
    return max(compare(n, options.points, options.rounds) for n in options.steps)


if __name__ == "__main__":
    sys.exit(main())
