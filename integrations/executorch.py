"""tensorplan's planner as an algorithm for ExecuTorch's `MemoryPlanningPass`.

    from executorch.exir.passes import MemoryPlanningPass
    from tensorplan.integrations.executorch import plan

    ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(plan))

Each `TensorSpec` is a buffer in the arena that its `mem_id` selects. A spec with a
`storage_base` is a part of that spec's memory. ExecuTorch plans the body of a branch or
loop before the enclosing program, in which the body's arena is a single buffer. This
buffer is live until the last use of the body's results, which the arena contains.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import zip_longest
from typing import Any, NamedTuple, TypeAlias

from ..planning import Buffer, Problem, solve

Spec: TypeAlias = Any
"""`executorch.exir.tensor.TensorSpec`."""
GraphModule: TypeAlias = Any
"""`torch.fx.GraphModule`."""


class _Tenant(NamedTuple):
    """Specs at fixed relative offsets, which are placed as one buffer."""

    specs: Sequence[Spec]
    size: int  # bytes
    start: int  # the first step in which it is live
    last: int  # the last step in which it is live
    alignment: int


_Arenas: TypeAlias = Mapping[int, list[_Tenant]]
"""The contents of each arena, by `mem_id`."""


@dataclass(frozen=True)
class Planner:
    """An algorithm for `MemoryPlanningPass`, which plans each arena by `strategy`.

    `target` is None or ExecuTorch's `TargetMemoryMap`. With a `target`, specs without a
    `mem_id` are assigned to banks, the largest specs first, each to the first bank with
    room for it. Raises ExecuTorch's `BankPlacementError` if a bank is too small, or if
    no bank has room for a spec.
    """

    target: Any = None
    strategy: str = "auto"

    def __call__(
        self,
        alignment: int,
        specs: Iterable[Spec],
        graph_module: GraphModule,
        graph_signature: Any = None,
        extra_padding: int = 0,
    ) -> list[int]:
        """Sets `mem_id` and `mem_offset` of each spec. Returns the sizes of the arenas
        in bytes, indexed by `mem_id`; `mem_id` 0 is the arena of constants."""
        given = list(specs)
        roots = [spec for spec in given if spec.storage_base is None]
        arenas: _Arenas = defaultdict(list)
        for mem_id, tenant in _submodules(graph_module, given, alignment):
            arenas[mem_id].append(tenant)
        self._assign(roots, arenas, alignment, extra_padding)
        sizes = [0] * (max(arenas, default=1) + 1)
        for mem_id, tenants in arenas.items():
            sizes[mem_id] = self._placed(tenants) + extra_padding
            self._check(mem_id, sizes[mem_id])
        for spec in given:
            if spec.storage_base is not None:
                spec.realign(alignment)
                _place_in_base(spec)
        return sizes

    def _assign(
        self, roots: Sequence[Spec], arenas: _Arenas, alignment: int, padding: int
    ) -> None:
        """Assigns each spec in `roots` to an arena."""
        banks = {bank.mem_id: bank for bank in self.target.banks} if self.target else {}
        if banks and any(spec.device.name != "CPU" for spec in roots):
            raise _error("banks are of the CPU, and specs of other devices")

        def move_in(spec: Spec, mem_id: int) -> None:
            bank = banks.get(mem_id)
            unit = (bank and bank.alignment) or alignment
            spec.mem_id, spec.mem_offset, spec.mem_obj_id = mem_id, 0, None
            start, last = spec.lifetime
            tenant = _Tenant([spec], spec.realign(unit), start, last, unit)
            arenas[mem_id].append(tenant)

        free: list[Spec] = []
        for spec in roots:
            if spec.mem_id is None and banks:
                free.append(spec)
            else:
                move_in(spec, spec.mem_id or 1)
        for spec in sorted(free, key=lambda spec: -spec.allocated_memory):
            for mem_id, bank in banks.items():
                move_in(spec, mem_id)
                if self._fits(arenas[mem_id], bank.size - padding):
                    break
                arenas[mem_id].pop()
            else:
                size, shape = spec.allocated_memory, list(spec.shape)
                raise _error(
                    f"no bank has room for {size} bytes of a tensor of shape {shape}: "
                    f"{self.target.describe()}"
                )

    def _fits(self, tenants: Sequence[_Tenant], room: int) -> bool:
        problem = _problem(tenants)
        if problem.lower_bound > room:
            return False
        strategies = ("greedy-by-size", self.strategy)  # the first is fast
        return any(solve(problem, name).peak <= room for name in strategies)

    def _placed(self, tenants: Sequence[_Tenant]) -> int:
        """Places all `tenants` of an arena. Returns the size of the arena in bytes."""
        plan = solve(_problem(tenants), self.strategy)
        for tenant, offset in zip(tenants, plan.offsets, strict=True):
            for spec in tenant.specs:
                spec.mem_offset += offset
        return plan.peak

    def _check(self, mem_id: int, size: int) -> None:
        if self.target and self.target.manages(mem_id):
            bank = self.target.bank(mem_id)
            if size > bank.size:
                raise _error(f"bank {bank.name} has {bank.size} bytes of {size}")


plan = Planner()
"""ExecuTorch's `memory_planning_algo`, with the strategy `auto`."""


def _error(message: str) -> Exception:
    module = import_module("executorch.exir.banked_memory_planning")
    return module.BankPlacementError(message)


def _problem(tenants: Sequence[_Tenant]) -> Problem:
    return Problem(
        [
            Buffer(str(n), t.size, t.start, t.last + 1, t.alignment)
            for n, t in enumerate(tenants)
        ]
    )


def _place_in_base(spec: Spec) -> None:
    base = spec.storage_base
    if base.storage_base is not None:
        _place_in_base(base)
    offset = spec.storage_base_offset
    if base.mem_offset is None:
        raise ValueError("a tensor's storage_base has no memory in this plan")
    if not 0 <= offset <= base.allocated_memory - spec.allocated_memory:
        raise ValueError(
            f"a tensor of {spec.allocated_memory} bytes at {offset} of its "
            f"storage_base, which has {base.allocated_memory} bytes"
        )
    spec.mem_id, spec.mem_offset = base.mem_id, base.mem_offset + offset
    spec.mem_obj_id = None


def _submodules(
    graph_module: GraphModule, around: Sequence[Spec], alignment: int
) -> Iterator[tuple[int, _Tenant]]:
    """Yields the arenas of the subgraphs that nodes call, which ExecuTorch has planned
    already, each with its `mem_id`. The branches of a node share memory, because only
    one of them runs."""
    if not getattr(graph_module, "input_mem_buffer_sizes", None):
        return
    others = set(map(id, around))
    for step, node in enumerate(graph_module.graph.nodes):
        modules = _called(graph_module, node)
        arenas = [module.meta["non_const_buffer_sizes"] for module in modules]
        last = max([step, *(spec.lifetime[1] for spec in _specs_of(node))])
        inside = {
            id(spec): spec for module in modules for spec in _planned_specs(module)
        }
        specs = [spec for key, spec in inside.items() if key not in others]
        for mem_id, sizes in enumerate(zip_longest(*arenas, fillvalue=0)):
            there = [spec for spec in specs if spec.mem_id == mem_id]
            if any(sizes):
                yield mem_id, _Tenant(there, max(sizes), step, last, alignment)


def _called(graph_module: GraphModule, node: Any) -> list[GraphModule]:
    """The planned branches or loop bodies that `node` calls."""
    names = [arg.target for arg in node.all_input_nodes if arg.op == "get_attr"]
    modules = [getattr(graph_module, name, None) for name in names]
    return [m for m in modules if "non_const_buffer_sizes" in getattr(m, "meta", ())]


def _planned_specs(graph_module: GraphModule) -> Iterator[Spec]:
    for node in graph_module.graph.nodes:
        yield from (spec for spec in _specs_of(node) if spec.mem_offset is not None)
        for module in _called(graph_module, node):
            yield from _planned_specs(module)


def _specs_of(node: Any) -> Sequence[Spec]:
    module = import_module("executorch.exir.memory_planning")
    return module.get_node_tensor_specs(node)
