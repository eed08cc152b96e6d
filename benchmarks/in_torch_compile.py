"""`torch.compile` with the backend `tensorplan` beside its default, Inductor.

    python -W ignore benchmarks/in_torch_compile.py   # takes minutes

Inference and training (forward and backward pass) of small models. Shown are the
largest difference from eager PyTorch in units of 1e-6, by the largest magnitude of a
result or of all gradients; and the CPU time of a call in milliseconds, in one thread,
the median of rounds that alternate. The exit code is 1 if a value is off by more than
2e-4.
"""

import copy
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

# Before PyTorch is loaded: it reads these when it starts.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TENSORPLAN_THREADS"):
    os.environ[variable] = "1"

from tensorplan.integrations import torch as integration

torch: Any = import_module("torch")
sys.path.append(str(Path(__file__).parent.parent / "tests/support"))
models: Any = import_module("torch_models")
TRAINED = ("resnet18", "unet", "gpt2_block", "gpt2")
TOLERANCE = 2e-4
ROUNDS = 9


def step(module: Any, inputs: Any, train: bool) -> Callable[[], list[Any]]:
    """A call that returns the result, or the gradients."""
    parameters = list(module.parameters())

    def infer() -> list[Any]:
        with torch.no_grad():
            return [first(module(*inputs))]

    def gradients() -> list[Any]:
        y = first(module(*inputs))
        weights = torch.linspace(-1, 1, y.numel()).reshape(y.shape)
        return list(torch.autograd.grad((y * weights).sum(), parameters))

    return gradients if train else infer


def first(result: Any) -> Any:
    return torch.utils._pytree.tree_leaves(result)[0]


def timed(call: Callable[[], object]) -> float:
    start = process_time()
    call()
    return process_time() - start


def compare(name: str, train: bool) -> bool:
    """Prints a row; returns whether the values differ."""
    torch._dynamo.reset()
    module, inputs = models.make(name, train=train)
    calls: list[Callable[[], list[Any]]] = [step(module, inputs, train)]
    for backend in (integration.backend, "inductor"):
        compiled = torch.compile(copy.deepcopy(module), backend=backend)
        calls.append(step(compiled, inputs, train))
    eager, ours, _ = [call() for call in calls]
    scale = max(float(x.abs().max()) for x in eager)
    pairs = zip(ours, eager, strict=True)
    off = max(float((a - b).abs().max()) for a, b in pairs) / scale
    for call in calls:
        call()
    times = [[timed(call) for call in calls] for _ in range(ROUNDS)]
    cells = [f"{median(column) * 1e3:>12.2f}" for column in zip(*times, strict=True)]
    title = f"{name}, training" if train else name
    print(f"{title:22}{off * 1e6:>8.1f}", *cells, flush=True)
    return off > TOLERANCE


def main() -> int:
    torch.set_num_threads(1)
    columns = ("eager", "tensorplan", "inductor")
    print(f"{'model':22}{'off':>8}", *(f"{column:>12}" for column in columns))
    programs = [(name, False) for name in models.MODELS if name != "lstm"]
    programs += [(name, True) for name in TRAINED]
    return max([compare(name, train) for name, train in programs])


if __name__ == "__main__":
    sys.exit(main())
