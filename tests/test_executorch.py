"""Tests tensorplan's planner in ExecuTorch's memory planning pass: on specs in
ExecuTorch's format, and on a program of ExecuTorch if it is installed.
"""

from dataclasses import dataclass, field
from itertools import combinations
from types import SimpleNamespace as Object
from typing import Any

import pytest

from tensorplan.integrations.executorch import Planner, plan

GRAPH = Object(graph=Object(nodes=[]))


@dataclass(eq=False)
class Spec:
    """The attributes of a `TensorSpec` that the planner reads and writes."""

    size: int
    lifetime: list[int]
    mem_id: int | None = None
    storage_base: Any = None
    storage_base_offset: int = 0
    mem_offset: Any = None
    mem_obj_id: int | None = 7
    alignment: int = 16
    shape: tuple[int, ...] = ()
    device: Any = field(default_factory=lambda: Object(name="CPU"))

    @property
    def allocated_memory(self) -> int:
        return -(-self.size // self.alignment) * self.alignment

    def realign(self, alignment: int) -> int:
        self.alignment = alignment
        return self.allocated_memory


@dataclass
class Bank:
    name: str
    size: int
    mem_id: int
    alignment: int | None = None


class Map:
    def __init__(self, *banks: Bank):
        self.banks = banks

    def manages(self, mem_id: int) -> bool:
        return any(bank.mem_id == mem_id for bank in self.banks)

    def bank(self, mem_id: int) -> Bank:
        return next(bank for bank in self.banks if bank.mem_id == mem_id)

    def describe(self) -> str:
        return "banks"


class BankPlacementError(Exception):
    pass


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the two names that the planner imports from ExecuTorch."""
    there = Object(
        get_node_tensor_specs=lambda node: node.specs,
        BankPlacementError=BankPlacementError,
    )
    module = "tensorplan.integrations.executorch.import_module"
    monkeypatch.setattr(module, lambda name: there)


def check_apart(specs: list[Spec]) -> None:
    """Asserts that specs with overlapping lifetimes do not share bytes. Lifetimes
    include their last step."""
    for a, b in combinations(specs, 2):
        if a.mem_id == b.mem_id and a.lifetime[0] <= b.lifetime[1]:
            assert b.lifetime[0] > a.lifetime[1] or (
                a.mem_offset + a.allocated_memory <= b.mem_offset
                or b.mem_offset + b.allocated_memory <= a.mem_offset
            ), (a, b)


def test_lifetime_includes_its_last_step() -> None:
    specs = [Spec(100, [0, 1]), Spec(100, [1, 2]), Spec(100, [2, 3])]
    assert plan(16, specs, GRAPH) == [0, 224]
    check_apart(specs)
    assert specs[0].mem_offset == specs[2].mem_offset
    assert {spec.mem_obj_id for spec in specs} == {None}


def test_arenas_alignment_and_padding() -> None:
    specs = [Spec(100, [0, 1], 3), Spec(60, [0, 2], 3), Spec(10, [0, 2])]
    assert plan(64, specs, GRAPH, None, 64) == [0, 128, 0, 256]
    assert [spec.mem_id for spec in specs] == [3, 3, 1]
    assert all(spec.mem_offset % 64 == 0 for spec in specs)
    assert plan(16, [], GRAPH) == [0, 0]


def test_specs_lie_in_their_storage_base() -> None:
    other, base = Spec(64, [0, 5]), Spec(64, [0, 5], 2)
    inner = Spec(32, [1, 3], storage_base=base, storage_base_offset=32)
    innermost = Spec(16, [2, 3], storage_base=inner, storage_base_offset=16)
    assert plan(16, [innermost, other, inner, base], GRAPH) == [0, 64, 64]
    assert (inner.mem_id, inner.mem_offset) == (2, base.mem_offset + 32)
    assert (innermost.mem_id, innermost.mem_offset) == (2, base.mem_offset + 48)


@pytest.mark.parametrize(
    ("base", "message"),
    [
        (Spec(16, [0, 1]), "which has 16 bytes"),
        (Spec(64, [0, 1], mem_offset=None), "has no memory in this plan"),
    ],
)
def test_invalid_storage_bases_are_refused(base: Spec, message: str) -> None:
    specs = [Spec(32, [0, 1], storage_base=base)]
    with pytest.raises(ValueError, match=message):
        plan(16, [*specs, base] if base.size == 16 else specs, GRAPH)


def branch(*specs: Spec) -> Any:
    """A branch, which is planned separately."""
    sizes = plan(16, specs, GRAPH)
    nodes = [Object(specs=list(specs), all_input_nodes=[])]
    return Object(graph=Object(nodes=nodes), meta={"non_const_buffer_sizes": sizes})


def test_results_of_branches_are_live_after_them() -> None:
    """The bytes of a branch's results stay reserved until their last use. ExecuTorch's
    own algorithms place the results of two conditions in the same bytes."""
    inside = [Spec(64, [0, 1]), Spec(48, [0, 1]), Spec(64, [0, 1])]
    early, late = Spec(64, [0, 0]), Spec(64, [3, 4])
    names = [Object(op="get_attr", target=name) for name in ("yes", "no", "next")]
    x, y = Spec(4, [1, 3]), Spec(4, [2, 3])
    nodes = [
        Object(specs=[early], all_input_nodes=[]),
        Object(specs=[x], all_input_nodes=names[:2]),
        Object(specs=[y], all_input_nodes=names[2:]),
        Object(specs=[late], all_input_nodes=[]),
    ]
    yes, no, following = map(branch, inside)
    graph = Object(
        **{"yes": yes, "no": no, "next": following, "graph": Object(nodes=nodes)},
        input_mem_buffer_sizes=[0, 64],
    )
    specs = [early, x, y, late]
    assert plan(16, specs, graph) == [0, 224]
    assert inside[0].mem_offset == inside[1].mem_offset  # only one of them runs
    arenas = [Spec(64, [1, 3]), Spec(64, [2, 3])]
    for arena, spec in zip(arenas, (inside[0], inside[2]), strict=True):
        arena.mem_id, arena.mem_offset = 1, spec.mem_offset
    check_apart([*specs, *arenas])


def test_banks_are_filled_in_their_order() -> None:
    target = Map(Bank("sram", 192, 2), Bank("dram", 512, 1, 64))
    specs = [Spec(64, [0, 1]), Spec(128, [0, 1]), Spec(100, [0, 1]), Spec(80, [2, 3])]
    pin = Spec(16, [0, 1], 2)
    assert Planner(target)(16, [*specs, pin], GRAPH) == [0, 192, 144]
    assert [spec.mem_id for spec in specs] == [1, 2, 1, 2]
    check_apart([*specs, pin])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (Spec(300, [0, 1]), "no bank has room for 304 bytes"),
        (Spec(300, [0, 1], 1), "bank sram has 256 bytes of 304"),
        (Spec(4, [0, 1], device=Object(name="CUDA")), "specs of other devices"),
    ],
)
def test_banks_that_are_too_small(spec: Spec, message: str) -> None:
    with pytest.raises(BankPlacementError, match=message):
        Planner(Map(Bank("sram", 256, 1)))(16, [spec], GRAPH)


def test_values_in_executorch(monkeypatch: pytest.MonkeyPatch) -> None:
    """ExecuTorch computes the right values if the results of two conditions are live at
    the same time."""
    monkeypatch.undo()
    exir = pytest.importorskip("executorch.exir")
    runtime = pytest.importorskip("executorch.extension.pybindings.portable_lib")
    torch = pytest.importorskip("torch")
    passes = pytest.importorskip("executorch.exir.passes")

    class Branches(torch.nn.Module):
        def forward(self, x, p, q):
            def one(x):
                return (x * 2).sin() + x.cos()

            def other(x):
                return (x - 1).tanh() * x

            return torch.cond(p, one, other, (x,)) + torch.cond(q, one, other, (x,))

    inputs = torch.randn(64), torch.tensor(True), torch.tensor(False)
    program = exir.to_edge(torch.export.export(Branches(), inputs)).to_executorch(
        exir.ExecutorchBackendConfig(
            memory_planning_pass=passes.MemoryPlanningPass(plan)
        )
    )
    (result,) = runtime._load_for_executorch_from_buffer(program.buffer).forward(inputs)
    assert torch.allclose(result, Branches()(*inputs), atol=1e-5)
