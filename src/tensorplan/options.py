"""The options of `plan`, `explain` and `compile`, for editors and type checkers."""

from typing import TypedDict


class PlanOptions(TypedDict, total=False):
    """Those of the pass `plan-pipeline`, which says what they mean."""

    strategy: str
    alignment: int
    device: str
    groups: tuple[str, ...]
    budget: int | str | None
    effort: str
    streams: int
    lend: bool
    bounds: str
    hints: str
    dynamic: str
    offload: str
    time_limit: float | None
    workspaces: str
