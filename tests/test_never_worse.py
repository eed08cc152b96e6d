"""Tests that passes that lower the peak never raise it, alone or together."""

import pytest
from hypothesis import given, note, settings
from levels import planned_bytes
from modules import run
from programs import Program, programs
from sampling import examples
from xdsl.passes import ModulePass

from tensorplan.passes import optional_passes
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.passes.tgraph.fuse import TGraphFuse

LOWERING = [cls for cls in optional_passes() if cls.LOWERS_PEAK]


def passes(*kinds: type[ModulePass]) -> list[ModulePass]:
    """Returns the default sequence. Of the passes that lower the peak, it has `kinds`
    only."""
    others = [kind for kind in (*LOWERING, TGraphFuse) if kind not in kinds]
    return [p for p in PlanPipeline().passes() if not isinstance(p, tuple(others))]


@pytest.mark.thorough
@settings(max_examples=examples(200))
@given(programs(max_ops=40))
def test_each_pass(program: Program) -> None:
    for others in ((), (TGraphFuse,)):
        without = planned_bytes(run(program.module, *passes(*others)))
        for kind in LOWERING:
            note(kind.name)
            with_it = run(program.module, *passes(*others, kind))
            assert planned_bytes(with_it) <= without


@settings(max_examples=examples(200))
@given(programs(max_ops=40))
def test_all_of_them(program: Program) -> None:
    both = run(program.module, *passes(TGraphFuse, *LOWERING))
    assert planned_bytes(both) <= planned_bytes(
        run(program.module, *passes(TGraphFuse))
    )


@settings(max_examples=examples(200))
@given(programs(max_ops=40))
def test_duplicates(program: Program) -> None:
    def planned(fuse: TGraphFuse) -> int:
        each = passes(TGraphFuse, *LOWERING)
        return planned_bytes(
            run(
                program.module,
                *(fuse if isinstance(p, TGraphFuse) else p for p in each),
            )
        )

    assert planned(TGraphFuse()) <= planned(TGraphFuse(duplicate=False))
