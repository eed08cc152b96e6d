"""`torch.compile(model, backend="tensorplan")`.

AOTAutograd divides each graph of TorchDynamo into a forward and a backward pass, by the
cut with the fewest bytes to keep. Each pass is a program of its own: saved tensors are
results of the first, and arguments of the second. A graph whose sizes are symbolic is
compiled for each set of sizes that it is called with. A graph with an operation that
tensorplan lacks is run by PyTorch, and a warning lists the operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias
from warnings import warn

import numpy as np

from .. import compile as compiled
from ..dialects.diagnostics import LocatedError
from ..frontends.torch import import_graph
from ..frontends.torch.program import array_of

if TYPE_CHECKING:
    from ..support.arrays import Array

Graph: TypeAlias = Any
"""`torch.fx.GraphModule`."""
Options: TypeAlias = Mapping[str, Any]
Call: TypeAlias = Callable[..., Sequence[Any]]
"""Of tensors and numbers, returns the same."""


def backend(
    graph: Graph, example_inputs: Sequence[Any], *, options: Options | None = None
) -> Call:
    """The backend `tensorplan` of `torch.compile`. `options` are those of
    `tensorplan.compile`."""
    torch: Any = import_module("torch")
    functorch: Any = import_module("functorch.compile")

    def compiler(graph: Graph, example_inputs: Sequence[Any]) -> Call:
        return functorch.make_boxed_func(_call(graph, options or {}))

    aot = import_module("torch._dynamo.backends.common").aot_autograd(
        fw_compiler=compiler,
        decompositions=_decompositions(),
        partition_fn=functorch.min_cut_rematerialization_partition,
    )
    attention = torch.nn.attention
    # Of attention, only this form consists of core operations.
    with attention.sdpa_kernel(attention.SDPBackend.MATH):
        return aot(graph, example_inputs)


_POOL = (
    "(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, "
    "int[2] padding, int[2] dilation, bool ceil_mode) -> Tensor"
)
"""PyTorch's `max_pool2d_with_indices_backward` without the indices."""


@cache
def _decompositions() -> Mapping[Any, Callable[..., Any]]:
    """To core operations. A maximum pool's backward pass finds the largest elements
    again: where they are is no result of ours."""
    torch: Any = import_module("torch")
    aten: Any = torch.ops.aten

    def pool_backward(head: Any, x: Any, *window: Any) -> Any:
        _, indices = aten.max_pool2d_with_indices(x, *window)
        return aten.max_pool2d_with_indices_backward(head, x, *window, indices)

    def like_input(head: Any, x: Any, *window: Any) -> Any:
        return torch.empty_like(x)

    def without_indices(*given: Any) -> Any:
        return op(*given[:-1])

    name = "tensorplan::max_pool2d_backward"
    define: Any = torch.library.custom_op(name, mutates_args=(), schema=_POOL)
    op = define(pool_backward)
    op.register_fake(like_input)
    core: Any = import_module("torch._decomp").core_aten_decompositions()
    return {**core, aten.max_pool2d_with_indices_backward.default: without_indices}


def _call(graph: Graph, options: Options) -> Call:
    """What runs a graph: a program if there can be one."""
    given = [node for node in graph.graph.nodes if node.op == "placeholder"]
    if any(_is_symbolic(node.meta.get("val")) for node in given):
        return _BySizes(graph, options)
    try:
        return _Program(graph, options)
    except LocatedError as error:
        warn(f"PyTorch runs a graph that tensorplan cannot: {error}", stacklevel=2)
        return graph


def _is_symbolic(example: Any) -> bool:
    """Whether PyTorch knows no number for a size, or for an argument."""
    sizes = getattr(example, "shape", [example])
    return any(type(size).__name__.startswith("Sym") for size in sizes)


class _BySizes:
    """A graph with symbolic sizes: a program for each set of them."""

    def __init__(self, graph: Graph, options: Options):
        self._graph = graph
        self._options = options
        self._calls: dict[tuple[Any, ...], Call] = {}

    def __call__(self, *given: Any) -> Sequence[Any]:
        key = tuple(getattr(x, "shape", x) for x in given)
        if key not in self._calls:
            tracing: Any = import_module("torch.fx.experimental.proxy_tensor")
            trace = tracing.make_fx(self._graph, tracing_mode="fake")
            self._calls[key] = _call(trace(*given), self._options)
        return self._calls[key](*given)


class _Program:
    """A graph as a compiled program.

    What the graph returns just as it was given is no result of the program, and what it
    returns twice is one.
    """

    def __init__(self, graph: Graph, options: Options):
        nodes: list[Any] = list(graph.graph.nodes)
        output = nodes[-1]
        given = [node for node in nodes if node.op == "placeholder"]
        self._returned: Sequence[Any] = output.args[0]
        returned = dict.fromkeys(x for x in self._returned if _is_node(x))
        self._given = {node: n for n, node in enumerate(given) if node in returned}
        self._computed = [node for node in returned if node not in given]
        self._tensors = [n for n, node in enumerate(given) if _is_tensor(node)]
        self._run = compiled(import_graph(graph, self._computed), **options)

    def __call__(self, *given: Any) -> Sequence[Any]:
        results = map(_tensor, self._run(*(array_of(given[n]) for n in self._tensors)))
        values = dict[Any, Any](zip(self._computed, results, strict=True))
        values |= {node: given[n] for node, n in self._given.items()}
        return [values[x] if _is_node(x) else x for x in self._returned]


def _is_node(returned: Any) -> bool:
    """And not a number, or None."""
    return hasattr(returned, "meta")


def _is_tensor(node: Any) -> bool:
    return hasattr(node.meta.get("val"), "dtype")


def _tensor(array: Array) -> Any:
    torch: Any = import_module("torch")
    if array.dtype.name != "bfloat16":
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
