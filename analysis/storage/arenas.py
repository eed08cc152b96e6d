"""Predicts the arenas that plan-memory will make for a block on tensors.

Live ranges are the same as in the program on memrefs (lifetimes.py), and the same code
places the buffers (planning/arena.py).
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
    """The bytes of each device's arena, for static sizes and no streams. If the caller
    provides memory only while it is used (`tgraph.on_demand`), the bytes that are live
    at once, with those of outputs: stages come close to that bound.

    workspace: the bytes that kernels need while they run, if the arenas include them.
    """
    return {
        device: _arena(lives, reuse_outputs)
        for device, lives in lifetimes(storage, alignment, workspace).items()
    }


def at_least(
    storage: Storage, *, alignment: int, reuse_outputs: bool, workspace: Workspace
) -> int:
    """A lower bound of the sum of all arenas in bytes: the peak of live bytes, without
    those that fit into outputs.

    workspace: a lower bound of the bytes that kernels need.
    """
    return sum(
        _live(lives.own) - reuse_outputs * sum(b.size for b in lives.outputs)
        for lives in lifetimes(storage, alignment, workspace).values()
    )


def _live(buffers: Sequence[Buffer]) -> int:
    """The peak of live bytes, without alignment."""
    return Problem([replace(b, pool="", alignment=1) for b in buffers]).lower_bound


def _arena(lives: Lives, reuse_outputs: bool) -> int:
    if lives.is_on_demand:
        return placeable(lives.counted(reuse_outputs=reuse_outputs)).lower_bound
    _, ((_, plan),) = arranged(
        lives.own,
        lives.outputs if reuse_outputs else (),
        lambda indices: solve_arena(placeable([lives.own[i] for i in indices])),
        lives.hand_overs,
    )
    return plan.peak
