"""`tensorplan.explain` and `plan-opt --explain`: why the peak is as high as it is.

An explanation lists the buffers that are live at each arena's peak, with reasons
(`peaks.py`), and changes that would lower it, with their effect. Each change is tried
on a copy of the program (`trials.py`). `explanation_text.py` prints the explanation for
people; `plan-view --explain` draws it.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ..checking.plan_check import check_plan
from ..passes import driver
from ..passes.plan.pipeline import PlanPipeline
from .explanation_text import lines
from .peaks import ArenaPeak, peaks
from .trials import (
    Alternative,
    Alternatives,
    EffectivePasses,
    MemoryNeeds,
    Trial,
    outcome,
    try_out,
)

LIMIT = 60.0
"""The CPU time in seconds after which no more alternatives are tried."""


@dataclass(frozen=True)
class Explanation:
    """Why the arenas of a program are as large as they are. Prints as text."""

    peaks: Sequence[ArenaPeak]
    outcome: MemoryNeeds  # of the current plan
    trials: Sequence[Trial]
    planned: ModuleOp  # by the current plan

    def __str__(self) -> str:
        return self.text()

    def text(self, *, color: bool = False) -> str:
        """Text for people; `color` adds terminal escapes."""
        return "\n".join(lines(self.peaks, self.outcome, self.trials, color))

    def json(self) -> str:
        """JSON for programs, with sizes in bytes and half-open ranges of steps.

        It also lists the passes of each trial, in the syntax of plan-opt's `-p`.
        """
        return json.dumps(_figures(self), indent=2)


def explain(
    ctx: Context,
    module: ModuleOp,
    pipeline: PlanPipeline | None = None,
    *,
    limit: float = LIMIT,
    track: Callable[[Sequence[Alternative]], Iterable[Alternative]] = iter,
) -> Explanation:
    """Plans a copy of the module by `pipeline`, then tries alternatives. A module that
    is already planned is explained without alternatives.

    After `limit` seconds of CPU time no more alternatives are tried. Unless that
    happens, the explanation is deterministic. `track` iterates over the alternatives,
    and can show progress.

    Raises `LocatedError` for IR that can't be planned.
    """
    start = module.clone()
    if check_plan(start):
        return Explanation(peaks(start), outcome(start), [], start)
    alternatives = Alternatives(pipeline or PlanPipeline())
    first, rest = alternatives.split()
    began = process_time()
    driver.run(ctx, start, first)
    planned = start.clone()
    changes = EffectivePasses()
    driver.run(ctx, planned, rest, before=changes.before, after=changes.after)
    now = outcome(planned)
    trials: list[Trial] = []
    for alternative in track(alternatives.of(start, now.arenas, changes.classes)):
        in_time = process_time() - began < limit
        tried = try_out(ctx, start, alternative) if in_time else None
        saved = now.total - tried.total if isinstance(tried, MemoryNeeds) else 0
        trials.append(Trial(alternative, tried, saved))
    return Explanation(peaks(planned), now, trials, planned)


# As JSON


def _figures(explanation: Explanation) -> dict[str, Any]:
    now = explanation.outcome
    return {
        "arena_bytes": now.arenas,
        "caller_bytes": now.callers,
        "flops": now.flops,
        "peaks": [
            {
                "function": peak.function,
                "device": peak.device,
                "bytes": peak.size,
                "live_bytes": peak.live,
                "lower_bound_bytes": peak.lower_bound,
                **peak.site._asdict(),
                "steps": peak.steps,
                "largest": {
                    **peak.largest._asdict(),
                    "bytes": peak.needed,
                    "claim": peak.claim,
                },
                "buffers": [
                    {
                        "id": buffer.name,
                        "size": buffer.size,
                        "lower": buffer.lower,
                        "upper": buffer.upper,
                        "maker": buffer.maker._asdict(),
                        "next": buffer.next and buffer.next._asdict(),
                        "in_place_of": buffer.in_place_of,
                        "not_in_place": buffer.not_in_place_reason,
                    }
                    for buffer in peak.buffers
                ],
            }
            for peak in explanation.peaks
        ],
        "trials": [_trial(trial) for trial in explanation.trials],
    }


def _trial(trial: Trial) -> dict[str, Any]:
    alternative, result = trial.alternative, trial.outcome
    figures: dict[str, Any] = {
        "kind": alternative.kind,
        "change": alternative.change,
        "without": alternative.is_without,
        "passes": alternative.option,
        "donated": [donation._asdict() for donation in alternative.donated],
    }
    if not isinstance(result, MemoryNeeds):
        return {**figures, "error": result or "not tried for lack of time"}
    return {
        **figures,
        "saved_bytes": trial.saved,
        "arena_bytes": result.arenas,
        "caller_bytes": result.callers,
        "flops": result.flops,
        "seconds": round(result.seconds, 3),
    }
