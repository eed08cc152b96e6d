"""Measures PyTorch Inductor for the CPU: the peak of the storages that its code holds.

The generated code runs once, on zeros, without its C++ kernels, which allocate nothing.
A tensor's storage counts from its allocation to its release, except for the bytes of
results in it. Memory that library kernels allocate internally is not counted.

A training step is measured as one function, which Inductor compiles to one program, and
as separate forward and backward programs, as `torch.compile` has them, with the values
that its partitioner saves in between. In the second case gradients live until the
optimizer reads them, so they count.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

from peers.networks import Network, Tensor, network_of
from peers.training import layers_apart, losses, training_graph

torch: Any = import_module("torch")
async_compile: Any = import_module("torch._inductor.async_compile")
compile_fx: Any = import_module("torch._inductor.compile_fx").compile_fx
config: Any = import_module("torch._inductor.config")
dispatch: Any = import_module("torch.utils._python_dispatch")
functorch_config: Any = import_module("torch._functorch.config")
reductions: Any = import_module("torch.multiprocessing.reductions")
tree_leaves: Any = import_module("torch.utils._pytree").tree_leaves

VERSION: str = torch.__version__

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "reuse": {},
    "pools": {"memory_planning": True},
    "one pool": {"memory_planning": True, "memory_pool": "combined"},
    "frozen": {"freezing": True},
}
"""Options of `torch._inductor.config`, by name of the settings."""

BUDGETS = 1.0, 0.5, 0.0
"""Values of `activation_memory_budget` in `torch._functorch.config`."""


def measure(file: Path) -> Iterator[tuple[str, int]]:
    """Yields the bytes that a network needs with each of the settings."""
    network = network_of(file)
    if network is None:
        return
    for label, settings in SETTINGS.items():
        yield label, whole_bytes(network, settings)
    for budget in BUDGETS if network.update else ():
        yield f"budget {budget}", halves_bytes(network, budget)


def whole_bytes(network: Network, settings: Mapping[str, Any]) -> int:
    """The bytes of one program: inference, or a training step with its update."""
    if network.update:
        graph, arguments = training_graph(network)
    else:
        arguments = [network.input()]
        module = network.make().eval()
        graph = torch.export.export(module, tuple(arguments)).module()
    with config.patch(settings), without_kernels(), torch.no_grad():
        compiled = compile_fx(graph, arguments)
        storages = Storages()
        with storages:
            results = compiled(*arguments)
    given = [*arguments, *graph.parameters(), *graph.buffers()]
    return storages.most_bytes(given, results)


def halves_bytes(network: Network, budget: float) -> int:
    """The bytes of separate forward and backward programs, without the update."""
    module, arguments = losses(network)
    graph = torch.export.export(module, arguments).module()
    with (
        functorch_config.patch(activation_memory_budget=budget),
        layers_apart(),
        without_kernels(),
    ):
        compiled = compile_fx(graph, arguments)
        compiled(*arguments).backward()  # compiles the backward half
        graph.zero_grad()
        storages = Storages()
        with storages:
            loss = compiled(*arguments)
            loss.backward()
    given = [*arguments, *graph.parameters(), *graph.buffers()]
    return storages.most_bytes(given, loss.detach())


@contextmanager
def without_kernels() -> Generator[None]:
    """Makes Inductor's code run without kernels, which are not compiled either."""

    def kernel(*_: Any, **__: Any) -> Callable[..., None]:
        return lambda *_: None

    def zeros(size: Sequence[int], stride: Sequence[int], dtype: Any) -> Tensor:
        return torch.empty_strided(size, stride, dtype=dtype).zero_()

    with (
        patch.object(async_compile.AsyncCompile, "cpp_pybinding", kernel),
        patch.object(torch._C._dynamo.guards, "_empty_strided_cpu", zeros),
    ):
        yield


class Storages(dispatch.TorchDispatchMode):
    """Records the storages that are live after each operation run in this mode."""

    def __init__(self) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self._moments: list[dict[Any, int]] = [{}]

    def __torch_dispatch__(
        self, function: Any, _: Any, arguments: Any = (), options: Any = None
    ) -> Any:
        results = function(*arguments, **(options or {}))
        live = {key: n for key, n in self._moments[-1].items() if not key.expired()}
        live.update(_storages(results))
        self._moments.append(live)
        return results

    def most_bytes(self, arguments: Any, results: Any) -> int:
        """The peak of live bytes, excluding `results` and storages of `arguments`."""
        outside = _storages(arguments)
        for key, result in _blocks(results):
            outside[key] = outside.get(key, 0) + result.nbytes
        return max(
            sum(max(n - outside.get(key, 0), 0) for key, n in live.items())
            for live in self._moments
        )


def _storages(values: Any) -> dict[Any, int]:
    return {key: tensor.untyped_storage().nbytes() for key, tensor in _blocks(values)}


def _blocks(values: Any) -> list[tuple[Any, Tensor]]:
    tensors = [v for v in tree_leaves(values) if isinstance(v, torch.Tensor)]
    return [(reductions.StorageWeakRef(t.untyped_storage()), t) for t in tensors]
