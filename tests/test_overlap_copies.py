"""Tests `plan-overlap-copies`: transfers keep the contents, and the plan still fits."""

from cProfile import Profile
from random import Random
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memref_programs import assert_same_contents
from memref_programs import run as run_memrefs
from modules import parse, run
from sampling import examples
from spilled_programs import fitted, function_of
from transfers import (
    described,
    is_refused,
    on,
    overlapped,
    with_transfers_elsewhere,
)
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import SSAValue, core
from xdsl.passes import ModulePass

from tensorplan.checking import operands
from tensorplan.checking.plan_check import check_plan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.memory import dma_start
from tensorplan.passes.plan import overlap_copies
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.plan.overlap_copies import PlanOverlapCopies
from tensorplan.passes.plan.strip_memory_spaces import PlanStripMemorySpaces

IN = """
func.func @f(%s: !s, %x: !t, %y: !t) {
  linalg.exp ins(%x : !t) outs(%y : !t)
  linalg.exp ins(%x : !t) outs(%y : !t)
  %a = memref.alloc() : !t
  "memref.copy"(%s, %a) : (!s, !t) -> ()
  linalg.exp ins(%a : !t) outs(%y : !t)
  memref.dealloc %a : !t
  func.return
}"""
FREE = 10**6
BESIDE = 2 * 256  # the bytes of the arguments


def test_a_copy_starts_before_the_operations_that_hide_it() -> None:
    assert overlapped(on(IN, FREE)) == [
        *("alloc a", "start s a", "exp x y", "exp x y", "wait s a"),
        *("exp a y", "dealloc a"),
    ]


def test_a_copy_starts_no_earlier_than_needed() -> None:
    """With a high bandwidth, a copy takes about as long as one operation."""
    assert overlapped(on(IN, FREE, bandwidth=16)) == [
        *("exp x y", "alloc a", "start s a", "exp x y", "wait s a"),
        *("exp a y", "dealloc a"),
    ]


def part_of(shape: str, sizes: str, strides: str) -> str:
    """Returns a program that copies a part of an argument to fast memory."""
    zeros = ", ".join("0" for _ in sizes.split(","))
    ones = zeros.replace("0", "1")
    elements = sizes.replace(", ", "x") + "xf32"
    part = f'memref<{elements}, strided<[{strides}]>, "slow">'
    target = f'memref<{elements}, "fast">'
    return f"""
    func.func @f(%x: memref<{shape}xf32, "slow">, %t: !t, %y: !t) {{
      %s = memref.subview %x[{zeros}] [{sizes}] [{ones}]
        : memref<{shape}xf32, "slow"> to {part}
      linalg.exp ins(%t : !t) outs(%y : !t)
      %a = memref.alloc() : {target}
      "memref.copy"(%s, %a) : ({part}, {target}) -> ()
      linalg.exp ins(%a : {target}) outs(%a : {target})
      func.return
    }}"""


@pytest.mark.parametrize(
    ("part", "strides"),
    [
        (part_of("16x32", "8, 8", "32, 1"), [32, 8]),
        (part_of("16x32", "8, 32", "32, 1"), []),
        (part_of("8x2", "8, 1", "2, 1"), [2, 1]),
        (part_of("4x4x32", "4, 4, 8", "128, 32, 1"), [32, 8]),
        (part_of("4x8x32", "4, 4, 32", "256, 32, 1"), [256, 128]),
        (part_of("4x8x32", "4, 4, 8", "256, 32, 1"), None),
    ],
    ids=["tile", "whole rows", "column", "in one batch", "in batches", "two strides"],
)
def test_rows_are_copied_at_strides(part: str, strides: list[int] | None) -> None:
    module = on(part, FREE)
    overlapped(module)
    result = run(module, PlanOverlapCopies())
    found = [dma for op in result.walk() if (dma := dma_start(op))]
    given = [[number_of(value) for value in dma.strides] for dma in found]
    assert given == ([] if strides is None else [strides])


def number_of(value: SSAValue) -> int:
    constant = value.owner
    assert isinstance(constant, arith.ConstantOp)
    assert isinstance(constant.value, IntegerAttr)
    return constant.value.value.data


def test_other_strides_are_refused() -> None:
    """It is unknown which elements a transfer at such strides moves."""
    planned = run(
        on(part_of("16x32", "8, 8", "32, 1"), FREE), PlanOverlapCopies(), PlanMemory()
    )
    check_plan(planned)
    (start,) = (op for op in planned.walk() if dma_start(op))
    *others, stride, row = start.operands
    start.operands = [*others, row, stride]
    with pytest.raises(LocatedError, match="moves elements at strides"):
        run(planned, PlanStripMemorySpaces())


OUT = """
func.func @f(%s: !s, %x: !t, %y: !t) {
  %a = memref.alloc() : !t
  linalg.exp ins(%x : !t) outs(%a : !t)
  "memref.copy"(%a, %s) : (!t, !s) -> ()
  memref.dealloc %a : !t
  linalg.exp ins(%x : !t) outs(%y : !t)
  LAST
  func.return
}"""


def test_an_evicted_buffer_is_freed_after_the_wait() -> None:
    assert overlapped(on(OUT.replace("LAST", ""), FREE)) == [
        *("alloc a", "exp x a", "start a s", "exp x y", "wait a s", "dealloc a"),
    ]


def test_the_wait_is_before_a_reader_of_the_target() -> None:
    last = """
      linalg.exp ins(%s : !s) outs(%y : !t)
      linalg.exp ins(%x : !t) outs(%y : !t)"""
    module = on(OUT.replace("LAST", last), FREE)
    assert overlapped(module)[4:7] == ["wait a s", "dealloc a", "exp s y"]


TIGHT = """
func.func @f(%s: !s, %x: !t, %y: !t) {
  %b = memref.alloc() : !t
  linalg.exp ins(%x : !t) outs(%b : !t)
  linalg.exp ins(%b : !t) outs(%y : !t)
  memref.dealloc %b : !t
  linalg.exp ins(%x : !t) outs(%y : !t)
  %a = memref.alloc() : !t
  "memref.copy"(%s, %a) : (!s, !t) -> ()
  linalg.exp ins(%a : !t) outs(%y : !t)
  memref.dealloc %a : !t
  func.return
}"""


@pytest.mark.parametrize(("bytes", "before"), [(256, 1), (512, 3)])
def test_a_copy_starts_early_only_where_there_is_room(bytes: int, before: int) -> None:
    """The copy starts while %b is live only if the memory has room for both buffers."""
    found = overlapped(on(TIGHT, BESIDE + bytes, bandwidth=0.1))
    start, wait = found.index("start s a"), found.index("wait s a")
    between = [text for text in found[start:wait] if text.startswith("exp")]
    assert len(between) == before
    assert found[start - 1] == "alloc a"


UNCHANGED = {
    "copies stop all else": on(IN, FREE, of="false"),
    "nothing is beside": on(
        IN.replace("linalg.exp ins(%x : !t) outs(%y : !t)", ""), FREE
    ),
    "there is another write of the source": on(
        IN.replace("%a = ", "linalg.exp ins(%x : !t) outs(%s : !s)\n%a = "), FREE
    ),
    "there is another write of the target": on(
        IN.replace('"memref', 'linalg.exp ins(%x : !t) outs(%a : !t)\n"memref'), FREE
    ),
    "sizes are symbolic": on(
        IN.replace("%s: !s", '%s: memref<?xf32, "slow">')
        .replace("%x", "%n: index, %x", 1)
        .replace("alloc() : !t", 'alloc(%n) : memref<?xf32, "fast">')
        .replace(
            "(%s, %a) : (!s, !t)",
            '(%s, %a) : (memref<?xf32, "slow">, memref<?xf32, "fast">)',
        )
        .replace("ins(%a : !t)", 'ins(%a : memref<?xf32, "fast">)')
        .replace("dealloc %a : !t", 'dealloc %a : memref<?xf32, "fast">'),
        FREE,
    ),
    "there are no elements": parse(str(on(IN, FREE)).replace("64x", "0x")),
    "elements have no size": on(
        """
        func.func @f(%s: memref<7xnone, "slow">, %a: memref<7xnone, "fast">,
            %x: !t, %y: !t) {
          linalg.exp ins(%x : !t) outs(%y : !t)
          "memref.copy"(%s, %a)
            : (memref<7xnone, "slow">, memref<7xnone, "fast">) -> ()
          linalg.exp ins(%x : !t) outs(%y : !t)
          func.return
        }""",
        FREE,
    ),
    "control flow hands it on": on(
        IN.replace(
            '"memref.copy"(%s, %a)',
            "%c = arith.constant true %b = arith.select %c, %a, %x : !t "
            '"memref.copy"(%s, %a)',
        ),
        FREE,
    ),
}


TOO_LARGE = """
func.func @f(%x: !t, %y: !t) {
  %b = memref.alloc() : !t
  linalg.exp ins(%x : !t) outs(%b : !t)
  linalg.exp ins(%b : !t) outs(%y : !t)
  memref.dealloc %b : !t
  %a = memref.alloc() : !s
  "memref.copy"(%x, %a) : (!t, !s) -> ()
  linalg.exp ins(%a : !s) outs(%y : !t)
  memref.dealloc %a : !s
  func.return
}"""


@pytest.mark.parametrize("bytes", [0, 256])
def test_a_function_whose_arena_does_not_fit_is_unchanged(
    bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The copy goes to the other memory, which has room."""
    module = on(TOO_LARGE, BESIDE + bytes)
    with caplog.at_level("INFO"):
        hidden = run(module, PlanOverlapCopies())
    if bytes:
        assert "start x a" in described(hidden)
        return
    assert str(hidden) == str(module)
    (record,) = caplog.records
    assert record.getMessage().endswith(
        "no copy overlaps with operations: the arena in fast takes 256 bytes, expected "
        "at most 0"
    )


@pytest.mark.parametrize("name", UNCHANGED)
def test_unchanged_programs(name: str) -> None:
    module = UNCHANGED[name]
    assert str(run(module, PlanOverlapCopies())) == str(module)
    run(module, PlanMemory())


def test_one_copy_at_a_time_between_two_memories() -> None:
    """A copy takes about as long as one of the two operations."""
    text = IN.replace("(%s: !s,", "(%s: !s, %r: !s,").replace(
        "linalg.exp ins(%a : !t)",
        '%b = memref.alloc() : !t "memref.copy"(%r, %b) : (!s, !t) -> ()\n'
        "linalg.add ins(%a, %b : !t, !t)",
    )
    found = overlapped(on(text, FREE, bandwidth=256 / 100))
    starts = sorted(found.index(text) for text in ("start s a", "start r b"))
    assert found[starts[0] + 1] == found[starts[1] + 1] == "exp x y"


def test_a_copy_back_waits_for_the_copy_out() -> None:
    text = """
    func.func @f(%s: !s, %x: !t, %y: !t) {
      %a = memref.alloc() : !t
      linalg.exp ins(%x : !t) outs(%a : !t)
      "memref.copy"(%a, %s) : (!t, !s) -> ()
      memref.dealloc %a : !t
      linalg.exp ins(%x : !t) outs(%y : !t)
      linalg.exp ins(%x : !t) outs(%y : !t)
      %b = memref.alloc() : !t
      "memref.copy"(%s, %b) : (!s, !t) -> ()
      linalg.exp ins(%b : !t) outs(%y : !t)
      memref.dealloc %b : !t
      func.return
    }"""
    found = overlapped(on(text, FREE, bandwidth=0.1))
    assert found.index("wait a s") < found.index("copy s b")
    assert found[found.index("wait a s") - 1] == "exp x y"


def leaving(count: int) -> ModuleOp:
    """Returns a program that evicts and prefetches `count` buffers with slow copies."""
    out = """
      %a{0} = memref.alloc() : !t
      linalg.exp ins(%x : !t) outs(%a{0} : !t)
      %s{0} = memref.alloc() : !s
      "memref.copy"(%a{0}, %s{0}) : (!t, !s) -> ()
      memref.dealloc %a{0} : !t"""
    back = """
      %b{0} = memref.alloc() : !t
      "memref.copy"(%s{0}, %b{0}) : (!s, !t) -> ()
      linalg.exp ins(%b{0} : !t) outs(%y : !t)
      memref.dealloc %b{0} : !t
      memref.dealloc %s{0} : !s"""
    lines = [text.format(number) for text in (out, back) for number in range(count)]
    text = "\n".join(lines)
    return on(
        f"func.func @f(%x: !t, %y: !t) {{{text}\nfunc.return }}", FREE, bandwidth=0.2
    )


def calls(
    module: ModuleOp, apply: ModulePass, of: ModuleType, name: str | None = None
) -> int:
    """Returns how often a pass calls functions of the file `of`: all of them, or those
    called `name`."""
    profile = Profile()
    profile.runcall(run, module, apply)
    return sum(
        entry.callcount
        for entry in profile.getstats()
        if not isinstance(entry.code, str)
        and entry.code.co_filename == of.__file__
        and name in (None, entry.code.co_name)
    )


def test_work_per_copy_does_not_grow_with_the_program() -> None:
    """Copies that no operation can hide move past operations that hide other copies."""
    few, many = (
        calls(leaving(count), PlanOverlapCopies(), overlap_copies) for count in (40, 80)
    )
    assert many < 2.2 * few


def into_one(count: int) -> ModuleOp:
    """Returns a program that copies `count` buffers to the same argument."""
    lines = """
      %a{0} = memref.alloc() : !t
      linalg.exp ins(%x : !t) outs(%a{0} : !t)
      "memref.copy"(%a{0}, %s) : (!t, !s) -> ()
      memref.dealloc %a{0} : !t"""
    text = "\n".join(map(lines.format, range(count)))
    return on(f"func.func @f(%x: !t, %s: !s) {{{text}\nfunc.return }}", FREE)


def test_work_per_copy_does_not_grow_with_copies_to_its_target() -> None:
    few, many = (
        calls(into_one(count), PlanOverlapCopies(), core, "find_ancestor_op_in_block")
        for count in (40, 80)
    )
    assert 0 < many < 2.2 * few


def test_the_proof_of_a_transfer_does_not_grow_with_the_program() -> None:
    """The proof visits only operations that use the transfer's memory or bytes."""
    few, many = (
        calls(run(leaving(count), PlanOverlapCopies()), PlanMemory(), operands)
        for count in (20, 40)
    )
    assert many < 2.2 * few


def test_the_wait_follows_the_last_operation_that_hides_the_copy() -> None:
    """The next operation takes no time, and an operation before the copy hides the
    rest."""
    text = """
    func.func @f(%s: !s, %x: !t, %y: !t) {
      %a = memref.alloc() : !t
      linalg.exp ins(%x : !t) outs(%a : !t)
      %b = memref.alloc() : !s
      linalg.exp ins(%x : !t) outs(%y : !t)
      "memref.copy"(%a, %b) : (!t, !s) -> ()
      memref.dealloc %a : !t
      linalg.exp ins(%x : !t) outs(%y : !t)
      %c = memref.alloc() : !t
      linalg.exp ins(%b : !s) outs(%y : !t)
      memref.dealloc %b : !s
      memref.dealloc %c : !t
      func.return
    }"""
    found = overlapped(on(text, FREE, bandwidth=0.1))
    assert found[found.index("start a b") + 1 :][:4] == [
        *("exp x y", "exp x y", "wait a b", "dealloc a"),
    ]


def asynchronous(module: ModuleOp) -> ModuleOp:
    """Returns the module for a target whose copies are asynchronous."""
    text = str(module).replace(
        '"bandwidth" = 1 : i64', '"bandwidth" = 1 : i64, "asynchronous" = true'
    )
    text = text.replace('["memref.copy"', '["memref.copy", "memref.dma_*"')
    assert '"asynchronous" = true' in text
    return parse(text.replace('"slow" = #dlti.target_device_spec<', BACK))


BACK = (
    '"slow" = #dlti.target_device_spec<"copies" = #dlti.map<"fast" = '
    '#dlti.map<"bandwidth" = 1 : i64, "asynchronous" = true>>, '
)


@pytest.mark.thorough
@settings(max_examples=examples(50))
@given(st.randoms(use_true_random=False))
def test_random_programs(random: Random) -> None:
    """Contents are equal whether transfers copy at their start or at their wait. They
    would differ if another buffer took the bytes in between."""
    module, spilled = fitted(random)
    spilled = asynchronous(spilled)
    hidden = run(spilled, PlanOverlapCopies())
    try:
        run(spilled, PlanMemory())
    except LocatedError:  # does not fit even with all buffers evicted
        assert str(hidden) == str(spilled)
        return
    planned = run(hidden, PlanMemory())
    for path in range(4):
        before = run_memrefs(function_of(module), path, 10**5)
        for each in (hidden, planned):
            for is_late in (False, True):
                after = run_memrefs(function_of(each), path, 10**5, is_late)
                assert_same_contents(before, after)
    assert str(run(hidden, PlanOverlapCopies())) == str(hidden)


@pytest.mark.parametrize("seed", [28, 50, 115])
def test_a_second_run_changes_nothing(seed: int) -> None:
    """Transfers, waits, and operations that contain transfers hide no copy."""
    _, spilled = fitted(Random(seed))
    hidden = run(asynchronous(spilled), PlanOverlapCopies())
    assert "memref.dma_start" in str(hidden)
    assert str(run(hidden, PlanOverlapCopies())) == str(hidden)


@pytest.mark.parametrize("seed", [29, 37, 48, 64])
def test_programs_that_fit_still_fit(seed: int) -> None:
    """The pass extends several live ranges, some of them in loops and branches."""
    _, spilled = fitted(Random(seed))
    spilled = asynchronous(spilled)
    run(spilled, PlanMemory())
    hidden = run(spilled, PlanOverlapCopies())
    assert any(isinstance(op, memref.DmaStartOp) for op in hidden.walk())
    run(hidden, PlanMemory())


def hiding() -> ModuleOp:
    """Returns a plan with transfers in both directions, some of them in a loop."""
    _, spilled = fitted(Random(19))
    module = run(asynchronous(spilled), PlanOverlapCopies())
    starts = [op for op in module.walk() if isinstance(op, memref.DmaStartOp)]
    assert len(starts) > 3
    assert any(op.parent is not function_of(module).body.block for op in starts)
    return run(module, PlanMemory())


def test_a_moved_transfer_is_rejected_or_harmless() -> None:
    planned = hiding()
    expected = [run_memrefs(function_of(planned), path, 10**5) for path in range(2)]
    refused = tried = 0
    for other in with_transfers_elsewhere(planned):
        tried += 1
        if is_refused(other):
            refused += 1
            continue
        for path, is_late in ((0, False), (1, True)):
            try:
                values = run_memrefs(function_of(other), path, 10**5, is_late)
            except (KeyError, AssertionError):  # a wait without a start: only a remark
                continue
            assert_same_contents(expected[path], values)
    assert refused > tried / 3
