"""Compares `torch.compile`'s backend `tensorplan` with its default, Inductor.

    python -W ignore benchmarks/in_torch_compile.py         # takes minutes
    python -W ignore benchmarks/in_torch_compile.py unet

Runs inference and training (forward and backward pass) of small models on one thread.
The columns are the largest difference from eager PyTorch, in units of 1e-6, relative to
the largest magnitude of the results or gradients; the CPU time of a call in
milliseconds, the median over rounds that alternate between the backends; and the peak
bytes of a call besides the module and its inputs. These bytes are the sum of

 * the memory that PyTorch's allocator holds for the call, as the profiler records it:
   temporary and saved tensors, results and gradients
 * the memory that NumPy and Python hold for the call
 * the NumPy arrays that stay after earlier calls: scratch memory of kernels and copies
   of weights. The reservations of a program for inputs, results and arenas do not
   count, as it uses PyTorch's memory instead and never touches them.

The memory that oneDNN and MKL allocate for Inductor and eager PyTorch does not count.
tensorplan gives oneDNN its scratch memory, which counts. The exit code is 1 if a value
is off by more than 2e-4.
"""

import copy
import math
import os
import sys
import tracemalloc
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import accumulate
from statistics import median
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np

# Before PyTorch is loaded: it reads these when it starts.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TENSORPLAN_THREADS"):
    os.environ[variable] = "1"

from tensorplan.integrations import torch as integration
from tensorplan.runtime.pool import ALIGNMENT

torch: Any = import_module("torch")
models: Any = import_module("small_networks").models()
NAMES = (
    *("resnet18", "mobilenet", "unet", "inception", "densenet_block", "keywords"),
    *("gpt2_block", "gpt2", "bert_block", "mlp"),
)
TOLERANCE = 2e-4
ROUNDS, CALLS = 9, 10


def step(module: Any, inputs: Any, train: bool) -> Callable[[], list[Any]]:
    """A call that returns the result of the module, or its gradients."""
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
    """The mean CPU time of consecutive calls, in seconds."""
    call()
    start = process_time()
    for _ in range(CALLS):
        call()
    return (process_time() - start) / CALLS


def made(name: str, train: bool) -> tuple[Any, Any]:
    torch.manual_seed(0)
    module, inputs = models[name]()
    for part in module.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    return module.train(train), inputs


def compare(name: str, train: bool) -> bool:
    """Prints a row. Returns whether the values differ."""
    torch._dynamo.reset()
    module, inputs = made(name, train)
    calls: list[Callable[[], list[Any]]] = []
    peaks: list[int] = []
    for backend in ("eager", integration.backend, "inductor"):
        own = copy.deepcopy(module)
        compiled = own if backend == "eager" else torch.compile(own, backend=backend)
        calls.append(step(compiled, inputs, train))
        with recorded() as programs:
            peaks.append(peak(calls[-1], programs))
    eager, ours, _ = [call() for call in calls]
    scale = max(float(x.abs().max()) for x in eager)
    pairs = zip(ours, eager, strict=True)
    off = max(float((a - b).abs().max()) for a, b in pairs) / scale
    times = [[timed(call) for call in calls] for _ in range(ROUNDS)]
    cells = [f"{median(column) * 1e3:>8.3f}" for column in zip(*times, strict=True)]
    cells += [f"{bytes:>11,}" for bytes in peaks]
    title = f"{name}, training" if train else name
    print(f"{title:24}{off * 1e6:>6.1f}", *cells, flush=True)
    return off > TOLERANCE


@contextmanager
def recorded() -> Generator[list[Any]]:
    """Yields the programs that the backend compiles in the context."""
    programs: list[Any] = []
    build: Callable[..., Any] = integration.Builder.__call__

    def recording(*given: Any) -> Any:
        programs.append(build(*given))
        return programs[-1]

    with patch.object(integration.Builder, "__call__", recording):
        yield programs


def peak(call: Callable[[], object], programs: Sequence[Any]) -> int:
    """The peak bytes of a call after the first ones."""
    tracemalloc.start()
    for _ in range(3):
        call()
    held = _arrays() - sum(map(_reserved, programs)) - _unused(programs)
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    with torch.profiler.profile(profile_memory=True) as profile:
        call()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    events = profile.profiler.kineto_results.events()
    changes = [event.nbytes() for event in events if event.name() == "[memory]"]
    return held + most - before + max(accumulate(changes), default=0)


def _reserved(program: Any) -> int:
    """The bytes reserved for inputs, and for results that are not inputs."""
    slots = (*program.inputs, *(x for x in program.results if x.input is None))
    return sum(ALIGNMENT + x.dtype.itemsize * math.prod(x.shape) for x in slots)


def _unused(programs: Sequence[Any]) -> int:
    """The bytes of pools in which no program runs."""
    pools = {pool for run in programs for pool in run.pools if run.arenas}
    used = {pool for run in programs for pool in run.pools if not run.arenas}
    return sum(ALIGNMENT + pool.bytes for pool in pools - used)


def _arrays() -> int:
    """The bytes of all NumPy arrays."""
    only = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    traces = tracemalloc.take_snapshot().filter_traces([only]).traces
    return sum(trace.size for trace in traces)


def main() -> int:
    torch.set_num_threads(1)
    columns = ("eager", "ours", "inductor")
    titles = [f"{x:>8}" for x in columns] + [f"{x:>11}" for x in columns]
    print(f"{'':30}", f"{'ms':>26}", f"{'bytes':>35}")
    print(f"{'model':24}{'off':>6}", *titles)
    names = sys.argv[1:] or NAMES
    programs = [(name, train) for train in (False, True) for name in names]
    return max([compare(name, train) for name, train in programs])


if __name__ == "__main__":
    sys.exit(main())
