"""Tests double buffering by `plan-overlap-copies`: copies that overlap with other
iterations of a loop use two slots, and the program leaves the same bytes."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memref_programs import assert_same_contents
from memref_programs import run as run_memrefs
from modules import parse, run
from sampling import examples
from spilled_programs import function_of
from transfers import is_refused, on, overlapped, with_transfers_elsewhere
from upstream import needs_mlir
from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter
from xdsl.transforms.lower_affine import LowerAffinePass

from tensorplan.checking.plan_check import check_plan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.target_memory import TARGET
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.passes.convert.tgraph_to_linalg import ConvertTGraphToLinalg
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.plan.overlap_copies import PlanOverlapCopies
from tensorplan.passes.plan.overlapping import iterations
from tensorplan.passes.plan.strip_memory_spaces import PlanStripMemorySpaces
from tensorplan.runtime.backends.mlir.executable import MlirExecutable

LARGE = 'memref<256xf32, "slow">'
PART = 'memref<64xf32, strided<[1], offset: ?>, "slow">'
TILE = 256  # bytes


def part(name: str, of: str, at: str = "%i") -> str:
    return f"%{name} = memref.subview %{of}[{at}] [64] [1] : {LARGE} to {PART}"


FETCH = f"""
  %a = memref.alloc() : !t
  "memref.copy"(%part, %a) : ({PART}, !t) -> ()"""
COMPUTE = """
  %b = memref.alloc() : !t
  linalg.copy ins(%a : !t) outs(%b : !t)
  memref.dealloc %a : !t"""
STORE = f"""
  {part("to", "y")}
  "memref.copy"(%b, %to) : (!t, {PART}) -> ()
  memref.dealloc %b : !t"""
BODY = part("part", "x") + FETCH + COMPUTE + STORE


def loop(body: str, around: str = "", bounds: str = "%c0 to %c256 step %c64") -> str:
    return f"""
func.func @f(%x: {LARGE}, %y: {LARGE}, %w: {LARGE}, %n: index) {{
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  {around}
  scf.for %i = {bounds} {{
    {body}
  }}
  func.return
}}"""


def starts(module: ModuleOp) -> list[memref.DmaStartOp]:
    return [op for op in module.walk() if isinstance(op, memref.DmaStartOp)]


def test_an_iteration_starts_the_copy_of_the_next_one() -> None:
    """The last iteration, which the pass peels off, starts no copy."""
    iteration = ("dealloc a", "copy b to", "dealloc b")
    assert overlapped(on(loop(BODY), 3 * TILE)) == [
        *("alloc a", "start part a"),
        *("wait part a", "alloc a", "start part a", "alloc b", *iteration),
        *("wait part a", "alloc b", *iteration),
    ]


def test_double_buffering_needs_room_for_another_slot() -> None:
    assert len(starts(run(on(loop(BODY), 3 * TILE), PlanOverlapCopies()))) == 2
    hidden = run(on(loop(BODY), 3 * TILE - 1), PlanOverlapCopies())
    assert not any(map(is_early, starts(hidden)))


def is_early(start: memref.DmaStartOp) -> bool:
    """Whether an iteration starts this transfer for the next one."""
    loop = start.parent_op()
    return isinstance(loop, scf.ForOp) and bool(loop.iter_args)


def test_number_of_early_copies_depends_on_capacity() -> None:
    """Each of two copies needs one more slot. A memory with room for one of these slots
    gets one early copy."""
    body = (
        part("part", "x")
        + FETCH
        + (part("part", "w") + FETCH).replace("%part", "%other").replace("%a", "%c")
        + COMPUTE
        + "\n  linalg.copy ins(%c : !t) outs(%b : !t)\n  memref.dealloc %c : !t"
        + STORE
    )
    for tiles, count in ((3, 0), (4, 1), (5, 2)):
        hidden = run(on(loop(body), tiles * TILE), PlanOverlapCopies())
        assert sum(map(is_early, starts(hidden))) == count
        check_plan(run(hidden, PlanMemory()))


NOT_EARLY = {
    "its variable is no index": loop(
        "%i = arith.index_cast %k : i32 to index\n" + BODY,
        "%z = arith.constant 0 : i32\n  %s = arith.constant 64 : i32\n"
        "  %e = arith.constant 256 : i32",
        bounds="%z to %e step %s",
    )
    .replace("for %i", "for %k")
    .replace("step %s {", "step %s : i32 {"),
    "it runs once": loop(BODY, bounds="%c0 to %c64 step %c64"),
    "the loop writes what is copied": loop(BODY.replace("%y", "%x")),
    "what is copied is in the loop": loop(
        BODY.replace(
            part("part", "x"),
            f"%z = memref.alloc() : {LARGE}\n"
            f'"memref.copy"(%x, %z) : ({LARGE}, {LARGE}) -> ()\n' + part("part", "z"),
        ).replace(
            "memref.dealloc %b", f"memref.dealloc %z : {LARGE}\nmemref.dealloc %b"
        )
    ),
    "memory says where": loop(
        BODY.replace(
            part("part", "x"),
            "%k = memref.load %at[%c0] : memref<1xindex>\n" + part("part", "x", "%k"),
        ),
        "%at = memref.alloca() : memref<1xindex>",
    ),
    "it is written before": loop(
        BODY.replace(
            "%a = memref.alloc() : !t",
            "%a = memref.alloc() : !t\nlinalg.fill ins(%zero : f32) outs(%a : !t)",
        ),
        "%zero = arith.constant 0.0 : f32",
    ),
    "nothing runs beside it": loop(
        part("part", "x") + FETCH + "\nmemref.dealloc %a : !t"
    ),
}


@pytest.mark.parametrize("name", NOT_EARLY)
def test_copies_in_that_stay_in_their_iteration(name: str) -> None:
    hidden = run(on(NOT_EARLY[name], 10**6), PlanOverlapCopies())
    assert len([op for op in hidden.walk() if isinstance(op, scf.ForOp)]) == 1
    loops = [op for op in hidden.walk() if isinstance(op, scf.ForOp)]
    assert "a" not in [value.name_hint for value in loops[0].iter_args]


MADE = """
  %b = memref.alloc() : !t
  linalg.copy ins(%a : !t) outs(%b : !t)"""
OUTSIDE = """
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc() : !t
  linalg.fill ins(%zero : f32) outs(%a : !t)"""


def test_copy_out_ends_in_the_next_iteration() -> None:
    """After the loop, the program waits for the last copy."""
    assert overlapped(on(loop(MADE + STORE, OUTSIDE), 3 * TILE)) == [
        *("alloc a", "alloc b", "start b to"),
        *("alloc b", "wait b to", "dealloc b", "start b to"),
        *("wait b to", "dealloc b"),
    ]
    hidden = run(on(loop(MADE + STORE, OUTSIDE), 3 * TILE - 1), PlanOverlapCopies())
    assert not starts(hidden)


def test_copies_in_and_out_overlap_other_iterations() -> None:
    hidden = run(on(loop(BODY), 4 * TILE), PlanOverlapCopies())
    check_plan(run(hidden, PlanMemory()))
    (inner,) = (op for op in hidden.walk() if isinstance(op, scf.ForOp))
    assert [value.name_hint for value in inner.iter_args] == ["a", "b"]


NOT_LATE = {
    "it runs once": loop(MADE + STORE, OUTSIDE, bounds="%c0 to %c64 step %c64"),
    "it is read afterwards": loop(
        MADE
        + STORE.replace(
            "memref.dealloc %b",
            "linalg.copy ins(%b : !t) outs(%a : !t)\nmemref.dealloc %b",
        ),
        OUTSIDE,
    ),
    "the loop reads what is copied to": loop(
        MADE
        + STORE
        + f"\n{part('back', 'y')}"
        + f"\nlinalg.copy ins(%back : {PART}) outs(%a : !t)",
        OUTSIDE,
    ),
    "it lies outside": loop(
        STORE.replace("%b", "%a").replace("memref.dealloc %a : !t", ""), OUTSIDE
    ),
    "nothing runs beside it": loop("%b = memref.alloc() : !t\n" + STORE),
}


@pytest.mark.parametrize("name", NOT_LATE)
def test_copies_out_that_stay_in_their_iteration(name: str) -> None:
    hidden = run(on(NOT_LATE[name], 10**6), PlanOverlapCopies())
    (op,) = (op for op in hidden.walk() if isinstance(op, scf.ForOp))
    assert not op.iter_args


COUNTED = {
    "copies in": (BODY, "", 3),
    "copies out": (MADE + STORE, OUTSIDE, 3),
    "both": (BODY, "", 5),
}
BOUNDS = [
    *((0, 0, 64), (128, 64, 64), (-64, -128, 32)),  # no iteration
    *((0, 1, 64), (128, 192, 64), (0, 64, 96)),  # one iteration
    *((0, 65, 64), (64, 192, 64), (0, 192, 96)),  # two iterations
    *((0, 256, 64), (0, 193, 64), (0, 150, 50), (8, 190, 26)),
]


def counted(name: str) -> ModuleOp:
    """The module of `COUNTED[name]`, a loop whose bounds and step are arguments."""
    body, around, tiles = COUNTED[name]
    text = loop(body, around, "%lo to %n step %by")
    return on(
        text.replace("%n: index", "%lo: index, %n: index, %by: index"), tiles * TILE
    )


def bytes_of(module: ModuleOp, is_late: bool = False) -> list[dict[int, list[object]]]:
    """The final contents of the arguments, for each of `BOUNDS`."""
    return [
        run_memrefs(
            function_of(module), 0, 10**5, is_late, {"lo": low, "n": high, "by": by}
        )
        for low, high, by in BOUNDS
    ]


@pytest.mark.parametrize("name", COUNTED)
def test_loops_with_any_number_of_iterations(name: str) -> None:
    module = counted(name)
    hidden = run(module, PlanOverlapCopies())
    loops = [op for op in hidden.walk() if isinstance(op, scf.ForOp)]
    assert [len(op.iter_args) for op in loops] == [2 if name == "both" else 1]
    planned = run(hidden, PlanMemory())
    check_plan(planned)
    before = bytes_of(module)
    for each in (hidden, planned):
        assert bytes_of(each) == bytes_of(each, is_late=True) == before
    assert str(run(hidden, PlanOverlapCopies())) == str(hidden)


@pytest.mark.parametrize("name", ["copies in", "copies out"])
def test_moved_transfers_are_refused_or_remarked_or_harmless(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    planned = run(counted(name), PlanOverlapCopies(), PlanMemory())
    expected = bytes_of(planned)
    caught = 0
    for other in with_transfers_elsewhere(planned):
        caplog.clear()
        with caplog.at_level("INFO"):
            is_caught = is_refused(other)
        if is_caught or "a transfer under way may disturb" in caplog.text:
            caught += 1
            continue
        for is_late in (False, True):
            try:
                values = bytes_of(other, is_late)
            except (KeyError, AssertionError):  # a wait without a start: a remark
                continue
            assert values == expected
    assert caught


@pytest.mark.parametrize("name", ["copies in", "both"])
def test_loop_that_repeats_the_peeled_iteration_is_wrong(name: str) -> None:
    planned = run(counted(name), PlanOverlapCopies(), PlanMemory())
    expected = bytes_of(planned)
    (inner,) = (op for op in planned.walk() if isinstance(op, scf.ForOp))
    low, high, _ = function_of(planned).args[3:]
    inner.operands = [low, high, *inner.operands[2:]]
    try:
        found = bytes_of(planned)
    except (AssertionError, ValueError):  # a wait without a start, or an empty copy
        return
    assert found != expected


AFFINE = loop(BODY).replace(
    "scf.for %i = %c0 to %c256 step %c64", "affine.for %i = 0 to 256 step 64"
)
WHILE = loop(
    BODY + "%next = arith.addi %i, %c64 : index scf.yield %next : index"
).replace(
    "scf.for %i = %c0 to %c256 step %c64 {",
    """%last = scf.while (%k = %c0) : (index) -> index {
    %goes = arith.cmpi slt, %k, %n : index
    scf.condition(%goes) %k : index
  } do {
  ^bb0(%i: index):""",
)
OTHER_LOOPS = {
    "affine.for": (AFFINE, "2, affine.for: lower-affine makes it an scf.for"),
    "scf.while": (
        WHILE,
        "2, scf.while: no iteration knows whether another one follows",
    ),
}


@pytest.mark.parametrize(("text", "said"), OTHER_LOOPS.values(), ids=OTHER_LOOPS)
def test_remark_about_loops_that_are_not_scf_for(
    text: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        hidden = run(on(text, 10**6), PlanOverlapCopies())
    assert not starts(hidden)
    assert f"remark: copies that stay in their iteration: {said}" in caplog.text


def test_iterations_of_a_lowered_affine_loop_overlap() -> None:
    module = on(AFFINE, 3 * TILE)
    hidden = run(module, LowerAffinePass(), PlanOverlapCopies())
    assert any(map(is_early, starts(hidden)))


def test_missing_wait_for_a_copy_out_is_found(
    caplog: pytest.LogCaptureFixture,
) -> None:
    planned = run(
        on(loop(MADE + STORE, OUTSIDE), 3 * TILE), PlanOverlapCopies(), PlanMemory()
    )

    def without_wait(number: int) -> ModuleOp:
        module = planned.clone()
        waits = [op for op in module.walk() if isinstance(op, memref.DmaWaitOp)]
        assert len(waits) == 2
        Rewriter.erase_op(waits[number])
        return module

    caplog.clear()
    with caplog.at_level("INFO"):
        check_plan(without_wait(0))
    assert "transfers without a known wait: 2" in caplog.text
    with pytest.raises(LocatedError, match="nothing waits for memref"):
        check_plan(without_wait(1))


def loops_of_copies(random: Random) -> str:
    """A random nest of loops that copy parts of arguments into buffers and back."""
    names = iter(f"n{number}" for number in range(1000))
    sources = ["x", "w"]

    def body(depth: int, counters: list[str]) -> str:
        lines: list[str] = []
        live: list[str] = []
        for _ in range(random.randrange(1, 5)):
            kind = random.choice(["fetch", "fetch", "compute", "store", "loop"])
            new, at = next(names), random.choice(counters)
            if kind == "fetch":
                source = random.choice(sources)
                lines.append(
                    part(f"{new}p", source, at)
                    + FETCH.replace("%part", f"%{new}p").replace("%a", f"%{new}")
                )
                live.append(new)
            elif kind == "compute" and live:
                lines.append(
                    f"%{new} = memref.alloc() : !t\nlinalg.copy "
                    f"ins(%{random.choice(live)} : !t) outs(%{new} : !t)"
                )
                live.append(new)
            elif kind == "store" and live:
                lines.append(
                    part(f"{new}p", "y", at)
                    + f'\n"memref.copy"(%{random.choice(live)}, %{new}p) : '
                    f"(!t, {PART}) -> ()"
                )
            elif kind == "loop" and depth < 2:
                inner = body(depth + 1, [*counters, f"%{new}"])
                lines.append(f"scf.for %{new} = %c0 to %c256 step %c64 {{\n{inner}\n}}")
            if live and random.random() < 0.3:
                lines.append(f"memref.dealloc %{live.pop()} : !t")
        lines += [f"memref.dealloc %{name} : !t" for name in live]
        return "\n".join(lines)

    return loop(body(0, ["%i"]))


def assert_same_bytes(random: Random) -> int:
    """Checks that the pass does not change the bytes that a random program leaves, both
    if transfers copy at their start and if they copy at their wait. Returns the number
    of copies that start an iteration early."""
    module = on(loops_of_copies(random), TILE * random.randrange(6, 12))
    hidden = run(module, PlanOverlapCopies())
    before = run_memrefs(function_of(module), 0, 10**5)
    planned = run(hidden, PlanMemory())
    check_plan(planned)
    for each in (hidden, planned):
        for is_late in (False, True):
            after = run_memrefs(function_of(each), 0, 10**5, is_late)
            assert_same_contents(before, after)
    assert str(run(hidden, PlanOverlapCopies())) == str(hidden)
    return sum(map(is_early, starts(hidden)))


@pytest.mark.parametrize("seed", range(6))
def test_random_loops_leave_the_same_bytes(seed: int) -> None:
    assert_same_bytes(Random(seed))


ON_DEVICES = f"""
!x = memref<8x64xf32, "cpu:1">
!row = memref<1x64xf32, strided<[64, 1], offset: ?>, "cpu:1">
!t = memref<1x64xf32, "cpu:0">
module attributes {{{TARGET} = #dlti.target_system_spec<
  "cpu:0" = #dlti.target_device_spec<"capacity" = 768>,
  "cpu:1" = #dlti.target_device_spec<"capacity" = 8192, "copies" = #dlti.map<
    "cpu:0" = #dlti.map<"bandwidth" = 1, "asynchronous" = true>>>>}} {{
func.func @main(%x: !x, %y: !x {{tgraph.result = 0 : i32}}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {{
    %from = memref.subview %x[%i, 0] [1, 64] [1, 1] : !x to !row
    %a = memref.alloc() : !t
    "memref.copy"(%from, %a) : (!row, !t) -> ()
    %b = memref.alloc() : !t
    tgraph.negate %a outs(%b) : !t
    memref.dealloc %a : !t
    %to = memref.subview %y[%i, 0] [1, 64] [1, 1] : !x to !row
    "memref.copy"(%b, %to) : (!t, !row) -> ()
    memref.dealloc %b : !t
  }}
  func.return
}}
}}"""


@needs_mlir
def test_mlir_computes_the_same_values() -> None:
    planned = run(parse(ON_DEVICES), PlanOverlapCopies(), PlanMemory())
    assert any(map(is_early, starts(planned)))
    lowered = run(planned, ConvertTGraphToLinalg(), PlanStripMemorySpaces())
    x = np.random.default_rng(0).random((8, 64), np.float32)
    (y,) = MlirExecutable(lowered, signature(planned), optimized=False)(x)
    np.testing.assert_array_equal(y, -x)


@pytest.mark.thorough
@settings(max_examples=examples(100))
@given(st.randoms(use_true_random=False))
def test_more_random_loops_leave_the_same_bytes(random: Random) -> None:
    assert_same_bytes(random)


def nest(depth: int) -> str:
    """`depth` loops around the loop with `BODY`. Each of them also copies a tile."""
    text = BODY
    for at in range(depth):
        i = f"%i{at}"
        text = f"""
    scf.for {i} = %c0 to %c256 step %c64 {{
      {part(f"p{at}", "x", i)}
      %a{at} = memref.alloc() : !t
      "memref.copy"(%p{at}, %a{at}) : ({PART}, !t) -> ()
      {text}
      %b{at} = memref.alloc() : !t
      linalg.copy ins(%a{at} : !t) outs(%b{at} : !t)
      memref.dealloc %a{at} : !t
      {part(f"to{at}", "y", i)}
      "memref.copy"(%b{at}, %to{at}) : (!t, {PART}) -> ()
      memref.dealloc %b{at} : !t
    }}"""
    return loop(text)


def test_growth_of_nested_loops_is_limited() -> None:
    """Without a limit, each enclosing loop would double the number of operations."""
    module = on(nest(8), 100 * TILE)
    found = run(module, PlanOverlapCopies())
    assert any(map(is_early, starts(found)))
    assert len(list(found.walk())) <= iterations.SMALL


def test_loop_of_more_iterations_than_an_index_can_count() -> None:
    bounds = "%low to %high step %c64"
    around = f"""
  %low = arith.constant {1 - 2**63} : index
  %high = arith.constant {2**63 - 1} : index"""
    assert starts(run(on(loop(BODY, around, bounds), 3 * TILE), PlanOverlapCopies()))
