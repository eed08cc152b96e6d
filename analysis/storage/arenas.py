"""How many bytes plan-memory will need for a block, without a program on memrefs.

What lives when is the same in both (lifetimes.py), and so is who decides where it goes
(planning/arena.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...planning.arena import arranged, placeable, solve_arena
from ...planning.problem import Buffer, Problem
from .buffers import Storage
from .lifetimes import Lives, Workspace, lifetimes


def arenas(
    storage: Storage,
    *,
    alignment: int,
    reuse_outputs: bool,
    workspace: Workspace | None = None,
) -> Mapping[str | None, int]:
    """The bytes of each device's arena, for static sizes and no streams.

    workspace: what kernels take while they run, if that is to lie there, too.
    """
    return {
        device: _arena(lives, reuse_outputs)
        for device, lives in lifetimes(storage, alignment, workspace).items()
    }


def at_least(
    storage: Storage, *, alignment: int, reuse_outputs: bool, workspace: Workspace
) -> int:
    """Bytes that the arenas of all devices together have in any case: what lives at
    once and does not fit into outputs.

    workspace: what kernels take at least.
    """
    return sum(
        _live(lives.own) - reuse_outputs * sum(b.size for b in lives.outputs)
        for lives in lifetimes(storage, alignment, workspace).values()
    )


def _live(buffers: Sequence[Buffer]) -> int:
    """The most bytes of buffers that live at once, wherever they may lie."""
    return Problem([replace(b, pool="", alignment=1) for b in buffers]).lower_bound


def _arena(lives: Lives, reuse_outputs: bool) -> int:
    _, plan = arranged(
        lives.own,
        lives.outputs if reuse_outputs else (),
        lambda indices: solve_arena(placeable([lives.own[i] for i in indices])),
        lives.hand_overs,
    )
    return plan.peak
