"""Tries other ways to plan a program, and measures what each would save.

Each alternative is a sequence of passes for the same program, or the same passes for a
program with donated arguments. `try_out` runs it on a copy and measures the outcome.

    plan-pipeline                             arenas 1867776 bytes
    plan-pipeline{budget=1400832}             arenas 1400832 bytes, 2 % more FLOPs
    the same with argument 3 donated          401408 bytes less of results

An alternative that leaves out a pass of the pipeline shows what that pass saves.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from time import process_time
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from ..analysis.flops import flops
from ..analysis.functions import tensor_functions
from ..checking.plan_check import check_plan
from ..dialects.diagnostics import LocatedError, held_back
from ..dialects.tgraph.base import value_bytes
from ..dialects.tgraph.differentiation import GradientOp
from ..passes import driver
from ..passes.optional import OptionalPass
from ..passes.options import Placing
from ..passes.plan.in_place import PlanInPlace
from ..passes.plan.memory import PlanMemory
from ..passes.plan.pipeline import PlanPipeline
from ..passes.tgraph.bufferize import TGraphBufferize
from ..passes.tgraph.fuse import TGraphFuse
from ..passes.tgraph.gradient import TGraphGradient
from ..passes.tgraph.infer_shapes import TGraphInferShapes
from ..passes.tgraph.rematerialize import TGraphRematerialize
from ..passes.tgraph.tile import TGraphTile
from .donation import donate, donations
from .placements import memref_bytes

BUDGETS = (0.9, 0.75, 0.5)
"""Budgets for which recomputation is tried, as fractions of the bytes of the arenas."""

SINGLE_DONATIONS = 3
"""The number of arguments, largest first, whose donation is tried separately."""


class Donation(NamedTuple):
    """An argument that holds a returned value after the run; see `donation.donate`."""

    function: str
    argument: int
    result: int


class Alternative(NamedTuple):
    """Another way of planning a program."""

    kind: str  # the topic: "fusion", "schedule", ...
    change: str  # in words
    passes: Sequence[ModulePass]
    option: str  # of plan-opt's `-p`: all passes, or plan-pipeline with its options
    donated: Sequence[Donation] = ()
    is_without: bool = False  # whether it leaves out a part of the current pipeline


class MemoryNeeds(NamedTuple):
    """The bytes and FLOPs that a planned program needs."""

    arenas: int  # bytes
    callers: int  # bytes of arguments, variables and results
    flops: int  # see analysis/cost.py
    seconds: float  # of CPU time, for the passes

    @property
    def total(self) -> int:
        return self.arenas + self.callers


@dataclass(frozen=True)
class Trial:
    """An alternative with its outcome, or the reason why it has none."""

    alternative: Alternative
    outcome: MemoryNeeds | str | None  # None: not tried for lack of time
    saved: int = 0  # fewer bytes than the current plan, with arguments and results

    @property
    def change(self) -> str:
        """The alternative in words."""
        alternative = self.alternative
        return (
            f"without {alternative.change}"
            if alternative.is_without
            else alternative.change
        )

    @property
    def worth(self) -> int:
        """The bytes that the alternative, or the part that it leaves out, saves."""
        return -self.saved if self.alternative.is_without else self.saved


def try_out(
    ctx: Context, module: ModuleOp, alternative: Alternative
) -> MemoryNeeds | str:
    """The outcome of an alternative for a copy of `module`, or why it fails."""
    copy = module.clone()
    start = process_time()
    try:
        with held_back():
            _donate(copy, alternative.donated)
            driver.run(ctx, copy, alternative.passes)
            return outcome(copy, process_time() - start)
    except (LocatedError, VerifyException) as error:
        return str(error).partition("\n")[0]


def outcome(module: ModuleOp, seconds: float = 0.0) -> MemoryNeeds:
    """Measures a planned module."""
    arenas = sum(pool.size for pool in check_plan(module) if pool.argument is None)
    return MemoryNeeds(arenas, _callers(module), flops(module), seconds)


def _callers(module: ModuleOp) -> int:
    """The bytes of the functions' arguments; 0 for those of unknown size."""
    return sum(
        memref_bytes(type) or 0
        for func in module.ops
        if isinstance(func, FuncOp) and not func.is_declaration
        for type in func.function_type.inputs
    )


def _donate(module: ModuleOp, donated: Sequence[Donation]) -> None:
    functions = {func.sym_name.data: func for func, _ in tensor_functions(module)}
    for function, argument, result in sorted(donated, reverse=True):
        donate(functions[function], argument, result)


class EffectivePasses:
    """Callbacks for `driver.run` that collect optional passes that have an effect."""

    def __init__(self) -> None:
        self.classes: set[type[ModulePass]] = set()
        self._copy: ModuleOp | None = None

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        may_be_omitted = isinstance(pass_, OptionalPass)
        self._copy = module.clone() if may_be_omitted else None

    def after(self, pass_: ModulePass, module: ModuleOp, seconds: float) -> None:
        if self._copy and not module.is_structurally_equivalent(self._copy):
            self.classes.add(type(pass_))


@dataclass(frozen=True)
class Alternatives:
    """The alternatives to a pipeline. They start after the passes that all share."""

    pipeline: PlanPipeline

    def split(self) -> tuple[Sequence[ModulePass], Sequence[ModulePass]]:
        """The passes that all alternatives share, which come first, and the others."""
        passes = self.pipeline.passes()
        end = 1 + next(
            i for i, p in enumerate(passes) if isinstance(p, TGraphInferShapes)
        )
        return passes[:end], passes[end:]

    def of(
        self, module: ModuleOp, arenas: int, changed: Collection[type[ModulePass]]
    ) -> list[Alternative]:
        """The alternatives for a module after the shared passes, the fastest first.

        `arenas` is the size of the arenas in the current plan, in bytes. `changed` are
        the optional passes that have an effect on the module.
        """
        if not any(True for _ in tensor_functions(module)):
            return list(self._of_memrefs())
        return [
            *self._of_donation(module),
            *self._of_pipeline(),
            *self._of_fusion(),
            *self._of_gradient(module),
            *self._of_recomputation(arenas),
            *self._left_out(changed),
            *self._of_search(),
        ]

    def _of_options(self, kind: str, **options: str | int | bool) -> Alternative:
        """The pipeline with other options."""
        pipeline = replace(self.pipeline, **options)
        said = (f"{n.replace('_', '-')}={v}" for n, v in options.items())
        passes = Alternatives(pipeline).split()[1]
        return Alternative(kind, " ".join(said).lower(), passes, str(pipeline))

    def _of_passes(
        self, kind: str, what: str, passes: Sequence[ModulePass]
    ) -> Alternative:
        every = [*self.split()[0], *passes]
        return Alternative(kind, what, passes, ",".join(map(str, every)))

    def _with(self, *others: ModulePass) -> Sequence[ModulePass]:
        """The passes, with `others` in place of the passes of the same classes."""
        instead = {type(other): other for other in others}
        return [instead.get(type(pass_), pass_) for pass_ in self.split()[1]]

    def _without(self, kind: type[ModulePass]) -> Sequence[ModulePass]:
        return [pass_ for pass_ in self.split()[1] if not isinstance(pass_, kind)]

    def _of_pipeline(self) -> Iterator[Alternative]:
        now = self.pipeline
        if now.strategy != "auto":
            yield self._of_options("placing", strategy="auto")
        if now.alignment > 64:
            yield self._of_options("placing", alignment=64)
        if not now.reuse_outputs:
            yield self._of_options("output reuse", reuse_outputs=True)
        if now.streams != 1:
            yield self._of_options("streams", streams=1)

    def _of_donation(self, module: ModuleOp) -> Iterator[Alternative]:
        same = Alternative("donation", "", self.split()[1], str(self.pipeline))
        sizes: dict[Donation, int] = {}
        names: dict[Donation, str] = {}
        for func, block in tensor_functions(module):
            for argument, result in donations(func):
                donation = Donation(func.sym_name.data, argument, result)
                value = block.args[argument]
                sizes[donation] = value_bytes(value)
                names[donation] = f"%{value.name_hint or argument}"
        largest = sorted(sizes, key=lambda donation: -sizes[donation])
        for donation in largest[:SINGLE_DONATIONS]:
            what = f"donate argument {donation.argument} ({names[donation]})"
            yield same._replace(change=what, donated=(donation,))
        if len(largest) > 1:
            what = f"donate {len(largest)} arguments, all that have a result's type"
            yield same._replace(change=what, donated=tuple(largest))

    def _of_fusion(self) -> Iterator[Alternative]:
        for fuse in (TGraphFuse(mode="nnvm"), TGraphFuse(keep_peak=False)):
            yield self._of_passes("fusion", _said(fuse), self._with(fuse))

    def _of_gradient(self, module: ModuleOp) -> Iterator[Alternative]:
        if any(isinstance(op, GradientOp) for op in module.walk()):
            mirror = TGraphGradient(mirror="cheap")
            yield self._of_passes("gradient", _said(mirror), self._with(mirror))

    def _of_recomputation(self, arenas: int) -> Iterator[Alternative]:
        now = self.pipeline
        if now.streams != 1 or now.budget is not None or not arenas:
            return
        passes = list(self.split()[1])
        at = next(i for i, p in enumerate(passes) if isinstance(p, TGraphBufferize))
        for part in BUDGETS:
            budget = int(arenas * part)
            again = TGraphRematerialize(budget, **now.shared(Placing))
            yield self._of_passes(
                "recomputation",
                f"budget={budget} ({part:.0%} of now): recompute",
                [*passes[:at], again, *passes[at:]],
            )

    def _of_search(self) -> Iterator[Alternative]:
        now = self.pipeline
        if now.streams == 1:
            tiles = TGraphTile(64, 0.3, **now.shared(Placing))
            what = "tgraph-tile{tiles=64 max-slowdown=0.3}"
            yield self._of_passes("tiling", what, self._with(tiles))
        if now.effort != "high":
            yield self._of_options("schedule", effort="high")

    def _left_out(self, changed: Collection[type[ModulePass]]) -> Iterator[Alternative]:
        for cls in dict.fromkeys(type(pass_) for pass_ in self.split()[1]):
            if cls in changed and issubclass(cls, OptionalPass) and cls.TOPIC:
                left = self._without(cls)
                found = self._of_passes(cls.TOPIC, cls.name, left)
                yield found._replace(is_without=True)
        if self.pipeline.reuse_outputs:
            left = self._of_options("output reuse", reuse_outputs=False)
            yield left._replace(change="output reuse", is_without=True)

    def _of_memrefs(self) -> Iterator[Alternative]:
        """Alternatives for a program that is on memrefs already."""
        passes = list(self.split()[1])
        at = next(i for i, p in enumerate(passes) if isinstance(p, PlanMemory))
        in_place = [*passes[:at], PlanInPlace(), *passes[at:]]
        yield self._of_passes("in place", "plan-in-place", in_place)
        yield from self._of_pipeline()
        if self.pipeline.reuse_outputs:
            left = self._of_options("output reuse", reuse_outputs=False)
            yield left._replace(change="output reuse", is_without=True)


def _said(pass_: ModulePass) -> str:
    """A pass as users write it, with dashes in the names of options."""
    return str(pass_).replace("_", "-")
