"""Compares frontiers of training steps with Inductor's `activation_memory_budget`.

    python -W ignore benchmarks/activation_budgets.py         # takes minutes
    python -W ignore benchmarks/activation_budgets.py gpt2 --points 8
    python -W ignore benchmarks/activation_budgets.py --estimated   # not measured

Each step is the forward and backward pass of a PyTorch module that returns a loss, in
f32 on one thread. Inductor compiles it with budgets from 1, which keeps the activations
that its partitioner chooses, to 0, which keeps only the inputs and recomputes the rest.
tensorplan compiles the same module (`from_torch(..., gradients=True)`) for each point
of its frontier.

The columns of a point are:

 * the peak bytes during a call besides the module and its inputs: loss, gradients,
   saved activations and temporaries. For Inductor, these are the bytes that PyTorch's
   allocator holds for the call, as the profiler records them; for tensorplan, the
   results, the planned arenas, and the scratch memory of kernels. Memory that oneDNN
   and MKL allocate internally is counted for neither.
 * the CPU time of a call in milliseconds: the shortest over rounds that alternate
   between all points of both compilers. `noise` compares even rounds with odd ones;
   `off` compares the time on tensorplan's curve with the measured time. Each round runs
   a point several times, as its first runs find caches that other points have filled.
 * the fewest bytes of the other compiler's points that are at least as fast, and the
   ratio of the point's bytes to these.

If all ratios of tensorplan's points are at most 1, Inductor beats none of them. The
exit code is 1 if gradients differ by more than 2e-4 of the largest one.
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

# PyTorch and NumPy read these variables when they are imported.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TENSORPLAN_THREADS"):
    os.environ[variable] = "1"

import tensorplan
from tensorplan.dialects.tgraph.signature import signature

torch: Any = import_module("torch")
config: Any = import_module("torch._functorch.config")
nn = torch.nn

BUDGETS = (1.0, 0.75, 0.5, 0.25, 0.0)
TOLERANCE = 2e-4
RUNS = 5  # in a round


class Loss(nn.Module):
    """The mean square of a network's results."""

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


class Permuted(nn.Module):
    """The dimensions in another order."""

    def __init__(self, *order: int) -> None:
        nn.Module.__init__(self)
        self.order = order

    def forward(self, x: Any) -> Any:
        return x.permute(self.order)


class Attention(nn.Module):
    """Causal attention in elementary operations."""

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


class Mixer(nn.Module):
    """A block of MLP-Mixer: perceptrons along the tokens and along the channels."""

    def __init__(self, tokens: int, channels: int) -> None:
        nn.Module.__init__(self)
        self.norm, self.along = nn.LayerNorm(channels), perceptron(tokens, 2 * tokens)
        wide = perceptron(channels, 4 * channels)
        self.across = Residual(nn.LayerNorm(channels), wide)

    def forward(self, x: Any) -> Any:
        mixed = self.along(self.norm(x).transpose(1, 2))
        return self.across(x + mixed.transpose(1, 2))


class Recurrent(nn.Module):
    """A GRU in elementary operations, and a classifier of its last state."""

    def __init__(self, inputs: int, width: int) -> None:
        nn.Module.__init__(self)
        self.inputs, self.state = (
            nn.Linear(inputs, 3 * width),
            nn.Linear(width, 3 * width),
        )
        self.width, self.head = width, nn.Linear(width, 8)

    def forward(self, x: Any) -> Any:
        state = x.new_zeros(x.shape[1], self.width)
        for given in self.inputs(x).unbind():
            ours, theirs = given.chunk(3, -1), self.state(state).chunk(3, -1)
            update, reset = (
                (a + b).sigmoid() for a, b in zip(ours[:2], theirs[:2], strict=True)
            )
            new = (ours[2] + reset * theirs[2]).tanh()
            state = (1 - update) * new + update * state
        return self.head(state)


class Denoiser(nn.Module):
    """A small U-Net of a diffusion model: attention at the lower resolution."""

    def __init__(self, n: int) -> None:
        nn.Module.__init__(self)
        self.stem, self.down = nn.Conv2d(3, n, 3, padding=1), normed(n, n)
        self.halve = nn.Conv2d(n, 2 * n, 3, stride=2, padding=1)
        self.middle, self.attention = normed(2 * n, 2 * n), Attention(2 * n, 1)
        self.up, self.last = normed(3 * n, n), nn.Conv2d(n, 3, 3, padding=1)

    def forward(self, x: Any) -> Any:
        fine = self.stem(x)
        fine = fine + self.down(fine)
        coarse = self.halve(fine)
        coarse = coarse + self.middle(coarse)
        tokens = coarse.flatten(2).transpose(1, 2)
        coarse = (tokens + self.attention(tokens)).transpose(1, 2).reshape(coarse.shape)
        again = coarse.repeat_interleave(2, 2).repeat_interleave(2, 3)
        return self.last(self.up(torch.cat([fine, again], 1)))


class Recommender(nn.Module):
    """DLRM: products of all pairs of embeddings and dense features."""

    def __init__(self, tables: int, rows: int, width: int) -> None:
        nn.Module.__init__(self)
        self.tables = nn.ParameterList(
            [torch.randn(rows, width) for _ in range(tables)]
        )
        self.dense = nn.Sequential(
            nn.Linear(13, 4 * width), nn.ReLU(), nn.Linear(4 * width, width), nn.ReLU()
        )
        self.pairs = torch.tril_indices(tables + 1, tables + 1, -1)
        self.top = perceptron(width + len(self.pairs[0]), 8 * width)
        self.ids = torch.randint(rows, (tables, 256))

    def forward(self, x: Any) -> Any:
        dense = self.dense(x)
        pairs = zip(self.tables, self.ids, strict=True)
        looked_up = [table[ids] for table, ids in pairs]
        features = torch.stack([dense, *looked_up], 1)
        products = features @ features.transpose(1, 2)
        rows, columns = self.pairs
        return self.top(torch.cat([dense, products[:, rows, columns]], 1))


def perceptron(n: int, hidden: int) -> Any:
    return nn.Sequential(nn.Linear(n, hidden), nn.GELU(), nn.Linear(hidden, n))


def normed(n: int, features: int) -> Any:
    """A convolution after a group norm and an activation."""
    return nn.Sequential(
        nn.GroupNorm(4, n), nn.SiLU(), nn.Conv2d(n, features, 3, padding=1)
    )


def mixer() -> tuple[Any, Any]:
    blocks = [Mixer(64, 128) for _ in range(3)]
    return nn.Sequential(nn.Linear(48, 128), *blocks), torch.randn(16, 64, 48)


def gru() -> tuple[Any, Any]:
    return Recurrent(32, 96), torch.randn(20, 32, 32)


def convnext() -> tuple[Any, Any]:
    """Blocks of ConvNeXt, with channels first except in norms and products."""

    def block(n: int) -> Any:
        along = nn.Conv2d(n, n, 7, padding=3, groups=n)
        wide = nn.LayerNorm(n), perceptron(n, 4 * n)
        return Residual(along, Permuted(0, 2, 3, 1), *wide, Permuted(0, 3, 1, 2))

    stem, blocks = (
        nn.Conv2d(3, 48, 4, stride=2, padding=1),
        [block(48) for _ in range(3)],
    )
    return nn.Sequential(stem, *blocks), torch.randn(8, 3, 32, 32)


def diffusion() -> tuple[Any, Any]:
    return Denoiser(32), torch.randn(4, 3, 32, 32)


def dlrm() -> tuple[Any, Any]:
    return Recommender(8, 2000, 32), torch.randn(256, 13)


def lenet() -> tuple[Any, Any]:
    def features(n: int, m: int) -> Sequence[Any]:
        return nn.Conv2d(n, m, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)

    dense = (
        nn.Linear(784, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )
    layers = *features(1, 6), *features(6, 16), nn.Flatten(), *dense
    return nn.Sequential(*layers), torch.randn(64, 1, 28, 28)


def gpt2() -> tuple[Any, Any]:
    """Two blocks of GPT-2."""

    def block(n: int) -> Any:
        attention = Residual(nn.LayerNorm(n), Attention(n, 4))
        wide = Residual(nn.LayerNorm(n), perceptron(n, 4 * n))
        return nn.Sequential(attention, wide)

    return nn.Sequential(block(128), block(128)), torch.randn(4, 128, 128)


def mobilenet() -> tuple[Any, Any]:
    """Inverted residuals of MobileNetV2, with group norms."""

    def block(n: int) -> Any:
        wide = 6 * n
        return Residual(
            *(nn.Conv2d(n, wide, 1), nn.GroupNorm(4, wide), nn.ReLU6()),
            nn.Conv2d(wide, wide, 3, padding=1, groups=wide),
            *(nn.GroupNorm(4, wide), nn.ReLU6(), nn.Conv2d(wide, n, 1)),
            nn.GroupNorm(4, n),
        )

    stem = nn.Conv2d(3, 24, 3, stride=2, padding=1)
    return nn.Sequential(stem, block(24), block(24)), torch.randn(4, 3, 64, 64)


STEPS: Mapping[str, Callable[[], tuple[Any, Any]]] = {
    step.__name__: step
    for step in (mixer, gru, convnext, diffusion, dlrm, lenet, gpt2, mobilenet)
}


class Point(NamedTuple):
    """A compiled step."""

    title: str
    bytes: int
    call: Callable[[], Sequence[Any]]
    promised: float | None = None  # milliseconds, on its curve


class Measured(NamedTuple):
    """The time of a point in milliseconds, and the relative difference of the times of
    even and odd rounds."""

    point: Point
    time: float
    noise: float

    @property
    def off(self) -> float | None:
        """The relative error of the curve's time; positive if it is too long."""
        promised = self.point.promised
        return None if promised is None else promised / self.time - 1


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
    """The most bytes that PyTorch's allocator holds for a call."""
    call()
    with torch.profiler.profile(profile_memory=True) as profile:
        call()
    events = profile.profiler.kineto_results.events()
    changes = [event.nbytes() for event in events if event.name() == "[memory]"]
    return max(accumulate(changes), default=0)


def of_tensorplan(step: Any, x: Any, points: int, measure: bool) -> Sequence[Point]:
    model = tensorplan.from_torch(step, (x,), gradients=True)
    given = sum(
        slot.dtype.itemsize * math.prod(slot.shape)
        for slot in signature(model.module).results
    )
    found: list[Point] = []
    curve = tensorplan.frontier(
        model, points=points, workspaces="native", measure=measure
    )
    for point in curve:
        assert point.planned is not None
        run = tensorplan.compile(point.planned)
        bytes = given + point.bytes + run.scratch_bytes
        call = partial(run, x.numpy())
        found.append(Point(point.change, bytes, call, point.time / 1e6))
    return found


def timed(calls: Sequence[Callable[[], object]], rounds: int) -> list[list[float]]:
    """For each call, the shortest time in each round, in milliseconds."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, taken in zip(calls, times, strict=True):
            taken.append(min(once(call) for _ in range(RUNS)))
    return times


def once(call: Callable[[], object]) -> float:
    start = process_time()
    call()
    return 1e3 * (process_time() - start)


def compare(name: str, points: int, rounds: int, measure: bool) -> bool:
    """Prints the points of a step. Returns whether gradients differ."""
    torch.manual_seed(0)
    network, x = STEPS[name]()
    step = Loss(network)
    inductor = [of_inductor(step, x, budget) for budget in BUDGETS]
    ours = of_tensorplan(step, x, points, measure)
    times = timed([point.call for point in (*inductor, *ours)], rounds)
    measured = [
        Measured(point, min(taken), min(taken[::2]) / min(taken[1::2]) - 1)
        for point, taken in zip((*inductor, *ours), times, strict=True)
    ]
    theirs, ours_measured = measured[: len(inductor)], measured[len(inductor) :]
    print(name)
    print(f"{'bytes':>12}{'ms':>9}{'noise':>7}{'off':>7}{'other':>12}{'ratio':>6}")
    for point in ours_measured:
        print_row(point, theirs, point.point.title)
    for point in theirs:
        print_row(point, ours_measured, f"Inductor, {point.point.title}")
    return any(differ(inductor[0].call(), point.call()) for point in ours)


def print_row(measured: Measured, others: Sequence[Measured], title: str) -> None:
    """Prints a point, and the fewest bytes of others that are at least as fast."""
    point, time, noise = measured
    off = "" if measured.off is None else f"{measured.off:+.1%}"
    row = f"{point.bytes:>12,}{time:>9.2f}{noise:>+7.1%}{off:>7}"
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
    parser.add_argument("--estimated", action="store_true")
    options = parser.parse_args()
    if unknown := [name for name in options.steps if name not in STEPS]:
        parser.error(f"step {unknown[0]!r}, expected one of {', '.join(STEPS)}")
    if options.points < 2 or options.rounds < 2:
        parser.error("expected 2 points or more, and 2 rounds or more")
    torch.set_num_threads(1)
    settings = options.points, options.rounds, not options.estimated
    return max(compare(name, *settings) for name in options.steps)


if __name__ == "__main__":
    sys.exit(main())
