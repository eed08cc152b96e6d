"""An explanation of the peak as text for people: `plan-opt --explain`.

@main: 48 KiB in the arena on cpu:0
most is live at step 9 of 14: tgraph.dot_general (keep.mlir:4:8)

  size  buffer  steps    made by                             waits for
16 KiB  %a      [3, 12)  tgraph.exponential (keep.mlir:2:8)  step 10: tgraph.multiply
...

what would help
 saves  arenas  FLOPs  CPU s
16 KiB  32 KiB  +0.3%   0.02  budget=44236 (90% of now): recompute

options of plan-opt, to paste
budget=44236 (90% of now): recompute: -p 'convert-stablehlo-to-tgraph,...'
"""

from collections.abc import Iterator, Sequence
from shlex import quote

from .peaks import ArenaPeak, LiveBuffer
from .trials import MemoryNeeds, Trial
from .wording import aligned, bold, readable

LISTED = 12
"""The largest number of buffers that the text lists for each arena."""


HEAD = ("saves", "arenas", "FLOPs", "CPU s", "")


def lines(
    peaks: Sequence[ArenaPeak],
    now: MemoryNeeds,
    trials: Sequence[Trial],
    color: bool,
) -> Iterator[str]:
    """The lines of the text, where `now` is the outcome of the current plan.

    `color` adds terminal escapes.
    """
    if not peaks:
        yield "there is no arena: all values are stored in the caller's memory"
    for number, peak in enumerate(peaks):
        if number:
            yield ""
        yield from _peak(peak, color)
    yield ""
    yield f"arguments, variables and results take {readable(now.callers)} more"
    found = tables(now, trials)
    for title, rows in found:
        yield ""
        yield bold(title, color)
        if rows:
            yield from aligned([HEAD, *rows], ">>>>")
    if options := [t for t in _helping(trials) if not t.alternative.donated]:
        yield from ("", bold("options of plan-opt, to paste", color))
        for trial in options:
            yield f"{trial.change}: -p {quote(trial.alternative.option)}"
    if rest := remarks(trials):
        yield from ("", *rest)


def tables(
    now: MemoryNeeds, trials: Sequence[Trial]
) -> list[tuple[str, list[tuple[str, ...]]]]:
    """A table of changes that would save bytes, and one of passes that already do.

    A table is a title and rows with the columns of `HEAD`, by descending savings.
    """
    done = [_row(now, t) for t in _saving(trials) if t.alternative.is_without]
    found: list[tuple[str, list[tuple[str, ...]]]] = []
    if helping := _helping(trials):
        found.append(("what would help", [_row(now, trial) for trial in helping]))
    elif any(isinstance(trial.outcome, MemoryNeeds) for trial in trials):
        found.append(("no change that was tried would help", []))
    if done:
        found.append(("what already helps", done))
    return found


def _helping(trials: Sequence[Trial]) -> Sequence[Trial]:
    """Trials that would save bytes; of those of one kind and outcome, the first."""
    first: dict[object, Trial] = {}
    for trial in _saving(trials):
        if not trial.alternative.is_without and isinstance(trial.outcome, MemoryNeeds):
            first.setdefault((trial.alternative.kind, trial.outcome[:3]), trial)
    return list(first.values())


def _saving(trials: Sequence[Trial]) -> Sequence[Trial]:
    saving = (trial for trial in trials if trial.worth > 0)
    return sorted(saving, key=lambda trial: -trial.worth)


def remarks(trials: Sequence[Trial]) -> Sequence[str]:
    """Remarks on changes without effect, changes that failed, and changes not tried."""
    tried = [trial for trial in trials if isinstance(trial.outcome, MemoryNeeds)]
    said = [
        f"not possible: {trial.change}: {trial.outcome}"
        for trial in trials
        if isinstance(trial.outcome, str)
    ]
    if vain := "; ".join(trial.change for trial in tried if trial.worth <= 0):
        said.insert(0, f"without effect on memory: {vain}")
    if late := "; ".join(t.change for t in trials if t.outcome is None):
        said.append(f"not tried for lack of time: {late}")
    return said


def _row(now: MemoryNeeds, trial: Trial) -> tuple[str, ...]:
    result = trial.outcome
    assert isinstance(result, MemoryNeeds)
    change = (result.flops - now.flops) / now.flops if now.flops else 0.0
    return (
        readable(trial.worth),
        readable(result.arenas),
        f"{change:+.1%}" if round(change, 3) else "",
        f"{result.seconds:.2f}",
        trial.change,
    )


def _peak(peak: ArenaPeak, color: bool) -> Iterator[str]:
    where = f" on {peak.device}" if peak.device else ""
    yield bold(f"@{peak.function}: {readable(peak.size)} in the arena{where}", color)
    yield from summary(peak)
    yield ""
    rows = [("size", "buffer", "steps", "made by", "waits for")]
    for buffer in peak.buffers[:LISTED]:
        steps = f"[{buffer.lower}, {buffer.upper})"
        waits = waits_for(buffer, peak)
        rows.append(
            (readable(buffer.size), buffer.name, steps, str(buffer.maker), waits)
        )
    if rest := peak.buffers[LISTED:]:
        total = readable(sum(buffer.size for buffer in rest))
        rows.append((total, f"{len(rest)} others", "", "", ""))
    yield from aligned(rows, ">")
    reasons = [f"{b.name} {r}" for b in peak.buffers[:LISTED] if (r := in_place(b))]
    if reasons:
        yield from ("", *reasons)


def summary(peak: ArenaPeak) -> Sequence[str]:
    """The fragmentation, the operation at the peak, and the one with the most bytes."""
    lost = peak.size - peak.lower_bound
    return [
        f"fragmentation is {readable(lost)}: "
        f"{readable(peak.lower_bound)} are live at the peak"
    ] * bool(lost) + [
        f"the peak is at step {peak.site.step} of {peak.steps}: {peak.site}",
        f"{peak.largest} {peak.claim}",
    ]


def waits_for(buffer: LiveBuffer, peak: ArenaPeak) -> str:
    """The operation that accesses the buffer next, at the peak or later, in words."""
    if buffer.next is None:
        return "another iteration"
    if buffer.next.step == peak.site.step:
        return "in use"
    return f"step {buffer.next.step}: {buffer.next}"


def in_place(buffer: LiveBuffer) -> str:
    """The operand that the buffer overwrites, or why it overwrites none, in words.

    Empty if no operand has the size of the buffer.
    """
    if buffer.in_place_of:
        return f"is in place: it overwrites {buffer.in_place_of}"
    return (
        f"is not in place: {buffer.not_in_place_reason}"
        if buffer.not_in_place_reason
        else ""
    )
