"""`tgraph-fit`: lowers the peak, what costs the least first, until a budget is met.

It begins as the default sequence does, with tgraph-fuse, tgraph-eliminate-assigns,
tgraph-schedule and tgraph-slice. If that is not enough, it tries in this order:

 * a longer search for an order, which costs nothing at run time;
 * other groups: NNVM's, or none, where a group keeps what it reads for too long;
 * more pieces, and slower ones, of chains with a wide middle;
 * tgraph-rematerialize: values are computed again rather than kept;
 * tgraph-offload, with a device for that: values are there in between.

The last two go on from the best of the others. Each is planned on a copy of the
program, and what fits first is taken; a remark says what each of them reached. What
results lend to other buffers (see plan-memory) counts: so much less is computed again.

Needs: level 1 with devices, as tgraph-fuse. Leaves: level 1, as tgraph-offload. Does
not: fail where nothing fits: then it leaves what takes the fewest bytes, so that
plan-budget can say what is in the way; or place operations on streams.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tensorplan.dialects.diagnostics import remark
from tensorplan.passes.attempts import Attempt, Trial
from tensorplan.passes.functions import tensor_functions
from tensorplan.passes.memory_graph import memory_graph
from tensorplan.passes.sizes import check_alignment, parse_size
from tensorplan.passes.tgraph_eliminate_assigns import TGraphEliminateAssigns
from tensorplan.passes.tgraph_fuse import TGraphFuse
from tensorplan.passes.tgraph_offload import TGraphOffload
from tensorplan.passes.tgraph_rematerialize import TGraphRematerialize
from tensorplan.passes.tgraph_schedule import TGraphSchedule
from tensorplan.passes.tgraph_slice import TGraphSlice

LONGER = 1.0
"""The effort of a longer search for an order."""

PIECES, SLOWDOWN = 32, 0.1
"""Of more slices."""


@dataclass(frozen=True)
class TGraphFit(ModulePass):
    """Lowers the peak of live bytes until the arenas fit a budget.

    budget: the bytes that each arena may have, such as 64MiB.
    effort: of tgraph-schedule.
    slices: whether chains of operations may be computed in pieces.
    device: whose values may be moved.
    offload: the device that they are moved to, whose arena has no limit; without it,
        nothing is moved.
    alignment: of every buffer, in bytes.
    lend: whether buffers may lie in results that are not written yet (see plan-memory).
    """

    name = "tgraph-fit"

    budget: int | str
    effort: float = 0.2
    slices: bool = True
    device: str = "cpu:0"
    offload: str = ""
    alignment: int = 64
    lend: bool = True

    def __post_init__(self) -> None:
        parse_size(self.budget)  # raises ValueError
        check_alignment(self.alignment)
        if self.offload:  # raises ValueError
            TGraphOffload(self.device, self.offload, self.budget)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = list(tensor_functions(op))
        if not functions:
            return
        budget = parse_size(self.budget)
        trial = Trial(ctx, self.alignment, self.lend, self.offload)
        attempts: list[Attempt] = []
        for what, start, passes in self._ways(op, attempts):
            attempts.append(trial.run(what, start, passes))
            if attempts[-1].bytes <= budget:
                break
        best = min(attempts, key=lambda attempt: attempt.bytes)
        best.adopt(op)
        if len(attempts) > 1:
            func, _ = next(tensor_functions(op))
            outcome = "meets" if best.bytes <= budget else "comes nearest to"
            others = ", ".join(
                f"{other.what} {other.bytes}" for other in attempts if other is not best
            )
            remark(
                f"{best.what} {outcome} the budget of {budget} bytes, with "
                f"{best.bytes}; tried as well: {others}",
                func,
            )

    def _ways(
        self, given: ModuleOp, attempts: Sequence[Attempt]
    ) -> Iterator[tuple[str, ModuleOp, Sequence[ModulePass]]]:
        """What can be done, to which program: what costs the least comes first.

        `attempts` are those made so far.
        """
        fuse, assigns = TGraphFuse(), TGraphEliminateAssigns()
        order = TGraphSchedule(self.effort, self.alignment)
        slices: list[ModulePass] = []
        if self.slices:
            slices = [TGraphSlice(alignment=self.alignment, lend=self.lend)]
        yield "fusion and order", given, [fuse, assigns, order, *slices]
        if self.effort < LONGER:
            longer = TGraphSchedule(LONGER, self.alignment)
            yield "a longer search", given, [fuse, assigns, longer, *slices]
        for mode, what in (("nnvm", "smaller groups"), ("none", "no groups")):
            other = TGraphFuse(mode)
            yield what, given, [other, assigns, order, *slices]
        if self.slices:
            more = TGraphSlice(PIECES, SLOWDOWN, self.alignment, self.lend)
            yield "more pieces", given, [fuse, assigns, order, more]
        best = min(attempts, key=lambda attempt: attempt.bytes)
        budget = parse_size(self.budget)
        behind = "" if best is attempts[0] else f" behind {best.what}"
        lent = _live(best.module, self.alignment) - best.bytes
        if self.lend and lent > 0:
            some = TGraphRematerialize(budget + lent, alignment=self.alignment)
            yield f"some recomputation{behind}", best.module, [some]
        again = TGraphRematerialize(budget, alignment=self.alignment)
        yield f"recomputation{behind}", best.module, [again]
        if self.offload:
            move = TGraphOffload(self.device, self.offload, budget, self.alignment)
            what = f"recomputation and copies to {self.offload}{behind}"
            yield what, best.module, [again, move]


def _live(module: ModuleOp, alignment: int) -> int:
    """The most live bytes of a device, nothing lent."""
    graphs = [memory_graph(block, alignment) for _, block in tensor_functions(module)]
    return max(
        (peak for g in graphs for peak in g.peaks(range(len(g.ops))).values()),
        default=0,
    )
