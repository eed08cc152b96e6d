"""Tests that passes that lower the peak never raise it, alone or together."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from levels import planned_bytes
from modules import run
from programs import Program, programs
from sampling import examples
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import tensorplan
from tensorplan.passes import optional_passes
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.passes.tgraph.fuse import TGraphFuse

LIT_TESTS = Path(__file__).parent.parent / "lit_tests"
LOWERING = [cls for cls in optional_passes() if cls.LOWERS_PEAK]


def passes(*kinds: type[ModulePass]) -> list[ModulePass]:
    """Returns the default sequence. Of the passes that lower the peak, it has `kinds`
    only."""
    others = [kind for kind in (*LOWERING, TGraphFuse) if kind not in kinds]
    return [p for p in PlanPipeline().passes() if not isinstance(p, tuple(others))]


def own_programs(kind: type[ModulePass]) -> Iterator[ModuleOp]:
    """The programs of the pass's lit tests, which show what it changes."""
    for path in sorted((LIT_TESTS / kind.name).glob("*.mlir")):
        for text in path.read_text().split("// -----"):
            yield tensorplan.read(text)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", LOWERING, ids=lambda kind: kind.name)
def test_each_pass_lowers_its_own_programs(kind: type[ModulePass]) -> None:
    lowered = False
    for module in own_programs(kind):
        for others in ((), (TGraphFuse,)):
            without = planned_bytes(run(module, *passes(*others)))
            with_it = planned_bytes(run(module, *passes(*others, kind)))
            assert with_it <= without
            lowered |= with_it < without
    assert lowered


@settings(max_examples=examples(200))
@given(programs(max_ops=40, are_used=True))
def test_all_of_them(program: Program) -> None:
    both = run(program.module, *passes(TGraphFuse, *LOWERING))
    assert planned_bytes(both) <= planned_bytes(
        run(program.module, *passes(TGraphFuse))
    )


@settings(max_examples=examples(200))
@given(programs(max_ops=40, are_used=True))
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
