"""`tensorplan.explain` and `plan-opt --explain`: the peak, in words.

What is live at each arena's peak and why (`passes/reporting/peaks.py`), and what would
help and by how much, tried on copies of the program (`passes/reporting/trials.py`).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tensorplan.passes import driver
from tensorplan.passes.plan_check import check_plan
from tensorplan.passes.plan_pipeline import PlanPipeline
from tensorplan.passes.reporting.peaks import LiveBuffer, Peak, Site, peaks
from tensorplan.passes.reporting.trials import (
    Option,
    Options,
    Outcome,
    outcome,
    try_out,
)
from tensorplan.tools.colours import bold
from tensorplan.tools.tables import aligned
from tensorplan.tools.views.model import readable

LIMIT = 60.0
"""Seconds of CPU time after which nothing more is tried."""

LISTED = 12
"""Buffers that the text lists for each arena, at most."""


@dataclass(frozen=True)
class Trial:
    """An option, and what came of it: an outcome, or why there is none."""

    option: Option
    outcome: Outcome | str | None  # None: the time was up


@dataclass(frozen=True)
class Explanation:
    """Why a program's arenas are as large as they are. Prints as text for people."""

    peaks: Sequence[Peak]
    outcome: Outcome  # of the plan as it is
    trials: Sequence[Trial]

    def __str__(self) -> str:
        return self.text()

    def text(self, *, colour: bool = False) -> str:
        """For people; `colour`: with a terminal's escapes."""
        return "\n".join(_text(self, colour))

    def json(self) -> str:
        """For programs: sizes in bytes, steps half-open; also the passes of each
        option, as plan-opt's `-p` takes them."""
        return json.dumps(_figures(self), indent=2)


def explain(
    ctx: Context,
    module: ModuleOp,
    pipeline: PlanPipeline | None = None,
    *,
    limit: float = LIMIT,
    track: Callable[[Sequence[Option]], Iterable[Option]] = iter,
) -> Explanation:
    """Plans a copy of the module by `pipeline`, then in other ways.

    After `limit` seconds of CPU time nothing more is tried; that apart, the same module
    gives the same explanation. `track` is what the options are gone through by, to show
    how much is done.

    Raises `LocatedError` for IR that can't be planned.
    """
    options = Options(pipeline or PlanPipeline())
    first, rest = options.split()
    start = module.clone()
    began = process_time()
    driver.run(ctx, start, first)
    planned = start.clone()
    driver.run(ctx, planned, rest)
    now = outcome(planned)
    is_planned = bool(check_plan(start))
    others = [] if is_planned else options.of(start, now.arenas)
    trials: list[Trial] = []
    for option in track(others):
        in_time = process_time() - began < limit
        trials.append(Trial(option, try_out(ctx, start, option) if in_time else None))
    return Explanation(peaks(planned), now, trials)


# As text


def _text(explanation: Explanation, colour: bool) -> Iterator[str]:
    if not explanation.peaks:
        yield "there is no arena: nothing has to be stored that is not the caller's"
    for number, peak in enumerate(explanation.peaks):
        if number:
            yield ""
        yield from _peak(peak, colour)
    now, trials = explanation.outcome, explanation.trials
    yield ""
    yield f"arguments, variables and results take {readable(now.callers)} more"
    tried = [t for t in trials if isinstance(t.outcome, Outcome)]
    helpful = [t for t in tried if not t.option.is_without and _gain(now, t) > 0]
    gains = sorted(_different(helpful), key=lambda t: -_gain(now, t))
    if gains:
        yield ""
        yield bold("what would help", colour)
        yield from _table(now, gains, "saves", 1)
    elif tried:
        yield ""
        yield bold("nothing that was tried would help", colour)
    worth = sorted(
        (t for t in tried if t.option.is_without and _gain(now, t) < 0),
        key=lambda t: _gain(now, t),
    )
    if worth:
        yield ""
        yield bold("what helps already", colour)
        yield from _table(now, worth, "saves", -1)
    vain = [t for t in tried if t not in helpful and t not in worth]
    if vain:
        yield ""
        yield "without effect on bytes: " + "; ".join(_change(t) for t in vain)
    for trial in trials:
        if isinstance(trial.outcome, str):
            yield f"not possible: {_change(trial)}: {trial.outcome}"
    if late := [t for t in trials if t.outcome is None]:
        yield "not tried, the time was up: " + "; ".join(_change(t) for t in late)


def _different(trials: Sequence[Trial]) -> Sequence[Trial]:
    """The first of those of one kind with the same outcome, but for the time."""
    first: dict[object, Trial] = {}
    for trial in trials:
        assert isinstance(trial.outcome, Outcome)
        first.setdefault((trial.option.kind, trial.outcome[:3]), trial)
    return list(first.values())


def _peak(peak: Peak, colour: bool) -> Iterator[str]:
    where = f" on {peak.device}" if peak.device else ""
    yield bold(f"@{peak.function}: {readable(peak.size)} in the arena{where}", colour)
    lost = peak.size - peak.lower_bound
    if lost:
        yield (
            f"{readable(lost)} of them lie between buffers: "
            f"{readable(peak.lower_bound)} are live at once"
        )
    yield f"most is live at step {peak.site.step} of {peak.steps}: {_site(peak.site)}"
    alone = f"{_site(peak.largest)} alone needs {readable(peak.needed)}"
    yield f"{alone}, in whatever order"
    yield ""
    rows = [("size", "buffer", "steps", "made by", "waits for")]
    for buffer in peak.buffers[:LISTED]:
        steps = f"[{buffer.lower}, {buffer.upper})"
        waits = _waits(buffer, peak.site.step)
        rows.append(
            (readable(buffer.size), buffer.name, steps, _site(buffer.maker), waits)
        )
    if rest := peak.buffers[LISTED:]:
        total = readable(sum(buffer.size for buffer in rest))
        rows.append((total, f"{len(rest)} others", "", "", ""))
    yield from aligned(rows, ">")
    apart = [b for b in peak.buffers[:LISTED] if b.apart or b.in_place_of]
    if apart:
        yield ""
    for buffer in apart:
        if buffer.in_place_of:
            yield f"{buffer.name} is in place: it overwrites {buffer.in_place_of}"
        else:
            yield f"{buffer.name} is not in place: {buffer.apart}"


def _waits(buffer: LiveBuffer, step: int) -> str:
    if buffer.next is None:
        return "another iteration"
    if buffer.next.step == step:
        return "in use"
    return f"step {buffer.next.step}: {_site(buffer.next)}"


def _site(site: Site) -> str:
    return f"{site.op} ({site.location})" if site.location else site.op


def _table(
    now: Outcome, trials: Sequence[Trial], head: str, sign: int
) -> Iterator[str]:
    rows = [(head, "arenas", "FLOPs", "CPU s", "")]
    for trial in trials:
        result = trial.outcome
        assert isinstance(result, Outcome)
        change = (result.flops - now.flops) / now.flops if now.flops else 0.0
        rows.append(
            (
                readable(sign * _gain(now, trial)),
                readable(result.arenas),
                f"{change:+.1%}" if round(change, 3) else "",
                f"{result.seconds:.2f}",
                _change(trial),
            )
        )
    yield from aligned(rows, ">>>>")


def _gain(now: Outcome, trial: Trial) -> int:
    assert isinstance(trial.outcome, Outcome)
    return now.total - trial.outcome.total


def _change(trial: Trial) -> str:
    option = trial.option
    return f"without {option.change}" if option.is_without else option.change


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
                "largest": {**peak.largest._asdict(), "bytes": peak.needed},
                "buffers": [
                    {
                        "id": buffer.name,
                        "size": buffer.size,
                        "lower": buffer.lower,
                        "upper": buffer.upper,
                        "maker": buffer.maker._asdict(),
                        "next": buffer.next and buffer.next._asdict(),
                        "in_place_of": buffer.in_place_of,
                        "not_in_place": buffer.apart,
                    }
                    for buffer in peak.buffers
                ],
            }
            for peak in explanation.peaks
        ],
        "trials": [_trial(now, trial) for trial in explanation.trials],
    }


def _trial(now: Outcome, trial: Trial) -> dict[str, Any]:
    option, result = trial.option, trial.outcome
    figures: dict[str, Any] = {
        "kind": option.kind,
        "change": option.change,
        "without": option.is_without,
        "passes": ",".join(map(str, option.passes)),
        "donated": [donation._asdict() for donation in option.donated],
    }
    if not isinstance(result, Outcome):
        return {**figures, "error": result or "not tried: the time was up"}
    return {
        **figures,
        "saved_bytes": _gain(now, trial),
        "arena_bytes": result.arenas,
        "caller_bytes": result.callers,
        "flops": result.flops,
        "seconds": round(result.seconds, 3),
    }
