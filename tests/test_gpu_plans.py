"""Tests the audit of XLA's plans for GPUs: asynchronous operations, scratch memory, and
parallel kernels."""

from collections.abc import Mapping

import pytest

from tensorplan.checking.foreign import Audit, audit
from tensorplan.frontends.plans import hlo, xla
from tensorplan.reporting.foreign import account
from tensorplan.support.foreign_plan import ForeignPlanError

A = "s32[16]{0}"
SIZE = 64

ASYNC = f"""
%f (p: s32[16]) -> s32[16] {{
  %p = {A} parameter(0)
  ROOT %n = {A} negate(%p)
}}

%wrapped (q: s32[16]) -> s32[16] {{
  %q = {A} parameter(0)
  %t = {A} fusion(%q), kind=kLoop, calls=%f
  ROOT %result = {A} fusion(%t), kind=kLoop, calls=%f
}}

ENTRY %main (x: s32[16]) -> s32[16] {{
  %x = {A} parameter(0)
  %a = {A} copy(%x)
  %c = {A} copy(%x)
  %s = (({A}), {A}, u32[]) async-start(%a), calls=%wrapped
  %u = (({A}), {A}, u32[]) async-update(%s)
  %b = {A} copy(%c)
  %d = {A} async-done(%u)
  ROOT %r = {A} add(%b, %d)
}}
"""
HOST = f"""
ENTRY %main (x: s32[16]) -> s32[16] {{
  %x = {A} parameter(0)
  %a = {A} copy(%x)
  %c = {A} copy(%x)
  %s = (s32[16]{{0:S(5)}}, {A}, u32[]) copy-start(%a)
  %b = {A} copy(%c)
  %d = s32[16]{{0:S(5)}} copy-done(%s)
  ROOT %r = {A} copy(%d)
}}
"""
SUM = f"""
ENTRY %main (x: s32[16]) -> s32[16] {{
  %x = {A} parameter(0)
  %a = {A} copy(%x)
  %c = {A} copy(%x)
  %s = {A} all-reduce-start(%a), replica_groups={{}}, to_apply=%add
  %b = {A} copy(%c)
  %d = {A} all-reduce-done(%s)
  ROOT %r = {A} add(%b, %d)
}}
"""
CALL = f"""
ENTRY %main (x: s32[16]) -> s32[16] {{
  %x = {A} parameter(0)
  %a = {A} copy(%x)
  %k = ({A}, s8[4096]{{0}}) custom-call(%a), custom_call_target="__cublas$lt$matmul"
  %b = {A} copy(%k#0)
  ROOT %r = {A} add(%a, %b)
}}
"""


def read(text: str, places: Mapping[str, int], sizes: Mapping[str, int] = {}) -> Audit:
    """The audit of a program whose values lie at the offsets `places` in one memory.
    The argument and values of the host have separate memories."""
    values = "".join(
        f" value: <1 {name} @0> (size={sizes.get(name, SIZE)},offset={at}): {A}\n"
        for name, at in places.items()
        if name != "host"
    )
    host = places.get("host")
    lines = (
        f"allocation 0: size {SIZE}, page 0, parameter 0, shape |s32[16]|:\n"
        f" value: <0 x @0> (size={SIZE},offset=0): {A}\n"
        f"allocation 1: size 8192, page 0, preallocated-temp:\n{values}"
    )
    if host is not None:
        lines += f"allocation 2: size {SIZE}, page 0, color 5, preallocated-temp:\n"
        lines += f" value: <9 s{{0}} @0> (size={SIZE},offset={host}): {A}\n"
    module = hlo.parse(f"HloModule m, is_scheduled=true\n{text}", "m.txt")
    return audit(xla.read(module, lines, "m-buffer-assignment.txt"))


def apart(*names: str) -> dict[str, int]:
    return {name: number * SIZE for number, name in enumerate(names)}


CASES = {
    "async": (ASYNC, apart("a", "c", "t", "result", "b", "r")),
    "host": (HOST, {**apart("a", "c", "b", "r"), "host": 0}),
    "sum": (SUM, apart("a", "c", "s", "b", "r")),
}


@pytest.mark.parametrize("case", CASES)
def test_plans_with_asynchronous_operations_are_proved(case: str) -> None:
    found = read(*CASES[case])
    assert not found.findings
    missing = {k: v for k, v in found.plan.not_understood.items() if "bytes" not in k}
    assert not missing


@pytest.mark.parametrize(
    ("case", "moved", "onto", "lost"),
    [
        ("async", "b", "a", ""),
        ("async", "b", "t", ""),
        ("async", "b", "result", ""),
        ("async", "t", "c", "c is read by b (copy)"),
        ("async", "result", "c", "c is read by b (copy)"),
        ("host", "b", "a", "a is read by d (copy-done)"),
        ("sum", "b", "a", "a is read by d (all-reduce-done)"),
        ("sum", "b", "s", "s is read by d (all-reduce-done)"),
        ("sum", "s", "c", "c is read by b (copy)"),
    ],
)
def test_values_overwritten_between_start_and_done_are_found(
    case: str, moved: str, onto: str, lost: str
) -> None:
    text, places = CASES[case]
    found = read(text, {**places, moved: places[onto]})
    assert found.verdict == "unsound"
    assert (lost or f"{onto} is read by d (async-done)") in found.findings[0].message


def test_asynchronous_operation_may_overwrite_its_operand() -> None:
    text, places = CASES["async"]
    assert read(text, {**places, "t": 0, "result": 0}).verdict != "unsound"
    text, places = CASES["sum"]
    assert read(text, {**places, "s": 0}).verdict != "unsound"


def test_partly_overwritten_operand_of_an_asynchronous_operation() -> None:
    """The operation may overwrite a part of its operand, but no other operation may
    overwrite the rest before it ends."""
    text, places = CASES["async"]
    half = {**places, "result": 0, "a": 1024, "t": 1024 + SIZE // 2}
    finding = read(text, {**half, "b": 1024 - SIZE // 2}).findings[-1]
    assert "a is read by d (async-done), but bytes [1024, 1056)" in finding.message


def test_host_memory_is_a_separate_memory() -> None:
    text, places = CASES["host"]
    plan = read(text, places).plan
    assert plan.memories["allocation 2"].kind == "host"
    assert account(plan).by_kind["host"] == SIZE
    assert account(plan).lost_by_copies == 0


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("copy(%c)", 'copy(%c), backend_config={"operation_queue_id":"2"}', "streams"),
        ("async-done(%u)", "recv-done(%c)", "recv-done"),
    ],
)
def test_operations_that_are_not_understood_are_counted(
    old: str, new: str, what: str
) -> None:
    text, places = CASES["async"]
    found = read(text.replace(old, new), {**places, "d": 1024})
    assert found.verdict == "not refuted"
    assert what in " ".join(found.plan.not_understood)


def test_asynchronous_operation_across_iterations() -> None:
    """The `-start` and the `-done` of an operation may be in different computations."""
    state = f"(({A}), {A}, u32[])"
    text = f"""{ASYNC[: ASYNC.index("ENTRY")]}
%body (o: ({state})) -> ({state}) {{
  %o = ({state}) parameter(0)
  %d = {A} async-done(%o#0)
  %s2 = {state} async-start(%d), calls=%wrapped2
  ROOT %l = ({state}) tuple(%s2)
}}

%wrapped2 (q2: s32[16]) -> s32[16] {{
  %q2 = {A} parameter(0)
  ROOT %result2 = {A} fusion(%q2), kind=kLoop, calls=%f
}}

%cond (i: ({state})) -> pred[] {{
  %i = ({state}) parameter(0)
  ROOT %k = pred[] custom-call(), custom_call_target="more"
}}

ENTRY %main (x: s32[16]) -> s32[16] {{
  %x = {A} parameter(0)
  %a = {A} copy(%x)
  %s = {state} async-start(%a), calls=%wrapped
  %b = ({state}) tuple(%s)
  %w = ({state}) while(%b), condition=%cond, body=%body
  ROOT %r = {A} async-done(%w#0)
}}
"""
    found = read(text, apart("a", "t", "result", "result2", "d", "k", "r"))
    assert found.verdict != "proved"
    assert found.plan.not_understood["asynchronous async-done"] == 2


def test_workspaces_count_as_scratch_memory() -> None:
    places = {"a": 0, "k{0}": 64, "k{1}": 256, "b": 128, "r": 192}
    found = read(CALL, places, {"k{1}": 4096})
    assert found.verdict == "proved"
    counted = account(found.plan)
    # With its scratch memory, this step needs more bytes than any other.
    scratch = counted.by_kind["scratch"]
    assert scratch == 4096 + 3 * SIZE - counted.live
    assert counted.bytes == counted.live + counted.lost_by_placement + scratch


@pytest.mark.parametrize(
    ("at", "message"),
    [
        (0, "k (custom-call) overwrites a before it has read it"),
        (64, "k writes k{0} and k{1} into the same bytes"),
    ],
)
def test_workspace_that_overlaps_other_values_is_found(at: int, message: str) -> None:
    places = {"a": 0, "k{0}": 64, "k{1}": at, "b": 128, "r": 192}
    found = read(CALL, places, {"k{1}": 4096})
    assert message in found.findings[0].message


def test_fusion_with_two_results_and_an_operand_in_place() -> None:
    """If a result overwrites an operand, the other result may read each element only
    when it computes the same element, because threads compute elements in parallel."""
    text = f"""
%f (p: s32[16]) -> (s32[16], s32[16]) {{
  %p = {A} parameter(0)
  %other = {A} BODY
  %new = {A} negate(%p)
  ROOT %both = ({A}, {A}) tuple(%new, %other)
}}

ENTRY %main (x: s32[16]) -> s32[16] {{
  %x = {A} parameter(0)
  %a = {A} copy(%x)
  %k = ({A}, {A}) fusion(%a), kind=kLoop, calls=%f
  ROOT %r = {A} add(%k#0, %k#1)
}}
"""
    places = {"a": 0, "k{0}": 0, "k{1}": 64, "r": 128}
    verdicts = {
        "abs(%p)": "",
        "reverse(%p), dimensions={0}": "another result reads 8 elements after they",
        "dot(%p, %p)": "dot reads many elements",
    }
    for body, message in verdicts.items():
        found = read(text.replace("BODY", body), places)
        assert [message in f.message for f in found.findings] == [True] * bool(message)


def test_results_of_a_sort_may_lie_only_in_their_own_operands() -> None:
    text = f"""
%f (p: s32[16], q: s32[16]) -> (s32[16], s32[16]) {{
  %p = {A} parameter(0)
  %q = {A} parameter(1)
  ROOT %both = ({A}, {A}) sort(%p, %q), dimensions={{0}}, to_apply=%less
}}

ENTRY %main (x: s32[16]) -> s32[16] {{
  %x = {A} parameter(0)
  %a = {A} copy(%x)
  %b = {A} copy(%x)
  %k = ({A}, {A}) fusion(%a, %b), kind=kCustom, calls=%f
  ROOT %r = {A} add(%k#0, %k#1)
}}
"""
    places = {"a": 0, "b": 64, "k{0}": 0, "k{1}": 64, "r": 128}
    assert read(text, places).verdict == "proved"
    assert read(text, {**places, "k{0}": 64, "k{1}": 0}).verdict == "suspicious"


def test_damaged_stack_frames_are_refused() -> None:
    text = (
        'HloModule m\n\nFileNames\n1 "a.py"\n\nStackFrames\n'
        "1 {file_location_id=4x parent_frame_id=1}\n"
    )
    with pytest.raises(ForeignPlanError, match=r"m\.txt: the stack frames cannot be"):
        hlo.parse(text, "m.txt")


def test_elements_of_tuples_are_named_by_index() -> None:
    text = f"""HloModule m, is_scheduled=true
ENTRY %main (x: (({A}, u8[]), u8[])) -> s32[16] {{
  %x = (({A}, u8[]), u8[]) parameter(0)
  ROOT %r = {A} copy(%x#0#0)
}}
"""
    entry = hlo.parse(text, "m.txt").entry
    assert [i.name for i in entry.instructions] == ["x", "x#0", "x#0#0", "r"]
    for wrong in ("%x#2", "%y#0", "%x#1#0"):
        with pytest.raises(ForeignPlanError, match=r"r cannot be read.*|m\.txt:4"):
            hlo.parse(text.replace("%x#0#0", wrong), "m.txt")


def test_steps_of_a_command_buffer() -> None:
    text = f"""
%buffer (p: s32[16], q: s32[16]) -> s32[16] {{
  %p = {A} parameter(0)
  %q = {A} parameter(1)
  %t = {A} copy(%p)
  ROOT %k = {A} add(%t, %q)
}}

ENTRY %main (x: s32[16]) -> s32[16] {{
  %x = {A} parameter(0)
  %a = {A} copy(%x)
  %b = {A} copy(%x)
  ROOT %r = {A} call(%a, %b), to_apply=%buffer
}}
"""
    places = apart("a", "b", "t", "k")
    assert read(text, places).verdict == "proved"
    [finding] = read(text, {**places, "t": places["b"]}).findings
    assert "b is read by k (add)" in finding.message


@pytest.mark.parametrize(
    ("start", "verdict"), [("%zero", "proved"), ("%first", "suspicious")]
)
def test_reduction_beside_a_result_in_place(start: str, verdict: str) -> None:
    """A reduction may read an operand that another result overwrites, but its initial
    value may not be an element of that operand."""
    text = f"""
%f (p: s32[16]) -> (s32[16], s32[]) {{
  %p = {A} parameter(0)
  %zero = s32[] constant(0)
  %last = s32[1]{{0}} slice(%p), slice={{[15:16]}}
  %first = s32[] bitcast(%last)
  %new = {A} negate(%p)
  %sum = s32[] reduce(%p, {start}), dimensions={{0}}, to_apply=%add
  ROOT %both = ({A}, s32[]) tuple(%new, %sum)
}}

ENTRY %main (x: s32[16]) -> s32[16] {{
  %x = {A} parameter(0)
  %a = {A} copy(%x)
  %k = ({A}, s32[]) fusion(%a), kind=kInput, calls=%f
  ROOT %r = {A} add(%k#0, %k#1)
}}
"""
    places = {"a": 0, "k{0}": 0, "k{1}": 64, "r": 128}
    assert read(text, places, {"k{1}": 4}).verdict == verdict
