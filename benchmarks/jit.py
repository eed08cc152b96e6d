"""`tensorplan.jit` compared with `jax.jit`: values, CPU time per call, bytes.

    python benchmarks/jit.py                 # ten models
    python benchmarks/jit.py gru unet_step   # other models of models.py

`off` is the largest difference between the values of the first call, relative to the
largest magnitude in the array, in units of 1e-6. All calls have the same inputs; each
receives the state that the previous call returned. A time, in microseconds, is the
median of rounds that alternate between both, in one thread. Bytes exclude arguments and
results. Ours are the arenas, with kernel workspaces; XLA's are its temporary buffer,
without kernel workspaces. The exit code is 1 if a difference exceeds 2e-4.
"""

import sys
from typing import Any

# isort: split
import everyday  # first: it sets variables that NumPy and JAX read on import

# isort: split
import numpy as np
from everyday import measured
from models import MODELS

import tensorplan

jax: Any = everyday.jax

NAMES = (
    *("gpt2", "bert", "lstm", "gpt2_decode"),
    *("lenet", "resnet18", "vit"),
    *("mlp_adam", "lenet_step", "gpt2_step"),
)
TOLERANCE = 2e-4


def main() -> int:
    print(f"{'model':16}{'off':>6}{'tensorplan.jit':>18}{'jax.jit':>18}", end="")
    print(f"{'bytes':>12}{'XLA':>12}")
    return max([compare(name) for name in sys.argv[1:] or NAMES])


def compare(name: str) -> bool:
    """Prints a row; returns whether the values differ."""
    model = MODELS[name]()
    donated = tuple(range(model.state))
    ours = tensorplan.jit(model.function, donate_argnums=donated)
    theirs = jax.jit(model.function, donate_argnums=donated)
    steps = [Steps(jitted, model.arguments, model.state) for jitted in (ours, theirs)]
    off = max(map(difference, steps[0].first, steps[1].first))
    times = measured(steps, 15)
    run = ours.compiled(*model.arguments)
    bytes_ = sum(pool.bytes for pool in run.pools) + run.scratch_bytes
    analysis = theirs.lower(*model.arguments).compile().memory_analysis()
    cells = [f"{time.median:,.0f} ± {time.noise:,.0f}" for time in times]
    print(f"{name:16}{off * 1e6:>6.1f}", *(f"{cell:>17}" for cell in cells), end="")
    print(f"{bytes_:>12,}{analysis.temp_size_in_bytes:>12,}", flush=True)
    return off > TOLERANCE


class Steps:
    """A function whose first `state` results are the first arguments of its next call.
    `first` holds the results of the first call."""

    def __init__(self, jitted: Any, arguments: Any, state: int):
        self._jitted = jitted
        self._state = [np.array(x) for x in arguments[:state]]
        self._inputs = arguments[state:]
        self.first = [np.array(x) for x in self()]

    def __call__(self) -> Any:
        results = self._jitted(*self._state, *self._inputs)
        results = jax.tree.leaves(jax.block_until_ready(results))
        self._state = results[: len(self._state)]
        return results


def difference(ours: Any, theirs: Any) -> float:
    return float(abs(ours - theirs).max() / max(abs(theirs).max(), 1e-30))


if __name__ == "__main__":
    sys.exit(main())
