"""How many bytes plan-memory will need for a block, without a program on memrefs.

What lives when is the same in both (lifetimes.py), and so is who decides where it goes
(planning/arena.py).
"""

from collections.abc import Mapping

from ...planning.arena import arranged, placeable, solve_arena
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


def _arena(lives: Lives, reuse_outputs: bool) -> int:
    _, plan = arranged(
        lives.own,
        lives.outputs if reuse_outputs else (),
        lambda indices: solve_arena(placeable([lives.own[i] for i in indices])),
        lives.hand_overs,
    )
    return plan.peak
