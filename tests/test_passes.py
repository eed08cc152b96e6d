"""Tests properties of the passes on random programs.

Every pass leaves IR that verifies (the driver ensures this) and that prints and parses,
preserves the program's values bit for bit, and changes nothing when run again.
"""

from io import StringIO

import pytest
from executables import assert_same, counted
from hypothesis import given, note
from hypothesis import strategies as st
from modules import run
from optional_passes import IDEMPOTENT, PLACE, TENSOR_PASSES
from programs import Program, programs
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass
from xdsl.printer import Printer

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.passes import driver, get_all_passes, optional_passes
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.passes.tgraph.bufferize import TGraphBufferize
from tensorplan.passes.tgraph.eliminate_assigns import TGraphEliminateAssigns
from tensorplan.passes.tgraph.fuse import TGraphFuse
from tensorplan.planning import STRATEGIES
from tensorplan.runtime.executor import Executable


def name_of(pass_: ModulePass) -> str:
    return str(pass_.pipeline_pass_spec())


def text(module: ModuleOp, generic: bool = False) -> str:
    stream = StringIO()
    Printer(stream, print_generic_format=generic).print_op(module)
    return stream.getvalue()


@given(programs())
def test_tensor_passes_keep_values_and_are_idempotent(program: Program) -> None:
    """One example runs all passes on the same program, whose values are computed once.
    A pass that changes nothing is not checked further."""
    before = text(program.module)
    want = run_reference(program.module, counted(program.module))
    for pass_ in (*TENSOR_PASSES, *(p for p in IDEMPOTENT if p not in TENSOR_PASSES)):
        note(name_of(pass_))
        once = run(program.module, pass_)
        after = text(once)
        if after == before:
            continue
        if pass_ in TENSOR_PASSES:
            assert_same(run_reference(once, counted(program.module)), want)
        if pass_ in IDEMPOTENT:
            assert text(run(once, pass_)) == after


def test_tensor_passes_are_optional_except_for_a_few() -> None:
    others = {name for name in get_all_passes() if name.startswith("tgraph-")}
    assert others - {cls.name for cls in optional_passes()} == {
        "tgraph-precompute",
        "tgraph-gradient",
        "tgraph-fit",
        "tgraph-search",
        "tgraph-bufferize",
    }


@given(
    program=programs(),
    chosen=st.lists(st.integers(0, len(TENSOR_PASSES) - 1), max_size=8),
    strategy=st.sampled_from(sorted(STRATEGIES)),
)
def test_optional_passes_in_any_order_keep_values(
    program: Program, chosen: list[int], strategy: str
) -> None:
    planned = run(
        program.module,
        *(TENSOR_PASSES[i] for i in chosen),
        PLACE,
        TGraphBufferize(),
        PlanMemory(strategy=strategy),
    )
    want = run_reference(program.module, counted(program.module))
    assert_same(
        Executable(planned, sanitize=True, native=False)(*counted(program.module)), want
    )


@given(programs())
def test_bufferized_program_without_a_plan(program: Program) -> None:
    """Each allocation gets its own memory."""
    module = run(program.module, PLACE, TGraphFuse(), TGraphBufferize())
    want = run_reference(program.module, counted(program.module))
    assert_same(Executable(module, native=False)(*counted(program.module)), want)


@given(programs())
def test_planning_again_changes_nothing(program: Program) -> None:
    planned = run(program.module, PlanPipeline())
    assert text(run(planned, PlanPipeline())) == text(planned)
    assert tensorplan.report(planned) == tensorplan.report(run(planned, PlanMemory()))


@pytest.mark.thorough
@given(programs(), st.booleans())
def test_all_levels_print_and_parse(program: Program, generic: bool) -> None:
    levels = [
        program.module,
        run(program.module, PLACE, TGraphFuse(), TGraphEliminateAssigns()),
        run(program.module, PLACE, TGraphFuse(), TGraphBufferize()),
        run(program.module, PlanPipeline()),
    ]
    for module in levels:
        printed = text(module, generic)
        parsed = Parser(tensorplan.context(), printed).parse_module()
        driver.check(parsed)
        assert text(parsed, generic) == printed


@pytest.mark.thorough
@given(programs())
def test_pool_sizes_lie_within_their_bounds(program: Program) -> None:
    *lower, memory = PlanPipeline().passes()
    assert isinstance(memory, PlanMemory)
    buffers = run(program.module, *lower)
    for strategy in STRATEGIES:
        report = tensorplan.report(run(buffers, PlanMemory(strategy=strategy)))
        for pool in report["pools"]:
            assert pool["lower_bound_bytes"] <= pool["bytes"] <= pool["unshared_bytes"]


@pytest.mark.parametrize("name", get_all_passes())
def test_path_of_a_pass_follows_from_its_name(name: str):
    family, _, rest = name.replace("-", "_").partition("_")
    module = get_all_passes()[name]().__module__
    assert module == f"tensorplan.passes.{family}.{rest}"
