"""Tests tensorplan's order of operations in Inductor.

The tests order nodes in Inductor's format and, if PyTorch is installed, programs that
Inductor compiles.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace as Object
from typing import Any

import pytest

from tensorplan.integrations import inductor


@dataclass(frozen=True)
class Buffer:
    name: str
    size: int

    @property
    def mpi_buffer(self) -> Any:
        return Object(size_alloc=self.size, size_free=self.size)

    def get_name(self) -> str:
        return self.name


@dataclass(eq=False)
class Node:
    """The attributes of a `BaseSchedulerNode` that the order reads."""

    out: Buffer
    reads: Sequence["Node"] = ()

    @property
    def mpi_node(self) -> Any:
        return Object(pred_buffers=[n.out for n in self.reads], pred_nodes=self.reads)

    def get_outputs(self) -> Sequence[Buffer]:
        return [self.out]


def two_branches() -> Sequence[Node]:
    wide = [Node(Buffer(name, 1000)) for name in ("a", "b")]
    sums = [Node(Buffer(f"sum of {node.out.name}", 8), [node]) for node in wide]
    return [*wide, *sums, Node(Buffer("result", 8), sums)]


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Replaces the modules of PyTorch that the order imports by fakes."""

    def reorder(nodes: Any, methods: Any = (list,)) -> Any:
        return [[node.out.name for node in method(nodes)] for method in methods]

    graph = Object(get_output_names=lambda: ["result"])
    memory = Object(reorder_for_peak_memory=reorder)
    virtualized = Object(V=Object(graph=graph))
    monkeypatch.setitem(sys.modules, "torch._inductor.virtualized", virtualized)
    monkeypatch.setitem(sys.modules, "torch._inductor.memory", memory)
    return memory


def test_each_branch_is_computed_before_the_next(fakes: Any) -> None:
    with inductor.scheduled():
        theirs, ours = fakes.reorder_for_peak_memory(two_branches())
    assert theirs == ["a", "b", "sum of a", "sum of b", "result"]
    first, its_sum, *_ = ours
    assert its_sum == f"sum of {first}"
    assert fakes.reorder_for_peak_memory(two_branches()) == [theirs]


@pytest.mark.filterwarnings("ignore")  # PyTorch's own
def test_a_program_that_inductor_compiles() -> None:
    torch = pytest.importorskip("torch")
    memory = pytest.importorskip("torch._inductor.memory")
    tried: list[str] = []
    given = memory.PeakMemoryResult

    def result(nodes: Any, peak: int, method: str) -> Any:
        tried.append(method)
        return given(nodes, peak, method)

    def step(x: Any) -> Any:
        return (x @ x).softmax(0) @ (x @ x.T).tanh()

    x = torch.eye(16) + 1
    with pytest.MonkeyPatch.context() as patch, inductor.scheduled():
        patch.setattr(memory, "PeakMemoryResult", result)
        with torch._inductor.config.patch(force_disable_caches=True):
            got = torch.compile(step)(x)
    torch.testing.assert_close(got, step(x))
    assert tried[-1] == "order"
