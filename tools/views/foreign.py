"""Views of plans of other compilers that `plan-audit` reads; none is unsound."""

from collections.abc import Sequence
from pathlib import Path

from ...checking.foreign import audit
from ...frontends.plans.reading import read
from ...planning import Buffer
from ...reporting.foreign import LiveValue, lives
from ...support.foreign_plan import ForeignPlan, ForeignPlanError, Region
from ..common import FileError, Source
from .model import HeldBuffer, PlanView, PoolView, ShownBuffer


def view(source: Source) -> PlanView:
    """A view of the plan in a file: memories that values share are pools, the others
    are memory of the caller.

    Raises `FileError` for a file without a plan, and for an unsound plan.
    """
    try:
        plan = read(Path(source.name))
    except ForeignPlanError as error:
        raise FileError(source, error.reason) from None
    for finding in audit(plan).findings:
        if finding.severity == "unsound":
            raise FileError(source, f"the plan is unsound: {finding.message}")
    return PlanView(plan.name, _pools(plan))


def _pools(plan: ForeignPlan) -> Sequence[PoolView]:
    shown: dict[str, list[ShownBuffer]] = {name: [] for name in plan.memories}
    for region, values in _by_region(lives(plan)).items():
        shown[region.memory] += _buffers(values)
    held: list[HeldBuffer] = []
    pools: list[PoolView] = []
    order = sorted(plan.memories.items(), key=lambda item: item[1].kind != "temporary")
    for name, memory in order:
        if memory.kind == "temporary" or len(shown[name]) > 1:
            kind = "" if memory.kind == "temporary" else f"{memory.kind} "
            pools.append(PoolView(f"{kind}{name}", memory.size, shown[name]))
        else:
            types = [buffer.type for buffer in shown[name][:1]]
            held.append(HeldBuffer(name, memory.size, "".join(types), memory.kind))
    return [
        PoolView(pool.name, pool.size, pool.buffers, held=held if number == 0 else ())
        for number, pool in enumerate(pools)
    ]


def _by_region(values: Sequence[LiveValue]) -> dict[Region, list[LiveValue]]:
    found: dict[Region, list[LiveValue]] = {}
    for value in sorted(values, key=lambda value: value.lower):
        found.setdefault(value.value.region, []).append(value)
    return found


def _buffers(values: Sequence[LiveValue]) -> Sequence[ShownBuffer]:
    """The values of one region as rectangles; overlapping live ranges are merged."""
    found: list[ShownBuffer] = []
    for value, lower, upper in values:
        if found and lower < found[-1].buffer.end:
            last = found[-1]
            upper = max(upper, last.buffer.end)
            wider = Buffer(last.buffer.id, last.buffer.size, last.buffer.start, upper)
            found[-1] = last._replace(buffer=wider)
            continue
        buffer = Buffer(value.name, value.region.size, lower, upper)
        at = value.region.offset
        found.append(
            ShownBuffer(buffer, at, value.type, "", value.origin, value.location)
        )
    return found
