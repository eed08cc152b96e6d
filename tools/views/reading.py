"""Reads views of plans from files: programs, reports of plan-opt and plan-run, CSV,
plans of other compilers; and frontiers.

The suffix of the name (`.csv`, `.json`) or the first bytes determine the format.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ...frontends.plans import litert
from ...frontends.plans.reading import OTHERS
from ...planning import Buffer, Limits, Problem, csv_format, solve, validate
from ...support.ranges import indices
from ..common import FileError, Source
from ..plan_arguments import option_of
from .model import FrontierView, PlanView, PoolView, ShownBuffer, pool_of

if TYPE_CHECKING:
    from ...reporting.frontier import FrontierPoint

EFFORT = 0.02
"""The fraction of a strategy's usual work that it may do, as in plan-memory."""

_DEFAULT_STRATEGY = "auto"
_FRONTIER = re.compile(rb'\s*\{\s*"frontier"')
_NOT_OURS = "expected a report of plan-opt or plan-run"


@dataclass(frozen=True)
class Reader:
    """Reads plans from files, and plans their buffers by further strategies."""

    strategies: Sequence[str] = ()
    """Strategies whose plans are shown beside the plan of the file."""
    inclusive: bool = False  # see csv_format.read
    explain: bool = False
    """Whether to try changes that would lower a program's peak."""
    planning: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The options for planning programs (see `PlanOptions`). For CSV, only `alignment`
    has an effect: it is the alignment of buffers that have none.
    """

    def read(self, source: Source) -> list[PlanView]:
        """The plan in the file or of its program, followed by a plan by each strategy.

        Raises `FileError`, and the exceptions of `ToolPipeline`.
        """
        if _is_foreign(source):
            self._expect_program_for(source, "another compiler's plan")
            from . import foreign

            own = foreign.view(source)
            return [own, *self._by_strategies(own)]
        start = source.data.removeprefix(b"\xef\xbb\xbf").lstrip()[:200]
        end = PurePath(source.name).suffix.lower()
        is_csv = end == ".csv" or (end != ".mlir" and _is_csv(start))
        is_json = end == ".json" or (start.startswith(b"{") and end != ".mlir")
        if is_csv or is_json:
            self._expect_program_for(source, "CSV" if is_csv else "a report")
        if is_csv:
            return self._from_csv(source)
        if is_json:
            own = _from_report(source)
        else:
            own = self._from_program(source)
        return [own, *self._by_strategies(own)]

    def frontier(self, source: Source) -> FrontierView | None:
        """The frontier that `plan-opt --frontier=json` wrote; None for any other input.

        Raises `FileError`.
        """
        if not _FRONTIER.match(source.data):
            return None
        if self.strategies:
            raise FileError(
                source, "this is a frontier, but --compare requires buffers"
            )
        self._expect_program_for(source, "a frontier")
        from ...reporting.frontier import FrontierPoint  # imports the passes

        report = _json(source)
        try:
            points = [
                FrontierPoint(
                    *(_get(row, name, int) for name in ("bytes", "time", "budget")),
                    change=_get(row, "change", str),
                )
                for row in _rows(report, "frontier")
            ]
            _check_curve(points)
        except ValueError as error:
            raise FileError(source, str(error)) from None
        return FrontierView(source.name, points)

    def _expect_program_for(self, source: Source, kind: str) -> None:
        """Raises `FileError` for options that require a program."""
        names = [name for name in self.planning if name != "alignment"]
        for name in (["explain"] if self.explain else []) + names:
            option = option_of(name)
            raise FileError(source, f"this is {kind}, but {option} requires a program")

    def _from_program(self, source: Source) -> PlanView:
        from . import programs  # imports the compiler

        return programs.read(
            source, self.explain, self.planning, placed_anew=bool(self.strategies)
        )

    def _from_csv(self, source: Source) -> list[PlanView]:
        try:
            table = csv_format.read(
                _text(source),
                inclusive=self.inclusive,
                alignment=self.planning.get("alignment", 1),
                keep_offsets=True,
            )
        except csv_format.CsvError as error:
            raise FileError(source, error.reason, error.line) from None
        fixed = [b for b in table.buffers if b.offset is not None]
        offsets = [b.offset or 0 for b in fixed]
        if reason := validate(Problem(fixed), offsets):
            raise FileError(source, f"the offsets in the file: {reason}")
        if len(fixed) == len(table.buffers):
            free = [replace(buffer, offset=None) for buffer in fixed]
            own = PlanView(source.name, _pools(free, offsets))
            return [own, *self._by_strategies(own)]
        given = PlanView(source.name, _pools(table.buffers, [0] * len(table.buffers)))
        names = dict.fromkeys((_DEFAULT_STRATEGY, *self.strategies))
        return [_planned(given, name) for name in names]

    def _by_strategies(self, plan: PlanView) -> list[PlanView]:
        return [_planned(plan, name) for name in self.strategies]


def _is_foreign(source: Source) -> bool:
    """Whether the file has a plan of another compiler; a LiteRT model may have none."""
    if source.name.endswith(litert.ENDINGS):
        return litert.has_plan(Path(source.name), source.data)
    return source.name.endswith(OTHERS)


def _pools(buffers: Sequence[Buffer], offsets: Sequence[int]) -> list[PoolView]:
    """The pools of the buffers, in order of first appearance; at least one."""
    pools: dict[str, list[ShownBuffer]] = {}
    for buffer, offset in zip(buffers, offsets, strict=True):
        pools.setdefault(buffer.pool, []).append(ShownBuffer(buffer, offset))
    return [pool_of(name, placed) for name, placed in (pools or {"": []}).items()]


def _planned(plan: PlanView, strategy: str) -> PlanView:
    """The plan with its buffers placed by `strategy`."""
    pools: list[PoolView] = []
    for pool in plan.pools:
        offsets = solve(pool.problem, strategy, Limits(effort=EFFORT)).offsets
        placed = [
            placed._replace(offset=offset)
            for placed, offset in zip(pool.buffers, offsets, strict=True)
        ]
        pools.append(replace(pool_of(pool.name, placed), held=pool.held))
    return replace(
        plan, title=f"{plan.title}, {strategy}", pools=pools, explanation=None
    )


def _json(source: Source) -> Any:
    try:
        return json.loads(_text(source))
    except json.JSONDecodeError as error:
        reason = f"{error.msg[:1].lower()}{error.msg[1:]}"
        reason = f"this cannot be read as JSON: {reason}"
        raise FileError(source, reason, error.lineno) from None
    except (ValueError, RecursionError) as error:  # long numbers, deep nesting
        raise FileError(source, f"this cannot be read as JSON: {error}") from None


def _from_report(source: Source) -> PlanView:
    """The plan in a report of `plan-opt --report` or `plan-run --report`."""
    report = _json(source)
    try:
        pools = [
            PoolView(_get(pool, "device", str), _get(pool, "bytes", int), [])
            for pool in _rows(report, "pools")
        ]
        for row in _rows(report, "reused") if "reused" in report else ():
            name = f"{_get(row, 'memory', str)} on {_get(row, 'device', str)}"
            pools.append(PoolView(name, _get(row, "bytes", int), []))
        members: list[list[ShownBuffer]] = [[] for _ in pools]
        for row in _rows(report, "buffers"):
            pool = _get(row, "pool", int)
            if not 0 <= pool < len(pools):
                raise ValueError(f"pool is {pool}, expected {indices(len(pools))}")
            members[pool].append(_placed(row))
        for pool, placed in zip(pools, members, strict=True):
            problem = Problem([b.buffer for b in placed])
            if reason := validate(problem, [b.offset for b in placed]):
                raise ValueError(f"pool {pool.name}: {reason}")
    except ValueError as error:
        raise FileError(source, str(error)) from None
    return PlanView(
        source.name,
        [replace(p, buffers=m) for p, m in zip(pools, members, strict=True)],
    )


def _placed(row: object) -> ShownBuffer:
    gaps = [(_get(gap, 0, int), _get(gap, 1, int)) for gap in _rows(row, "gaps")]
    size, lower, upper, alignment, offset = (
        _get(row, name, int)
        for name in ("size", "lower", "upper", "alignment", "offset")
    )
    buffer = Buffer(_get(row, "id", str), size, lower, upper, alignment, gaps)
    type_, role, op, location = (
        _get(row, name, str) for name in ("type", "role", "op", "location")
    )
    return ShownBuffer(buffer, offset, type_, role, op, location)


def _rows(whole: object, key: str) -> Sequence[object]:
    return cast(Sequence[object], _get(whole, key, list))


def _check_curve(points: Sequence["FrontierPoint"]) -> None:
    """Raises `ValueError` if there are no points or they are not ordered."""
    if not points or min(points[0].time, points[-1].bytes) < 0:
        raise ValueError("the frontier has no points, or a point with negative values")
    for before, point in pairwise(points):
        if point.bytes >= before.bytes or point.time <= before.time:
            raise ValueError(
                f"a point has {point.bytes} bytes and {point.time} ns, after one with "
                f"{before.bytes} and {before.time}, expected fewer bytes and more time"
            )


_T = TypeVar("_T")


def _get(whole: object, key: str | int, kind: type[_T]) -> _T:
    """The element `key` of a JSON value. Raises `ValueError` unless it is a `kind`."""
    try:
        part: object = cast(Any, whole)[key]
    except (TypeError, LookupError):
        raise ValueError(f"{key!r} is missing, {_NOT_OURS}") from None
    if type(part) is not kind:
        seen = json.dumps(part)[:40]
        raise ValueError(f"{key!r} is {seen}, {_NOT_OURS}")
    return part


def _is_csv(start: bytes) -> bool:
    header = start.partition(b"\n")[0].decode("latin-1")
    names = header.split(csv_format.separator_of(header))
    return len(names) > 3 and "size" in [name.strip() for name in names]


def _text(source: Source) -> str:
    try:
        return source.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = source.data.count(b"\n", 0, error.start) + 1
        raise FileError(source, "this is not UTF-8", line) from None
