"""Tests the audit of other compilers' plans: readers, verdicts, and reports.

Recorded plans must get their known verdicts, and plans with planted overlaps must be
refuted.
"""

import json
import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tensorplan.checking.foreign import audit
from tensorplan.frontends.plans import hlo, litert, xla
from tensorplan.frontends.plans.elements import element_width
from tensorplan.frontends.plans.reading import plan_files
from tensorplan.frontends.plans.reading import read as read_plan
from tensorplan.planning import Buffer, Problem, validate
from tensorplan.reporting.foreign import account, lives
from tensorplan.support.foreign_plan import (
    Branch,
    ForeignPlan,
    ForeignPlanError,
    Forwarded,
    Loop,
    Memory,
    Region,
    Step,
    Value,
    steps_in,
)
from tensorplan.tools.common import Source
from tensorplan.tools.views import foreign
from tensorplan.tools.views.model import PlanView, ShownBuffer, pool_of
from tensorplan.tools.views.snapshot import snapshot as write_snapshot

FOLDER = Path(__file__).parent / "foreign" / "xla"
GPU = FOLDER.with_name("xla_gpu")
PROGRAMS = {
    **{"shift": "unsound", "windows": "suspicious", "steps": "proved"},
    **{"scan": "proved", "attention": "proved", "transposed": "unsound"},  # on a GPU
}

VALUE = re.compile(r" value: <\d+ (\S+) .*@\d+> (\(size=(\d+),offset=(\d+)\))")


def texts(program: str) -> tuple[str, str, str]:
    """The HLO, the buffer assignment and the live ranges of a program, as texts."""
    folder = FOLDER if (FOLDER / f"jit_{program}.txt").exists() else GPU
    stem = folder / f"jit_{program}"
    ends = ("", "-buffer-assignment", "-live-range")
    paths = [Path(f"{stem}{end}.txt") for end in ends]
    parts = [path.read_text() if path.exists() else "" for path in paths]
    return parts[0], parts[1], parts[2]


def read(hlo_text: str, assignment: str) -> ForeignPlan:
    return xla.read(hlo.parse(hlo_text, "m.txt"), assignment, "m-buffer-assignment.txt")


@pytest.mark.parametrize("program", PROGRAMS)
def test_recorded_dumps(program: str) -> None:
    files = [*plan_files(str(FOLDER)), *plan_files(str(GPU))]
    [path] = [p for p in files if program in p.name]
    found = audit(xla.read_file(path))
    assert found.verdict == PROGRAMS[program]
    assert not found.plan.not_understood


def test_fault_of_issue_49176_is_found() -> None:
    [finding] = audit(read(*texts("shift")[:2])).findings
    assert finding.location == "record.py:21:11"
    assert finding.message == (
        "bitcast_dynamic-update-slice_fusion (fusion) overwrites copy.1 before it has "
        "read it, in bytes [0, 512) of allocation 0: 96 elements are read after they "
        "are overwritten"
    )


def live_ranges(text: str) -> dict[str, tuple[int, int]]:
    """XLA's live ranges: from the step that writes a value to the last one that reads
    it."""
    found = re.findall(r"^    (\S+?)(\{[\d,]*\}):(\d+)-(\d+)$", text, re.MULTILINE)
    return {
        name + (index if index != "{}" else ""): (int(begin), int(end))
        for name, index, begin, end in found
    }


def planted(assignment: str, victim: str, intruder: str) -> str | None:
    """The assignment with `intruder` moved onto `victim`, or None if that is not
    possible."""
    lines = assignment.splitlines()
    places = {m[1]: n for n, line in enumerate(lines) if (m := VALUE.match(line))}
    if not {victim, intruder} <= places.keys():
        return None
    onto, moved = (VALUE.match(lines[places[name]]) for name in (victim, intruder))
    assert onto
    assert moved
    if int(moved[3]) > int(onto[3]) or "constant" in intruder:
        return None
    new = moved[0].replace(moved[2], f"(size={moved[3]},offset={onto[4]})")
    lines[places[intruder]] = ""
    lines.insert(places[victim], new)
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("program", "least"), [("shift", 2), ("steps", 60), ("scan", 70), ("attention", 20)]
)
def test_planted_overlaps_in_xla_plans_are_refuted(program: str, least: int) -> None:
    text, assignment, ranges = texts(program)
    module = hlo.parse(text, "m.txt")
    live = live_ranges(ranges)
    count = 0
    for victim, intruder in permutations(live, 2):
        (begin, end), (written, _) = live[victim], live[intruder]
        if not begin < written < end or victim in assignment_mates(
            assignment, intruder
        ):
            continue
        if (overlapping := planted(assignment, victim, intruder)) is None:
            continue
        count += 1
        plan = xla.read(module, overlapping, "m-buffer-assignment.txt")
        assert audit(plan).verdict == "unsound", (victim, intruder)
    assert count >= least


def assignment_mates(assignment: str, name: str) -> Sequence[str]:
    """The values that already have exactly the bytes of the value `name`."""
    rows = [
        (memory, match[2], match[1])
        for memory in re.split(r"^allocation ", assignment, flags=re.MULTILINE)[1:]
        for line in memory.splitlines()
        if (match := VALUE.match(line))
    ]
    place = next((row[:2] for row in rows if row[2] == name), None)
    return [row[2] for row in rows if row[:2] == place]


BODY = """HloModule m, is_scheduled=true

%f (p: s32[4,4]) -> s32[4,4] {{
  %p = s32[4,4]{{1,0}} parameter(0)
  %i = s32[] constant(1)
  %z = s32[] constant(0)
{body}
}}

ENTRY %main (x: s32[4,4]) -> s32[4,4] {{
  %x = s32[4,4]{{1,0}} parameter(0)
  %y = s32[4,4]{{1,0}} copy(%x)
  ROOT %r = s32[4,4]{{1,0}} fusion(%y), kind=kLoop, calls=%f
}}
"""
IN_PLACE = """BufferAssignment:
allocation 0: size 64, parameter 0, shape |s32[4,4]| at ShapeIndex {}:
 value: <1 x @0> (size=64,offset=0): s32[4,4]{1,0}
allocation 1: size 64, output shape is |s32[4,4]|, maybe-live-out:
 value: <2 y @0> (size=64,offset=0): s32[4,4]{1,0}
 value: <3 r @0> (size=64,offset=0): s32[4,4]{1,0}
"""
A = "s32[4,4]{1,0}"
BODIES = {
    f"ROOT %r = {A} negate(%p)": "proved",
    f"%t = {A} transpose(%p), dimensions={{1,0}}|ROOT %r = {A} negate(%t)": "6",
    "%t = s32[4,4]{0,1} transpose(%p), dimensions={1,0}|"
    f"%b = {A} bitcast(%t)|ROOT %r = {A} negate(%b)": "proved",
    f"ROOT %r = {A} reverse(%p), dimensions={{0}}": "8",
    f"%s = s32[3,4]{{1,0}} slice(%p), slice={{[0:3], [0:4]}}|ROOT %r = {A} "
    "dynamic-update-slice(%p, %s, %i, %z)": "8",
    f"%s = s32[3,4]{{1,0}} slice(%p), slice={{[1:4], [0:4]}}|ROOT %r = {A} "
    "dynamic-update-slice(%p, %s, %z, %z)": "suspicious",
    f"%s = s32[1,4]{{1,0}} slice(%p), slice={{[0:1], [0:4]}}|ROOT %r = {A} "
    "dynamic-update-slice(%p, %s, %i, %z)": "proved",
    f"%s = s32[1,4]{{1,0}} dynamic-slice(%p, %i, %z), dynamic_slice_sizes={{1,4}}|"
    f"ROOT %r = {A} dynamic-update-slice(%p, %s, %i, %z)": "proved",
    "%s = s32[3,4]{1,0} slice(%p), slice={[0:3], [0:4]}|"
    f"ROOT %r = {A} pad(%s, %z), padding=1_0x0_0": "12",
    "%s = s32[3,4]{1,0} slice(%p), slice={[1:4], [0:4]}|"
    f"ROOT %r = {A} pad(%s, %z), padding=1_0x0_0": "proved",
    "%s = s32[2,4]{1,0} slice(%p), slice={[2:4], [0:4]}|"
    f"ROOT %r = {A} concatenate(%s, %s), dimensions={{0}}": "suspicious",
    "%s = s32[4,1]{1,0} slice(%p), slice={[0:4], [0:1]}|%b = s32[4]{0} bitcast(%s)|"
    f"ROOT %r = {A} broadcast(%b), dimensions={{0}}": "12",
    f"ROOT %r = {A} dot(%p, %p), lhs_contracting_dims={{1}}, "
    "rhs_contracting_dims={0}": "dot reads many elements for each that it writes",
    f"ROOT %r = {A} gather(%p, %p), offset_dims={{1}}": "suspicious",
}


@pytest.mark.parametrize("body", BODIES)
def test_in_place_fusions(body: str) -> None:
    text = "\n".join(f"  {line}" for line in body.split("|"))
    found = audit(read(BODY.format(body=text), IN_PLACE))
    expected = BODIES[body]
    if expected in ("proved", "suspicious"):
        assert found.verdict == expected
    else:
        assert found.verdict == "unsound"
        assert f": {expected}" in found.findings[0].message


def value(name: str, offset: int, memory: str = "arena") -> Value:
    return Value(name, Region(memory, offset, 4))


def plan(*steps: Step | Forwarded | Loop | Branch, kept: str = "") -> ForeignPlan:
    x, y = value("x", 0), value("y", 4)
    held = [v for v in (x, y) if v.name in kept]
    return ForeignPlan("p", {"arena": Memory(16, "temporary")}, steps, [x, y], held)


def write(name: str, offset: int, *reads: Value) -> Step:
    return Step(f"make {name}", "op", reads, [value(name, offset)])


def messages(*steps: Step | Forwarded | Loop | Branch, kept: str = "") -> list[str]:
    return [finding.message for finding in audit(plan(*steps, kept=kept)).findings]


def test_values_that_are_overwritten_too_early_are_found() -> None:
    x = value("x", 0)
    assert messages(write("a", 0), write("b", 8, x)) == [
        "x is read by make b (op), but bytes [0, 4) of arena hold a, which make a wrote"
    ]
    assert messages(write("a", 2), kept="x") == [
        "x is lost before the end, but bytes [0, 4) of arena hold a, which make a wrote"
    ]
    assert messages(write("b", 8, value("z", 12))) == [
        "z is read by make b (op), but bytes [12, 16) of arena hold nothing yet"
    ]
    assert messages(write("a", 14)) == [
        "a is in bytes [14, 18) of arena, but arena has 16 bytes"
    ]


def test_results_of_a_step_must_not_overlap() -> None:
    [message] = messages(Step("s", "op", (), [value("a", 8), value("b", 10)]))
    assert "writes a and b into the same bytes, bytes [10, 12)" in message


def test_values_overwritten_in_a_loop_are_lost() -> None:
    x, y = value("x", 0), value("y", 4)
    carried, new = value("carried", 0), value("new", 0)

    def loop(*body: Step, after: Value = new) -> Loop:
        entering = [Forwarded(x, carried)]
        back, out = Forwarded(after, carried), Forwarded(carried, value("out", 0))
        return Loop("loop", [], body, entering, [back], [out])

    in_place = Step("add", "op", [carried], [new], access=lambda *_: None)
    assert not messages(loop(in_place), write("b", 8, y))
    assert messages(loop(in_place, write("t", 4)), write("b", 8, y))
    assert messages(loop(in_place), write("b", 8, x))
    # Only the second iteration reads an overwritten value.
    assert messages(loop(write("t", 8, carried), write("u", 0, y), after=carried))


def test_value_overwritten_in_one_branch_is_lost() -> None:
    y = value("y", 4)
    assert not messages(Branch("b", [[write("a", 0)], []]), write("c", 8, y))
    assert messages(Branch("b", [[write("a", 4)], []]), write("c", 8, y))


def test_bytes_lost_by_the_order() -> None:
    """Two small values are computed from one large value each. In a better order, only
    one large value is live at a time."""
    large = [Value(name, Region("arena", n * 100, 100)) for n, name in enumerate("ab")]
    small = [Value(name, Region("arena", 200 + n, 1)) for n, name in enumerate("cd")]
    steps = [
        *(Step(f"make {v.name}", "op", (), [v]) for v in large),
        *(
            Step(f"make {new.name}", "op", [old], [new])
            for old, new in zip(large, small, strict=True)
        ),
    ]
    memories = {"arena": Memory(210, "temporary")}
    found = account(ForeignPlan("p", memories, steps, (), small))
    assert (found.bytes, found.live, found.step) == (210, 201, "make c")
    assert (found.lost_by_placement, found.lost_by_order) == (9, 99)
    assert [live.value.name for live in found.at_peak] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("overwritten", "kept", "saved"),
    [
        ("", "", 99),  # neither x nor its copy is overwritten
        ("copy", "", 0),  # x is read later
        ("x", "", 0),
        ("copy", "x copy", 0),  # both are kept
        ("", "copy", 100),
    ],
)
def test_bytes_lost_by_copies(overwritten: str, kept: str, saved: int) -> None:
    names = ("x", "copy", "new", "last")
    x, copy, new, last = (
        Value(name, Region("arena", n * 100, 100 if n < 3 else 1))
        for n, name in enumerate(names)
    )
    if overwritten:
        at = {"x": x, "copy": copy}[overwritten].region
        new = new._replace(region=at)
    other = copy if overwritten == "x" else x
    steps = [
        Step("make", "op", (), [x]),
        Step("copy", "copy", [x], [copy], is_copy=True),
        Step("new", "op", [x if overwritten == "x" else copy], [new]),
        Step("last", "op", [other, new], [last]),
    ]
    memories = {"arena": Memory(400, "temporary")}
    values = [v for v in (x, copy, last) if v.name in (kept or "last").split()]
    found = account(ForeignPlan("p", memories, steps, (), values))
    assert found.lost_by_copies == saved
    assert found.best_aliased is not None
    parts = found.lost_by_placement, found.lost_by_order, found.lost_by_copies
    assert found.bytes - 50 == sum(n or 0 for n in parts) + found.lost_by_program(50)


@pytest.mark.parametrize("reads", [True, False])
def test_values_of_size_zero_need_no_writer(reads: bool) -> None:
    empty, x = Value("empty", Region("arena", 8, 0)), value("x", 0)
    steps = [write("a", 4, x, *([empty] if reads else []))]
    memories = {"arena": Memory(8, "temporary")}
    made = ForeignPlan("p", memories, steps, [x], [empty])
    assert audit(made).verdict == "proved"
    assert account(made).live == 8


@pytest.mark.parametrize("program", ["steps", "windows"])
def test_views_of_plans_that_are_not_refuted_have_no_overlaps(program: str) -> None:
    """The validator, which uses live ranges, accepts plans that the audit, which does
    not use them, does not refute."""
    path = FOLDER / f"jit_{program}-buffer-assignment.txt"
    for pool in foreign.view(Source(str(path), b"")).pools:
        assert not validate(pool.problem, [b.offset for b in pool.buffers])


def snapshot(*events: tuple[str, int, int], blocks: Sequence[object] = ()) -> bytes:
    """A snapshot of one device with one segment of 256 bytes at address 1024."""
    stack = [
        {"filename": "/x/site-packages/torch/nn/linear.py", "name": "f", "line": 1},
        {"filename": "train.py", "name": "forward", "line": 7},
    ]
    trace = [
        {"action": action, "addr": address, "size": size, "frames": stack}
        for action, address, size in events
    ]
    segment = {"device": 0, "address": 1024, "total_size": 256, "blocks": blocks}
    return pickle.dumps({"segments": [segment], "device_traces": [trace]})


def read_snapshot(folder: Path, data: bytes) -> ForeignPlan:
    path = folder / "s.pickle"
    path.write_bytes(data)
    return read_plan(path)


def test_pytorch_snapshot(tmp_path: Path) -> None:
    events = [("alloc", 1024, 64), ("alloc", 1152, 64), ("free_completed", 1024, 64)]
    data = snapshot(*events, ("alloc", 1024, 32), ("free_requested", 1152, 64))
    found = account(plan := read_snapshot(tmp_path, data))
    assert audit(plan).verdict == "proved"
    assert (found.bytes, found.live, found.lost_by_order) == (256, 128, None)
    assert found.groups == [(128, 2, "", "forward", "train.py:7")]


def test_pytorch_snapshot_that_starts_late(tmp_path: Path) -> None:
    """Blocks that the trace frees or keeps without allocating them existed before."""
    rest = {"size": 64, "state": "active_allocated"}
    free = {"size": 192, "state": "inactive"}
    data = snapshot(("free_completed", 1152, 64), blocks=[rest, free])
    plan = read_snapshot(tmp_path, data)
    assert [v.region.offset for v in plan.given] == [128, 0]
    assert [v.region.offset for v in plan.kept] == [0]
    assert account(plan).live == 128


def test_overlapping_blocks_are_found(tmp_path: Path) -> None:
    data = snapshot(("alloc", 1024, 64), ("alloc", 1056, 64))
    [finding] = audit(read_snapshot(tmp_path, data)).findings
    assert "block 0 is lost before the end" in finding.message


def test_snapshot_that_plan_view_writes(tmp_path: Path) -> None:
    buffers = [Buffer("a", 64, 0, 2), Buffer("b", 32, 1, 3), Buffer("c", 64, 2, 4)]
    placed = [ShownBuffer(b, at) for b, at in zip(buffers, (0, 64, 0), strict=True)]
    written = write_snapshot([PlanView("p", [pool_of("cpu", placed)])])
    found = account(read_snapshot(tmp_path, written))
    assert (found.bytes, found.live) == (96, 96)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"text",
        pickle.dumps([1]),
        pickle.dumps(print),
        snapshot(("alloc", 1, 1))[:90],
    ],
)
def test_invalid_snapshots_are_refused(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(ForeignPlanError):
        read_snapshot(tmp_path, data)


def test_executorch_module_buffers_keep_their_bytes() -> None:
    """`k.index_copy_(0, i, l(x)); k.mul_(2); return k.sum(0)`, with a buffer `k`."""
    plan = read_plan(PTE.with_name("state.pte"))
    assert audit(plan).verdict == "proved"
    [state] = [value for value in plan.given if value in plan.kept]
    assert state.type == "16x8xf32"


def test_executorch_instructions_after_a_jump_are_not_understood() -> None:
    """`torch.cond(x.sum() > 0, lambda x: x * 2 + 1, torch.relu, (x,))`."""
    plan = read_plan(PTE.with_name("branch.pte"))
    assert audit(plan).verdict == "not refuted"
    assert list(plan.not_understood) == ["instructions from the first jump on"]
    locations = [step.location for step in plan.steps if isinstance(step, Step)]
    assert locations == ["branches/net.py:21"] * 2


PTE = FOLDER.parent / "executorch" / "net.pte"
"""ExecuTorch 1.5.1's program of this module, with weights of 8x16 and 16x8:

    h = relu(a(x)); k = cat([h[:, :8], h[:, 8:] * 2], 1); m, _ = max(k, 1)
    return b(k).view(-1) + m.sum(), softmax(h, 1)
"""


def moved(plan: ForeignPlan, name: str, region: Region) -> ForeignPlan:
    """The plan with value `name` in `region`."""

    def put(values: Sequence[Value]) -> list[Value]:
        return [v._replace(region=region) if v.name == name else v for v in values]

    steps = [
        replace(item, reads=put(item.reads), writes=put(item.writes))
        if isinstance(item, Step)
        else item
        for item in plan.steps
    ]
    return replace(plan, steps=steps, given=put(plan.given), kept=put(plan.kept))


def test_executorch_program() -> None:
    plan = read_plan(PTE)
    assert audit(plan).verdict == "proved"
    assert not plan.not_understood
    views = [item for item in plan.steps if isinstance(item, Forwarded)]
    assert [(v.old.type, v.new.type) for v in views] == [("4x8xf32", "32xf32")]
    [both] = [s for s in plan.steps if isinstance(s, Step) and len(s.writes) == 2]
    assert both.operation == "aten::max.dim_max"
    largest = account(plan).groups[0]
    assert (largest.type, largest.origin) == ("16x8xf32", "aten::permute_copy.out")


@pytest.mark.parametrize(("system", "least"), [("pte", 15), ("tflite", 8), ("py", 8)])
def test_planted_overlaps_in_other_plans_are_refuted(
    system: str, least: int, tmp_path: Path
) -> None:
    paths = {"pte": PTE, "tflite": TFLITE, "py": inductor_code(tmp_path)}
    plan = read_plan(paths[system])
    viewed = {v.name for i in plan.steps if isinstance(i, Forwarded) for v in i}
    live = [v for v in lives(plan) if v.value.name not in viewed]
    count = 0
    for victim, intruder in permutations(live, 2):
        if victim.lower < intruder.lower < victim.upper - 1:
            count += 1
            onto = victim.value.region._replace(size=intruder.value.region.size)
            assert audit(moved(plan, intruder.value.name, onto)).verdict == "unsound"
    assert count >= least


TFLITE = FOLDER.parent / "litert" / "net.tflite"
"""LiteRT 2.3's model of a module like that of ExecuTorch, with `tanh` in place."""


def inductor_code(folder: Path, old: str = "", new: str = "") -> Path:
    """A file with the code that PyTorch 2.13's Inductor wrote, with pools, for a module
    like that of ExecuTorch. The first `old` in it is replaced by `new`."""
    text = (FOLDER.parent / "inductor" / "net.txt").read_text()
    assert old in text
    path = folder / "net.output_code.py"
    path.write_text(text.replace(old, new, 1))
    return path


def test_litert_model() -> None:
    plan = read_plan(TFLITE)
    found = audit(plan)
    assert (found.verdict, found.shared) == ("not refuted", 2)
    assert plan.not_understood == {
        "scratch tensors of kernels": 3,
        "tensors without an address": 1,
    }
    [view] = [item for item in plan.steps if isinstance(item, Forwarded)]
    assert (view.old.type, view.new.type) == ("4x8xf32", "32xf32")
    account_ = account(plan)
    assert (account_.bytes, account_.live, account_.lost_by_placement) == (
        900,
        768,
        128,
    )
    assert account_.by_kind == {"temporary": 896, "scratch": 4}


def test_litert_model_for_microcontrollers() -> None:
    """`micro.tflite` is `net.tflite` with LiteRT's offsets in the model's metadata."""
    micro, plan = (read_plan(TFLITE.with_name(f"{n}.tflite")) for n in ("micro", "net"))
    assert [s for s in map(str, micro.given)] == [s for s in map(str, plan.given)]
    assert audit(micro).shared == 2
    assert list(micro.not_understood) == ["tensors without an address"]


def test_litert_model_needs_addresses(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(TFLITE.read_bytes())
    with pytest.raises(ForeignPlanError, match=r"net\.tflite\.json is missing"):
        read_plan(path)
    for text in ("[[1]]", "[[0, 1.5, 3]]", "[[0, 1, -3]]", "[" * 100_000):
        path.with_name("net.tflite.json").write_text(text)
        with pytest.raises(ForeignPlanError, match="damaged"):
            read_plan(path)
    path.with_name("net.tflite.json").write_text("[]")
    with pytest.raises(ForeignPlanError, match="no tensor has an address"):
        read_plan(path)


def test_addresses_of_an_interpreter(tmp_path: Path) -> None:
    """Addresses are not written for scalars, which LiteRT returns as copies, and for
    tensors without data, for which it raises an error."""

    class Interpreter:
        arrays: Mapping[int, np.ndarray] = {0: np.zeros((2, 3)), 2: np.zeros(())}

        def get_tensor_details(self) -> list[dict[str, object]]:
            shapes = [[2, 3], [4], []]
            return [{"index": n, "shape": shape} for n, shape in enumerate(shapes)]

        def tensor(self, number: int) -> Callable[[], np.ndarray]:
            if number == 1:
                raise ValueError("Tensor data is null")
            return lambda: self.arrays[number]

    litert.write_addresses(Interpreter(), str(tmp_path / "m.tflite"))
    rows = json.loads((tmp_path / "m.tflite.json").read_text())
    assert rows == [[0, Interpreter.arrays[0].ctypes.data, 48]]


def test_inductor_code(tmp_path: Path) -> None:
    plan = read_plan(inductor_code(tmp_path))
    found = audit(plan)
    assert (found.verdict, found.shared) == ("proved", 1)
    assert not plan.not_understood
    last = steps_in(plan.steps)[-1]
    assert last.operation == "aten._softmax, aten.mm"
    assert [value.name for value in last.reads] == ["buf13", "buf14"]
    assert [value.name for value in plan.kept[:2]] == ["buf8", "buf15"]


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        # buf12 overlaps buf3, which the same kernel reads
        ("buf12 = alloc_from_pool(pool2, 512", "buf12 = alloc_from_pool(pool2, 0", "s"),
        (
            "buf14 = alloc_from_pool(pool2, 768",
            "buf14 = alloc_from_pool(pool2, 256",
            "u",
        ),
        # buf6 is read after buf8 was written into its bytes
        (
            "out=buf15)",
            "out=buf15)\n        extern_kernels.mm(buf6, buf6, out=buf15)",
            "u",
        ),
        # buf8 is not overwritten
        (
            "out=buf15)",
            "out=buf15)\n        extern_kernels.mm(buf8, buf8, out=buf15)",
            "p",
        ),
        ("del pool2, buf0, buf3", "del buf0", "p"),
    ],
)
def test_edited_inductor_code(old: str, new: str, verdict: str, tmp_path: Path) -> None:
    found = audit(read_plan(inductor_code(tmp_path, old, new)))
    assert found.verdict.startswith(verdict)


NO_CODE = (
    *("", "x = (", "def call(args):\n  x = y\n", "\0"),
    "def call(args):\n  pass\nx = rand_strided((1,), (1,))\n",
)


@pytest.mark.parametrize("text", NO_CODE)
def test_files_without_inductor_code_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "output_code.py"
    path.write_text(text)
    with pytest.raises(ForeignPlanError, match="not Inductor's output code"):
        read_plan(path)


@pytest.mark.parametrize("program", [PTE, TFLITE])
def test_damaged_flatbuffers(program: Path, tmp_path: Path) -> None:
    data = program.read_bytes()
    path = tmp_path / program.name
    beside = (
        program.with_name("net.tflite.json").read_bytes() if "tfl" in path.name else b""
    )
    path.with_name("net.tflite.json").write_bytes(beside)
    for seed in range(60):
        random = Random(seed)
        damaged = bytearray(data[: random.randrange(len(data)) if seed % 2 else None])
        for _ in range(random.randint(1, 20)):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        path.write_bytes(damaged)
        with suppress(ForeignPlanError):
            audit(read_plan(path))


@pytest.mark.parametrize("program", PROGRAMS)
def test_damaged_dumps_are_refused(program: str) -> None:
    module, assignment, _ = texts(program)
    for seed in range(20):
        random = Random(seed)
        parts = [module, assignment]
        number = random.randrange(2)
        at = random.randrange(len(parts[number]))
        length = random.choice([1, 5, 80, 4000])
        parts[number] = parts[number][:at] + parts[number][at + length :]
        with suppress(ForeignPlanError):
            audit(read(parts[0], parts[1]))


def test_audit_of_csv_plans_agrees_with_the_validator(tmp_path: Path) -> None:
    """The audit proves a CSV plan if and only if the validator accepts it, also if
    buffers live for one step."""
    random, path = Random(7), tmp_path / "plan.csv"
    verdicts = set[str]()
    for _ in range(60):
        starts = [random.randrange(4) for _ in range(3)]
        live = [(start, start + random.randint(1, 3)) for start in starts]
        offsets = [random.randrange(0, 24, 8) for _ in live]
        rows = [f"{n},{a},{b},8,{offsets[n]}" for n, (a, b) in enumerate(live)]
        path.write_text("\n".join(["id,lower,upper,size,offset", *rows, ""]))
        problem = Problem([Buffer(str(n), 8, a, b) for n, (a, b) in enumerate(live)])
        verdict = audit(read_plan(path)).verdict
        assert (verdict == "proved") == (not validate(problem, offsets)), rows
        verdicts.add(verdict)
    assert verdicts == {"proved", "unsound"}


@pytest.mark.parametrize(
    ("dtype", "width"),
    {
        **dict.fromkeys(("bool", "pred", "u8", "float8_e5m2", "f8E4M3FN"), 1),
        **dict.fromkeys(("bf16", "bfloat16", "s16"), 2),
        **{"f32": 4, "int64": 8, "complex64": 8, "c128": 16},
        **dict.fromkeys(("s4", "f4e2m1fn", "token", "string", "f320", ""), None),
    }.items(),
)
def test_element_widths(dtype: str, width: int | None) -> None:
    assert element_width(dtype) == width
