"""How the programs of a server share the memory of each device.

    parameters, state | prefill: arenas, arguments  | arenas, arguments | pages of a
    of the model      | decode: the same bytes      | of another model  | KV cache

The programs of a model run in turns, so the bytes that one of them needs during a call
overlap those of the others. They share parameters and state that have the same name and
type. Models run at the same time, or also in turns.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp

from ..analysis.allocations import is_arena
from ..checking.plan_check import PlannedPool, check_plan
from ..dialects.diagnostics import LocatedError
from .arguments import Argument, arguments, functions

ALIGNMENT = 64
"""The alignment in bytes of arguments and of the first page: a cache line."""


class Program(NamedTuple):
    """A planned program. All its functions count, whether they are called or not."""

    name: str
    module: ModuleOp


class Block(NamedTuple):
    """A range of a device's memory. Blocks with the same offset are used in turns."""

    what: str  # `state of prefill, decode`
    offset: int
    size: int


class Layout(NamedTuple):
    device: str
    blocks: Sequence[Block]
    size: int
    """The end of the last block, in bytes, where the first page starts."""

    def pages(self, memory: int, page: int) -> int:
        """The number of pages that fit into the rest of a memory; negative if the
        memory is too small without pages.
        """
        return (memory - self.size) // page


def layouts(models: Sequence[Sequence[Program]], in_turns: bool) -> list[Layout]:
    """A layout for each device, in the order of their names.

    models: the programs of each model.
    in_turns: whether only one model runs at a time. Otherwise models run concurrently,
        with one program each at a time.

    Checks the plans; raises `LocatedError` for a plan that is not sound, and for
    buffers that no plan places.
    """
    needs = [[_Need(program) for program in model] for model in models]
    devices = sorted({d for model in needs for need in model for d in need.devices})
    return [_layout(device, needs, in_turns) for device in devices]


class _Need:
    """The memory that a program needs."""

    def __init__(self, program: Program):
        self.name = program.name
        for op in program.module.walk():
            if isinstance(op, memref.AllocOp | memref.AllocaOp) and not (
                isinstance(op, memref.AllocOp) and is_arena(op)
            ):
                raise LocatedError("no plan places this buffer", op)
        pools = check_plan(program.module)
        self.arenas = [pool for pool in pools if pool.argument is None]
        self.arguments = [
            argument
            for function in functions(program.module)
            for argument in arguments(function)
        ]

    @property
    def devices(self) -> set[str]:
        return {each.device for each in (*self.arenas, *self.arguments)}

    def kept(self, device: str, role: str) -> Counter[Argument]:
        """The arguments kept between calls; `role` is `parameter` or `variable`."""
        return Counter(a for a in self._on(device) if _kept(a) == role)

    def call(self, device: str) -> int:
        """The bytes that are used during a call only."""
        parts: list[PlannedPool | Argument] = [
            *(pool for pool in self.arenas if pool.device == device),
            *(a for a in self._on(device) if not _kept(a)),
        ]
        return sum(_padded(part) for part in parts)

    def _on(self, device: str) -> Iterator[Argument]:
        return (a for a in self.arguments if a.device == device)


def _kept(argument: Argument) -> str:
    if argument.is_parameter:
        return "parameter"
    return "variable" if argument.role == "variable" else ""


def _padded(part: PlannedPool | Argument) -> int:
    """The size in bytes, rounded up, with padding for alignments above `ALIGNMENT`."""
    alignment = part.alignment if isinstance(part, PlannedPool) else ALIGNMENT
    further = max(alignment - ALIGNMENT, 0)
    return -(-part.size // ALIGNMENT) * ALIGNMENT + further


def _layout(device: str, models: Sequence[Sequence[_Need]], in_turns: bool) -> Layout:
    blocks: list[Block] = []
    end = 0
    for model in models:
        names = ", ".join(need.name for need in model)
        for role, title in (("parameter", "parameters"), ("variable", "state")):
            kept = Counter[Argument]()
            for need in model:
                kept |= need.kept(device, role)
            size = sum(map(_padded, kept.elements()))
            if size:
                blocks.append(Block(f"{title} of {names}", end, size))
            end += size
    groups = [[n for model in models for n in model]] if in_turns else models
    for group in groups:
        calls = [Block(f"a call of {n.name}", end, n.call(device)) for n in group]
        blocks += [call for call in calls if call.size]
        end += max(call.size for call in calls)
    return Layout(device, blocks, end)
