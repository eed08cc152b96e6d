"""Tests `plan-view`: its input files, its errors, its drawings, and its page in a
browser."""

import json
import math
import pickle
import pickletools
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from unittest.mock import patch
from xml.etree import ElementTree

import pytest
from browser import Browser, available, browser
from hypothesis import given
from hypothesis import strategies as st

import tensorplan
from tensorplan.planning import Buffer
from tensorplan.reporting.wording import readable
from tensorplan.tools.common import Source, read_source
from tensorplan.tools.plan_opt import main as plan_opt
from tensorplan.tools.plan_view import main
from tensorplan.tools.views import page, snapshot, svg, terminal, trace
from tensorplan.tools.views.groups import (
    PALETTE,
    groupings,
    layer_of,
    line_of,
    operation_of,
)
from tensorplan.tools.views.model import (
    HeldBuffer,
    PlanView,
    PoolView,
    ShownBuffer,
    pool_of,
)
from tensorplan.tools.views.reading import Reader

MODELS = Path(__file__).parent / "models"
DOCUMENTATION = Path(__file__).parent.parent / "docs" / "plan-view.md"
CHAIN = "id,lower,upper,size,offset\na,0,2,64,0\nb,1,3,32,64\nc,2,4,64,0\n"
KEPT = """
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64xf32> {
  %a = tgraph.exponential %x : tensor<64x64xf32>
  %b = tgraph.dot_general %a, %w {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  %c = tgraph.dot_general %b, %w {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  %d = tgraph.dot_general %c, %w {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  %e = tgraph.multiply %d, %a : tensor<64x64xf32>
  %f = tgraph.reduce %e {kind = "add", dimensions = array<i64: 1>}
    : (tensor<64x64xf32>) -> tensor<64xf32>
  func.return %f : tensor<64xf32>
}
"""
HOSTILE = "</script><script>document.title='gone'</script>\"'&<b>\x1b[31m"
IR = """\
func.func @f(%a: memref<4x4xf32, "cpu:0">) {
  %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<192xi8, "cpu:0">
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %x = memref.view %arena[%c0][] : memref<192xi8, "cpu:0"> to memref<4x4xf32, "cpu:0">
  memref.copy %a, %x : memref<4x4xf32, "cpu:0"> to memref<4x4xf32, "cpu:0">
  %y = memref.view %arena[%c64][] : memref<192xi8, "cpu:0"> to memref<4x4xf32, "cpu:0">
  memref.copy %x, %y : memref<4x4xf32, "cpu:0"> to memref<4x4xf32, "cpu:0">
  %z = memref.view %arena[%c128][] : memref<192xi8, "cpu:0"> to memref<4x4xf32, "cpu:0">
  memref.copy %y, %z : memref<4x4xf32, "cpu:0"> to memref<4x4xf32, "cpu:0">
  memref.copy %a, %x : memref<4x4xf32, "cpu:0"> to memref<4x4xf32, "cpu:0">
  memref.copy %x, %a : memref<4x4xf32, "cpu:0"> to memref<4x4xf32, "cpu:0">
  memref.copy %z, %a : memref<4x4xf32, "cpu:0"> to memref<4x4xf32, "cpu:0">
  memref.dealloc %arena : memref<192xi8, "cpu:0">
  func.return
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("chain.csv").write_text(CHAIN)
    Path("f.mlir").write_text(IR)
    return tmp_path


def read(file: str, *strategies: str) -> list[PlanView]:
    return Reader(strategies).read(read_source(file))


# Reading plans.


def test_plan_from_ir_has_names_locations_and_lines():
    (plan,) = read("f.mlir")
    (pool,) = plan.pools
    assert (pool.name, pool.size) == ("cpu:0", 192)
    x, y, _ = pool.buffers
    # %x is dead between its two live ranges, so others could use its bytes there.
    assert x.buffer == Buffer("%x", 64, 5, 12, 64, [(8, 10)])
    assert (x.offset, x.op, x.location) == (0, "memref.copy", "f.mlir:7:3")
    lines = [plan.text[line - 1].strip() for line in y.lines]
    assert lines[0].startswith("%y = memref.view %arena[%c64]")
    assert lines[1].startswith('"memref.copy"(%x, %y)')
    assert lines[2].startswith('"memref.copy"(%y, %z)')
    assert pool.curve[0] == (5, 64)
    assert max(live for _, live in pool.curve) == 128


def planned(model: str) -> None:
    """Plans a model; writes planned.mlir and report.json."""
    command = [str(MODELS / model), "-p", "plan-pipeline", "-o", "planned.mlir"]
    assert plan_opt([*command, "--report", "report.json"]) == 0


def test_report_and_ir_give_the_same_plan():
    planned("mlp_train_adam.mlir")
    (of_ir,), (of_report,) = read("planned.mlir"), read("report.json")
    (ir,), (report,) = of_ir.pools, of_report.pools
    assert (report.name, report.size) == (ir.name, ir.size)
    assert len(ir.buffers) > 20
    for a, b in zip(ir.buffers, report.buffers, strict=True):
        assert (b.buffer, b.offset, b.op) == (a.buffer, a.offset, a.op)
        assert re.fullmatch(r".*mlp_train_adam.mlir:\d+:\d+", b.location)
        assert a.location.startswith("planned.mlir:")


def test_fusions_list_their_operations():
    planned("resnet18_infer.mlir")
    (plan,) = read("planned.mlir")
    ops = [placed.op for placed in plan.pools[0].buffers]
    group = "tgraph.fusion (convolution, subtract, multiply, add, maximum)"
    assert group in ops


def test_each_function_and_device_has_a_pool():
    second = IR.replace("@f", "@g").replace("cpu:0", "gpu:1")
    Path("f.mlir").write_text(IR + second)
    (plan,) = read("f.mlir")
    assert [pool.name for pool in plan.pools] == ["@f cpu:0", "@g gpu:1"]


def test_buffers_in_regions():
    # Only one of the branches runs, so buffers of both may have the same bytes.
    type = 'memref<4x4xf32, "cpu:0">'
    branch = """\
    %{0} = memref.view %arena[%c0][] : memref<64xi8, "cpu:0"> to {1}
    memref.copy %a, %{0} : {1} to {1}
    "test.read"(%{0}) : ({1}) -> ()
    scf.yield
"""
    Path("f.mlir").write_text(
        f"func.func @f(%a: {type}, %p: i1) {{\n"
        '  %arena = memref.alloc() {tgraph.arena} : memref<64xi8, "cpu:0">\n'
        "  %c0 = arith.constant 0 : index\n"
        "  scf.if %p {\n"
        + branch.format("x", type)
        + "  } else {\n"
        + branch.format("y", type)
        + "  }\n  func.return\n}\n"
    )
    (plan,) = read("f.mlir")
    x, y = plan.pools[0].buffers
    assert (x.offset, y.offset) == (0, 0)
    assert (x.location, y.location) == ("f.mlir:6:5", "f.mlir:11:5")
    assert not x.buffer.overlaps(y.buffer)
    assert ["test.read" in plan.text[line - 1] for line in x.lines] == [0, 0, 1]


def test_csv_without_offsets_is_planned():
    (plan,) = read("chain.csv")
    assert [b.offset for b in plan.pools[0].buffers] == [0, 64, 0]
    Path("free.csv").write_text(CHAIN.replace("64,0\n", "64,\n"))
    (plan,) = read("free.csv")
    assert plan.title == "free.csv, auto"
    a, b, c = (placed.offset for placed in plan.pools[0].buffers)
    assert b == 64  # as given in the file
    assert (a, c) == (0, 0)


def test_comparison():
    plans = read("chain.csv", "naive", "greedy-by-size")
    assert [plan.title for plan in plans] == [
        "chain.csv",
        "chain.csv, naive",
        "chain.csv, greedy-by-size",
    ]
    assert [plan.pools[0].size for plan in plans] == [96, 160, 96]
    own, other = read("f.mlir", "naive")
    assert own.text == other.text  # both plans show the same program


def test_file_kind_follows_from_name_or_content():
    planned("mlp_infer.mlir")
    for file in ("planned.mlir", "report.json", "chain.csv"):
        data = Path(file).read_bytes()
        (plan,) = Reader().read(Source("<stdin>", data))
        assert plan.pools[0].buffers
    (plan,) = Reader().read(Source("x.txt", b"\xef\xbb\xbf" + CHAIN.encode()))
    assert len(plan.pools[0].buffers) == 3


def test_comparison_includes_the_default_strategy():
    Path("free.csv").write_text("id,lower,upper,size\na,0,2,64\nb,1,3,32\n")
    titles = [plan.title for plan in read("free.csv", "naive")]
    assert titles == ["free.csv, auto", "free.csv, naive"]


TRAINING = """
func.func @main(%w: !tgraph.variable<tensor<64x64xf32>>,
    %m: !tgraph.variable<tensor<64x64xf32>>, %x: tensor<64x64xf32>) -> tensor<f32> {
  %w0 = tgraph.read %w : tensor<64x64xf32>
  %m0 = tgraph.read %m : tensor<64x64xf32>
  %z = tgraph.dot_general %x, %w0 {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  %h = tgraph.tanh %z : tensor<64x64xf32>
  %r = tgraph.reverse %h {dimensions = array<i64: 0>} : tensor<64x64xf32>
  %p = tgraph.dot_general %r, %w0 {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  %q = tgraph.dot_general %p, %p {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  %e = tgraph.exponential %q : tensor<64x64xf32>
  %loss = tgraph.reduce %e {kind = "add", dimensions = array<i64: 0, 1>}
    : (tensor<64x64xf32>) -> tensor<f32>
  %g = tgraph.dot_general %h, %w0 {lhs_contracting_dimensions = array<i64: 0>,
    rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  %m1 = tgraph.add %m0, %g : tensor<64x64xf32>
  %w1 = tgraph.subtract %w0, %m1 : tensor<64x64xf32>
  tgraph.assign %m, %m1 : tensor<64x64xf32>
  tgraph.assign %w, %w1 : tensor<64x64xf32>
  func.return %loss : tensor<f32>
}
"""


def training() -> PoolView:
    Path("step.mlir").write_text(TRAINING)
    (plan,) = Reader(planning={"reuse_outputs": False}).read(read_source("step.mlir"))
    assert plan.sources == {"step.mlir": TRAINING.splitlines()}
    return plan.pools[0]


def test_roles_follow_from_dependencies_of_the_loss():
    pool = training()
    roles = {placed.buffer.id: placed.role for placed in pool.buffers}
    assert roles["%h"] == "activation"
    assert roles["%p"] == "temporary"
    assert {role for id, role in roles.items() if id not in ("%h", "%p")} <= {
        "gradient",
        "temporary",
    }
    assert {placed.type for placed in pool.buffers} == {"64x64xf32"}
    held = {each.name: (each.role, each.size) for each in pool.held}
    assert held.pop("%w") == ("parameter", 16384)
    assert held.pop("%m") == ("optimizer state", 16384)
    assert held.pop("%x") == ("input", 16384)
    assert list(held.values()) == [("result", 4)]
    size = readable(pool.size)
    assert pool.process.startswith(f"{size} arena + 16 KiB parameter + 16 KiB optim")
    assert pool.process.endswith(f"= {readable(pool.size + 3 * 16384 + 4)}")


def test_unused_bytes_are_counted():
    (pool,) = read("chain.csv")[0].pools
    # The pool has 96 bytes. In its 4 steps, 64, 96, 96, and 64 bytes are live.
    assert pool.unused == (
        "fragmentation 0.0% (0 B unused at the peak), 17% unused on average"
    )
    (_, naive) = read("chain.csv", "naive")
    assert naive.pools[0].unused.startswith("fragmentation 40.0% (64 B unused at the")


def test_color_groupings():
    found = groupings([PlanView("x", [training()])])
    assert [grouping.name for grouping in found] == ["role", "source line"]
    assert {label for label, _ in found[0].groups} >= {"activation", "temporary"}
    assert ("step.mlir:8", PALETTE[0]) in found[1].groups
    held = [grouping.of_held("parameter").label for grouping in found]
    assert held == ["parameter", "caller's memory"]
    (by_name,) = groupings(read("chain.csv"))
    assert by_name.name == "buffer"


def test_model_is_planned_as_it_runs() -> None:
    """Planned as written, without simplification, the model would have three buffers
    less."""
    pytest.importorskip("onnx")
    path = MODELS / "onnx" / "unet.onnx"
    (own,) = read(str(path))
    planned = tensorplan.plan(tensorplan.from_onnx(path))
    pools = tensorplan.report(planned)["pools"]
    assert [len(pool.buffers) for pool in own.pools] == [p["buffers"] for p in pools]


@pytest.mark.parametrize(
    ("id", "op", "location", "operation", "layer", "line"),
    [
        ("%a", "tgraph.tanh", "/x/y.py:3:4", "tanh", "", "y.py:3"),
        (
            "%blocks.1.fc",
            "tgraph.fusion (dot_general, add)",
            "m.onnx#fc:2:1",
            "matrix product",
            "blocks.1",
            "m.onnx#fc:2",
        ),
        ("%head.w", "tgraph.fusion (add, maximum)", "", "elementwise", "head", ""),
        ("%5", "workspace of tgraph.convolution", "", "kernel scratch", "", ""),
        (
            "d",
            "jit(f)/while/body/dot_general",
            "f.py:1:2",
            "matrix product",
            "",
            "f.py:1",
        ),
    ],
)
def test_groups(id: str, op: str, location: str, operation: str, layer: str, line: str):
    placed = ShownBuffer(Buffer(id, 4, 0, 1), 0, op=op, location=location)
    labels = operation_of(placed), layer_of(placed), line_of(placed)
    assert labels == (operation, layer, line)


def test_groups_beyond_the_palette_are_others():
    buffers = [
        ShownBuffer(Buffer(str(n), n + 1, 0, 1), 64 * n, op=f"test.op{n}")
        for n in range(len(PALETTE) + 2)
    ]
    (grouping,) = groupings([PlanView("x", [pool_of("", buffers)])])
    assert grouping.of(buffers[-1]) == 0
    assert grouping.groups[grouping.of(buffers[0])].label == "others"


def test_only_program_sources_are_shown():
    secret, script = Path("secret.txt").resolve(), Path("step.py").resolve()
    secret.write_text("key")
    script.write_text("x = 1")
    lines: list[str] = [*IR.splitlines()]
    lines[8] += f' loc("{script}":1:5)'  # the operation that writes %y
    lines[10] += f' loc("{secret}":1:1)'  # the operation that writes %z
    Path("f.mlir").write_text("\n".join(lines))
    (plan,) = read("f.mlir")
    places = {placed.location for placed in plan.pools[0].buffers}
    assert places == {"f.mlir:7:3", f"{script}:1:5", f"{secret}:1:1"}
    assert plan.sources.keys() == {"f.mlir", str(script)}


# Errors.

REPORT = {
    "pools": [{"device": "cpu:0", "bytes": 64}],
    "buffers": [
        {
            "pool": 0,
            "id": "%0",
            "lower": 0,
            "upper": 2,
            "size": 64,
            "alignment": 64,
            "gaps": [],
            "offset": 0,
            "type": "",
            "role": "",
            "op": "",
            "location": "",
        }
    ],
}


def changed(**fields: object) -> str:
    return json.dumps({**REPORT, "buffers": [{**REPORT["buffers"][0], **fields}]})


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("x.csv", "id,size\n", "x.csv:1: error: there is no column lower"),
        ("x.csv", CHAIN + "d,1,1,4,0\n", "x.csv:5: error: buffer d: live range is"),
        (
            "x.csv",
            CHAIN + "d,1,3,64,32\n",
            "x.csv: error: the offsets in the file: buffers ",
        ),
        ("x.json", '{"a": ]', "x.json:1: error: this cannot be read as JSON: exp"),
        ("x.json", "[" * 100_000, "x.json: error: this cannot be read as JSON"),
        ("x.json", "9" * 5000, "x.json: error: this cannot be read as JSON"),
        ("x.json", "[]", "x.json: error: 'pools' is missing, expected a report of"),
        ("x.json", '{"pools": [{}]}', "x.json: error: 'device' is missing"),
        ("x.json", changed(pool=1), "x.json: error: pool is 1, expected 0"),
        ("x.json", changed(pool=-1), "x.json: error: pool is -1, expected"),
        ("x.json", changed(size=1.5), "x.json: error: 'size' is 1.5, expected"),
        ("x.json", changed(size=True), "x.json: error: 'size' is true, expected"),
        ("x.json", changed(id=None), "x.json: error: 'id' is null, expected"),
        ("x.json", changed(gaps=[[1]]), "x.json: error: 1 is missing, expected"),
        ("x.json", changed(upper=0), "x.json: error: buffer %0: live range is [0, 0)"),
        ("x.json", changed(offset=-64), "x.json: error: pool cpu:0: buffer %0 has off"),
        ("x.mlir", "func.func @f() {", "x.mlir:1:"),
        (
            "x.mlir",
            "func.func @f() { func.return }",
            "x.mlir: error: the program stores nothing, so it has no arena",
        ),
        ("x.mlir", IR.replace("0 : index", "8 : index", 1), "x.mlir:6:8: error: "),
        ("none.csv", None, "none.csv: error: no such file or directory"),
    ],
)
def test_bad_files(
    file: str, text: str | None, message: str, capsys: pytest.CaptureFixture[str]
):
    if text is not None:
        Path(file).write_text(text)
    assert main([file, "-o", "out.html"]) == 1
    assert capsys.readouterr().err.startswith(message)
    assert not Path("out.html").exists()


def test_programs_are_planned_first():
    Path("model.mlir").write_text(KEPT)
    (plan,) = read("model.mlir")
    assert plan.title == "model.mlir, plan-pipeline"
    (pool,) = plan.pools
    a, b, c = pool.buffers
    assert (a.op, a.location) == ("tgraph.exponential", "model.mlir:3:8")
    assert pool.size == 3 * 64 * 64 * 4
    # All three buffers are live at the peak, and the page says why.
    assert a.waits.startswith("step 10: tgraph.fusion (dot_general, multiply)")
    assert a.in_place == "is not in place: %x is an argument that is not donated"
    assert {b.waits, c.waits} == {"in use"}
    assert pool.summary[0].startswith("the peak is at step 9 of 14: tgraph.dot_gen")


def test_two_arenas_of_one_device():
    text = IR.replace("%arena[%c128]", "%b[%c0]").replace(
        "  %c0 =",
        '  %b = memref.alloc() {tgraph.arena} : memref<192xi8, "cpu:0">\n  %c0 =',
        1,
    )
    Path("f.mlir").write_text(text)
    (plan,) = read("f.mlir")
    waiting = [[p.buffer.id for p in pool.buffers if p.waits] for pool in plan.pools]
    assert waiting == [["%x", "%y"], ["%z"]]


def test_buffer_without_accesses():
    lines = [line for line in IR.splitlines() if "copy" not in line]
    Path("f.mlir").write_text("\n".join(lines))
    (plan,) = read("f.mlir")
    assert {placed.op for placed in plan.pools[0].buffers} == {"memref.view"}
    assert main(["f.mlir", "--explain"]) == 0


def test_explain_prints_the_text_of_plan_opt(capsys: pytest.CaptureFixture[str]):
    Path("model.mlir").write_text(KEPT)
    assert main(["model.mlir", "--explain", "-o", "page.html", "--ascii"]) == 0
    picture, explained = capsys.readouterr().out.split("\n\n@main: ")
    assert picture.startswith("model.mlir, plan-pipeline: cpu:0: 48 KiB")
    assert plan_opt(["model.mlir", "--explain"]) == 0
    untimed = re.compile(r"\d+\.\d\d  ")
    said = capsys.readouterr().out.removeprefix("@main: ")
    assert untimed.sub("", explained) == untimed.sub("", said)
    assert "budget=44236 (90% of now): recompute" in Path("page.html").read_text()


@pytest.mark.parametrize("file", ["chain.csv", "report.json"])
def test_only_programs_are_explained(file: str, capsys: pytest.CaptureFixture[str]):
    Path("report.json").write_text(json.dumps(REPORT))
    assert main([file, "--explain"]) == 1
    assert "--explain requires a program" in capsys.readouterr().err


def test_file_that_is_not_utf8(capsys: pytest.CaptureFixture[str]):
    Path("x.csv").write_bytes(CHAIN.encode() + b"\xff")
    assert main(["x.csv"]) == 1
    assert capsys.readouterr().err == "x.csv:5: error: this is not UTF-8\n"


def test_plans_with_streams_are_not_compared(capsys: pytest.CaptureFixture[str]):
    type = 'memref<4x4xf32, "cpu:0">'
    text = IR.replace(
        f"memref.copy %a, %x : {type} to {type}",
        f'"memref.copy"(%a, %x) {{tgraph.stream = 0 : i32}} : ({type}, {type}) -> ()',
    )
    assert "tgraph.stream" in text
    Path("f.mlir").write_text(text)
    assert main(["f.mlir"]) == 0
    capsys.readouterr()
    assert main(["f.mlir", "--compare", "naive"]) == 1
    assert capsys.readouterr().err.startswith("f.mlir: error: it has streams")


@pytest.mark.parametrize("option", ["-o", "--svg", "--trace", "--snapshot"])
def test_output_path_is_checked_before_the_run(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["no-such-plan.mlir", option, "no/such/folder.html"]) == 1
    error = "no/such/folder.html: error: no such file or directory\n"
    assert capsys.readouterr().err == error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("chain.csv --compare nave", "did you mean 'naive'?"),
        ("chain.csv --compare=", "strategy is ''"),
        ("chain.csv --alignment 0", "argument --alignment: 0, expected 1 or more"),
        ("chain.csv -o x.pdf", "x.pdf ends in .pdf, expected .html, .svg, .png"),
        ("chain.csv --svg - --ascii", "only one output can go to stdout"),
        ("chain.csv --svg x --html x", "only one output can go to x"),
        ("- -", "only one FILE can be stdin"),
    ],
)
def test_wrong_usage(arguments: str, message: str, capsys: pytest.CaptureFixture[str]):
    try:
        code = main(arguments.split())
    except SystemExit as exit:  # argparse exits
        code = exit.code
    assert code == 2
    assert message in capsys.readouterr().err


# Drawings.


def test_terminal(capsys: pytest.CaptureFixture[str]):
    assert main(["chain.csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "chain.csv: 96 B, lower bound 96 B, 3 buffers"
    assert lines[1] == "        90 B |........bbbbbbbbbbbbbbbb........|"
    assert lines[16] == "         0 B |aaaaaaaaaaaaaaaacccccccccccccccc|"
    assert lines[17] == "        live |77777777****************77777777|"
    assert lines[18:] == [
        "       steps  0                              3",
        "at the peak, step 1, 96 B are live:",
        "  a  a  64 B, steps [0, 2)",
        "  b  b  32 B, steps [1, 3)",
    ]


def test_terminal_shows_roles(capsys: pytest.CaptureFixture[str]):
    training()
    assert main(["step.mlir", "--no-reuse-outputs"]) == 0
    out = capsys.readouterr().out
    assert "KiB arena + 16 KiB parameter + 16 KiB optimizer state" in out
    assert "%h  16 KiB, 64x64xf32, activation, steps [" in out
    assert main(["f.mlir"]) == 0
    assert "64 B, 4x4xf32, steps [" in capsys.readouterr().out


def test_documentation_shows_the_printed_plan(capsys: pytest.CaptureFixture[str]):
    text = DOCUMENTATION.read_text()
    session = r"```console\n\$ cat (\S+)\n(.*?)\$ (plan-view .*?)\n(.*?)```"
    block = re.search(session, text, re.DOTALL)
    assert block
    file, contents, command, printed = block.groups()
    Path(file).write_text(contents)
    assert main(command.split()[1:]) == 0
    assert capsys.readouterr().out == printed


def test_terminal_drawing_has_the_given_width():
    buffers = [
        ShownBuffer(Buffer(str(i), 64, i, i + 2), 64 * (i % 2)) for i in range(500)
    ]
    text = terminal.draw([PlanView("many", [pool_of("", buffers)])], 60)
    assert max(map(len, text.splitlines())) == 60
    assert len(text.splitlines()) < 30


def test_svg_has_a_rectangle_for_each_live_range():
    text = svg.draw(read("f.mlir"))
    root = ElementTree.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    boxes = [r for r in root.iter(f"{space}rect") if r.get("class") == "b"]
    assert len(boxes) == 5  # %x has two live ranges, and %a is below the arena
    titles = [title.text or "" for title in root.iter(f"{space}title")]
    (found,) = (title for title in titles if title.startswith("%y"))
    assert found.splitlines() == [
        "%y: 64 bytes at 64",
        "4x4xf32, temporary",
        "live in steps [7, 10)",
        "memref.copy",
        "f.mlir:9:3",
    ]


def test_svg_shows_memory_of_the_caller():
    text = svg.draw([PlanView("x", [training()])])
    for part in (
        "optimizer state</text>",
        "activation</text>",
        "64x64xf32</text>",
        ">%w</text>",
        " arena + 16 KiB parameter",
        'fill="#80cfa9"',
    ):
        assert part in text
    large = training()
    held = [HeldBuffer("w", 100 * large.size, "f32", "parameter")]
    assert ">w</text>" not in svg.draw([PlanView("x", [replace(large, held=held)])])


def test_output_format_follows_from_file_name(capsys: pytest.CaptureFixture[str]):
    for name, start in (("a.html", "<!DOC"), ("b", "<!DOC"), ("c.svg", "<svg")):
        assert main(["chain.csv", "-o", name]) == 0
        assert Path(name).read_text().startswith(start)
    with patch.dict("sys.modules", resvg_py=None):
        assert main(["chain.csv", "-o", "d.png"]) == 2
        assert "pip install '.[png]'" in capsys.readouterr().err
    module = ModuleType("resvg_py")
    setattr(module, "svg_to_bytes", lambda svg_string, zoom: svg_string.encode())  # noqa: B010
    with patch.dict("sys.modules", resvg_py=module):
        assert main(["chain.csv", "-o", "d.png"]) == 0
    assert Path("d.png").read_text() == Path("c.svg").read_text()


def test_png():
    pytest.importorskip("resvg_py")
    assert main(["chain.csv", "-o", "d.png"]) == 0
    assert Path("d.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("is_planned", [False, True])
def test_notebooks_show_the_page(is_planned: bool):
    module = tensorplan.read(TRAINING)
    view = tensorplan.view(tensorplan.plan(module) if is_planned else module)
    assert repr(view).startswith("<View: cpu:0: ")
    html = view._repr_html_()
    assert html.startswith('<iframe sandbox="allow-scripts"')
    assert html.count("<") == 2
    assert page.page([view.plan]) in unescape(html)
    view.save("x.svg")
    assert Path("x.svg").read_text() == svg.draw([view.plan])
    with pytest.raises(ValueError, match=r"x.txt ends in .txt, expected .html"):
        view.save("x.txt")


def test_slices_of_a_trace_thread_do_not_overlap():
    events = json.loads(trace.trace(read("f.mlir", "naive")))["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    assert len(slices) == 8
    for a in slices:
        for b in slices:
            if a is not b and (a["pid"], a["tid"]) == (b["pid"], b["tid"]):
                apart = a["ts"] + a["dur"] <= b["ts"] or b["ts"] + b["dur"] <= a["ts"]
                assert apart
    counts = [e["args"]["bytes"] for e in events if e["ph"] == "C" and e["pid"] == 1]
    assert max(counts) == 128
    assert counts[-1] == 0
    assert slices[0]["args"]["location"] == "f.mlir:7:3"


# The pickle opcodes that the viewer at pytorch.org/memory_viz can decode.
OPCODES = """\
PROTO FRAME STOP MARK MEMOIZE BINPUT LONG_BINPUT BINGET LONG_BINGET EMPTY_DICT SETITEM
SETITEMS DICT EMPTY_LIST APPEND APPENDS LIST EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 NONE
NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT SHORT_BINUNICODE BINUNICODE"""


def test_snapshot_is_readable_by_the_pytorch_viewer():
    plans = [*read("f.mlir"), *read("chain.csv", "naive")]
    data = snapshot.snapshot(plans)
    codes = {op.name: argument for op, argument, _ in pickletools.genops(data)}
    assert codes["PROTO"] == 4
    assert codes.keys() <= set(OPCODES.split())
    whole = pickle.loads(data)
    assert [s["device"] for s in whole["segments"]] == [0, 1, 2]
    ends = [(s["address"], s["address"] + s["total_size"]) for s in whole["segments"]]
    assert 0 < ends[0][0] < ends[0][1] < ends[1][0] < ends[1][1] < ends[2][0]
    for segment, events in zip(whole["segments"], whole["device_traces"], strict=True):
        assert sum(b["size"] for b in segment["blocks"]) == segment["total_size"]
        assert events[0]["action"] == "segment_alloc"
        live: dict[int, int] = {}
        for event, after in pairwise([*events[1:], {}]):
            assert "category" not in event
            match event["action"]:
                case "alloc":
                    start, end = event["addr"], event["addr"] + event["size"]
                    assert all(end <= a or a + n <= start for a, n in live.items())
                    live[start] = event["size"]
                case "free_requested":  # the viewer draws only one of the two events
                    assert after["action"] == "free_completed"
                    assert after["addr"] == event["addr"]
                case action:
                    assert action == "free_completed"
                    assert live.pop(event["addr"]) == event["size"]
        assert not live
    frame = {"name": "%x memref.copy", "filename": "f.mlir", "line": 7}
    assert whole["device_traces"][0][1]["frames"] == [frame]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 9),
            st.integers(1, 9),
            st.integers(0, 1 << 62),
            st.text(max_size=5),
        ),
        max_size=8,
    ),
    st.integers(1, 200),
)
def test_random_plans_can_be_drawn(lives: list[tuple[int, int, int, str]], width: int):
    offset = 0
    buffers: list[ShownBuffer] = []
    for start, length, size, name in lives:
        buffers.append(ShownBuffer(Buffer(name, size, start, start + length), offset))
        offset += size
    plans = [PlanView("any", [PoolView("p", offset, buffers)])]
    drawn = terminal.draw(plans, width)
    assert all(character.isprintable() or character == "\n" for character in drawn)
    ElementTree.fromstring(svg.draw(plans))
    json.loads(trace.trace(plans))
    pickle.loads(snapshot.snapshot(plans))
    page.page(plans).encode("ascii", "xmlcharrefreplace")


@given(st.integers(0, 1 << 70))
def test_readable_sizes_are_exact_to_four_digits(count: int):
    number, unit = readable(count).split()
    power = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].index(unit)
    assert math.isclose(float(number) * 1024**power, count, rel_tol=6e-4)


def hostile() -> list[PlanView]:
    words = (HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    placed = ShownBuffer(Buffer(HOSTILE, 64, 0, 2), 0, *words, [1])
    other = placed._replace(offset=64, op="x", type="y", role="z", location="a:1:2")
    held = [HeldBuffer(HOSTILE, 64, HOSTILE, "parameter")]
    pool = PoolView(HOSTILE, 128, [placed, other], [HOSTILE], held)
    return [PlanView(HOSTILE, [pool], [HOSTILE], {HOSTILE: [HOSTILE]})]


def test_names_are_escaped():
    html = page.page(hostile())
    assert html.count("</script>") == 2
    assert "<b>" not in html
    assert "\x1b" not in html + svg.draw(hostile()) + terminal.draw(hostile(), 80)
    assert "<script" not in svg.draw(hostile())


def test_outputs_are_written_all_or_none():
    outputs = "-o p.html --svg p.svg --trace p.json --snapshot p.pickle".split()
    assert main(["f.mlir", "chain.csv", *outputs]) == 0
    first = {path: path.read_bytes() for path in Path().glob("p.*")}
    assert len(first) == 4
    assert main(["f.mlir", "missing.csv", *outputs]) == 1
    assert main(["f.mlir", "chain.csv", *outputs]) == 0
    assert first == {path: path.read_bytes() for path in Path().glob("p.*")}


def test_page_is_self_contained():
    html = page.page(read("f.mlir"))
    assert "default-src 'none'" in html
    assert not re.search(r"https?://", html)
    assert not re.search(r"\{\{\w+\}\}", html)


# The page, in a browser.

needs_browser = pytest.mark.skipif(not available(), reason="no chromium, chromedriver")


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


def show(window: Browser, plans: list[PlanView]) -> None:
    path = Path("page.html")
    path.write_text(page.page(plans), encoding="utf-8")
    window.log()
    window.open(path)
    for _ in range(100):
        if window.run("return performance.getEntriesByName('drawn').length"):
            return
        time.sleep(0.05)
    raise AssertionError(f"nothing was drawn: {window.log()}")


def middle(window: Browser, buffer: ShownBuffer, pool: PoolView) -> tuple[float, float]:
    """The position of a buffer on the first map of the page, if it is not zoomed."""
    left, top, width, height = window.run(
        "const r = document.querySelector('canvas').getBoundingClientRect();"
        "return [r.left + 76, r.top + 8, r.width - 94, r.height - 92];"
    )
    first, end = pool.steps
    start, stop = buffer.buffer.live[0]
    x = left + width * ((start + stop) / 2 - first) / (end - first)
    y = top + height * (1 - (buffer.offset + buffer.buffer.size / 2) / pool.size)
    return x, y


@needs_browser
def test_pointing_at_a_buffer_shows_its_details(window: Browser):
    plans = read("f.mlir")
    show(window, plans)
    (pool,) = plans[0].pools
    window.point(*middle(window, pool.buffers[1], pool))
    details = window.text("#details")
    for part in ("%y", "memref.copy", "f.mlir:9:3", "64 bytes", "steps 7 to 9"):
        assert part in details
    assert "memref.copy %x, %y" in window.text("#text .first")  # in the source file
    window.run("document.querySelector('#files button:last-child').click()")
    window.point(5, 5)
    window.point(*middle(window, pool.buffers[1], pool))
    assert '"memref.copy"(%x, %y)' in window.text("#text .first")  # in the plan
    assert "%y = memref.view" in window.text("#text .access")
    window.point(5, 5)
    assert "%y" not in window.text("#details")
    assert not window.log()


@needs_browser
def test_page_shows_the_buffers_of_the_peak(window: Browser):
    show(window, read("chain.csv"))
    assert window.text("#live").split("\n")[:2] == [
        "Peak: step 1",
        "96 B in 2 buffers",
    ]
    names = "return [...document.querySelectorAll('#live .name')].map(e => e.innerText)"
    assert window.run(names) == ["a", "b"]
    window.run("document.querySelector('#live button').click()")
    assert "64 bytes" in window.text("#details")
    assert "1 buffer: c" in window.text("#details")


@needs_browser
def test_page_explains_the_peak(window: Browser):
    Path("model.mlir").write_text(KEPT)
    show(window, Reader(explain=True).read(read_source("model.mlir")))
    summary = "What would help: 36 KiB less by tgraph-tile{tiles=64 max-slowdown="
    assert window.text("#live summary").startswith(summary)
    window.run("document.querySelector('#live summary').click()")
    live = window.text("#live")
    for part in (
        "waits for step 10: tgraph.fusion (dot_general, multiply)",
        "is not in place: %x is an argument that is not donated",
        "alone takes 32 KiB; tiles along dimension 0 or 1 may take less",
        "What would help",
        "without effect on memory: ",
    ):
        assert part in live
    cells = "return [...document.querySelectorAll('#live tr:nth-child(3) td')]"
    cells += ".map(e => e.innerText)"
    assert window.run(cells)[:2] == ["36 KiB", "12 KiB"]
    window.run("document.querySelector('#live button').click()")
    assert "waits for" in window.text("#details")
    assert not window.log()


@needs_browser
def test_arrow_keys_move_between_buffers(window: Browser):
    show(window, read("chain.csv"))
    window.run("document.querySelector('canvas').focus()")
    seen: list[str] = []
    for key in ("Right", "Right", "Down", "Right", "Right", "Left"):
        window.type(key)
        seen.append(window.text("#details h2"))
    assert seen == ["a", "b", "a", "b", "c", "b"]
    ring = "return getComputedStyle(document.activeElement).outlineStyle"
    assert window.run(ring) == "solid"
    window.type("Escape")
    assert window.text("#details h2") == "Buffer"
    window.type("Tab")
    assert window.run("return document.activeElement.tagName") == "BUTTON"


@needs_browser
def test_table_of_all_buffers(window: Browser):
    show(window, read("f.mlir"))
    cells = "return [...document.querySelectorAll('#table tr td:{0}')]"
    cells += ".map(cell => cell.innerText)"
    window.run("document.querySelector('[data-shows=table]').click()")
    assert window.run(cells.format("first-child")) == ["%x", "%z", "%y"]
    window.run("document.querySelector('#table th button').click()")
    assert window.run(cells.format("first-child")) == ["%x", "%y", "%z"]
    window.run("document.querySelector('#table th button').click()")
    assert window.run(cells.format("first-child")) == ["%z", "%y", "%x"]
    window.run("document.querySelector('#table tr:nth-child(2) td').click()")
    assert window.text("#details h2") == "%z"
    window.run(
        "const group = document.getElementById('together'); group.value = -2;"
        "group.dispatchEvent(new Event('change'))"
    )
    assert window.run(cells.format("nth-child(2)")) == ["1", "1", "1"]
    assert "f.mlir:7" in window.run(cells.format("first-child"))
    assert not window.log()


@needs_browser
def test_legend_with_and_without_memory_of_the_caller(window: Browser):
    show(window, [PlanView("x", [training()])])
    legend = window.text("#legend")
    assert "activation" in legend
    assert "optimizer state" in legend  # drawn below the arena, and no larger than it
    window.run("document.getElementById('held').click()")
    assert "optimizer state" not in window.text("#legend")
    window.run(
        "const mode = document.getElementById('mode'); mode.value = 1;"
        "mode.dispatchEvent(new Event('change'))"
    )
    assert "step.mlir:8" in window.text("#legend")
    assert not window.log()


@needs_browser
def test_legend_lists_every_color(window: Browser):
    """A result keeps its color while the caller's memory is hidden."""
    y = ShownBuffer(Buffer("y", 4, 1, 2), 0, op="tgraph.sine", role="result")
    x = ShownBuffer(Buffer("x", 4, 0, 1), 0, op="tgraph.tanh")
    show(window, [PlanView("x", [pool_of("", [x, y])])])
    assert {"tanh", "sine"} <= set(window.text("#legend").split())


@needs_browser
def test_search(window: Browser):
    show(window, read("f.mlir"))
    window.run("document.querySelector('canvas').focus()")
    window.type("/")
    window.type("F.MLIR:9")
    assert window.text("#found") == "1 of 3"
    window.type("Enter")
    assert window.text("#details h2") == "%y"


@needs_browser
def test_wheel_keys_and_dragging_move_the_view(window: Browser):
    plans = read("chain.csv")
    show(window, plans)
    (pool,) = plans[0].pools
    x, y = middle(window, pool.buffers[0], pool)

    def at(x: float, y: float) -> str:
        window.point(1, 1)
        window.point(x, y)
        return window.text("#details h2")

    edge = middle(window, pool.buffers[1], pool)
    assert at(x, y) == "a"
    assert at(*edge) == "b"
    for _ in range(3):
        window.wheel(x, y, -200)
    assert at(x, y) == "a"  # zooming keeps the point under the pointer
    assert at(*edge) != "b"
    for _ in range(4):
        window.drag((850, round(y)), (100, round(y)))
    assert at(x, y) == "c"  # c has the bytes of a, in later steps
    window.run("document.querySelector('canvas').focus()")
    window.type("0")
    assert at(*edge) == "b"
    window.type("+", "+", "+")
    assert at(*edge) != "b"


@needs_browser
def test_page_compares_two_plans(window: Browser):
    show(window, read("chain.csv", "naive"))
    assert window.run("return document.querySelectorAll('canvas').length") == 2
    window.run("document.querySelectorAll('canvas')[1].focus()")
    window.type("Right", "Right", "Right")
    assert window.text("#live h2") == "Peak: step 1, chain.csv, naive"
    assert "In chain.csv\noffset 0, 64 bytes" in window.text("#details")


@needs_browser
def test_maps_of_small_plans_stay_readable(window: Browser):
    Path("long.csv").write_text(
        "id,lower,upper,size\n" + "".join(f"b{n},{n},{n + 1},64\n" for n in range(50))
    )
    auto, naive = read("long.csv", "naive")
    assert (auto.pools[0].size, naive.pools[0].size) == (64, 3200)
    show(window, [auto, naive])
    (pool,) = auto.pools
    # The map of `auto` is filled to two thirds, not to a fiftieth.
    tall = replace(pool, size=96)
    window.point(*middle(window, pool.buffers[25], tall))
    assert window.text("#details h2") == "b25"
    assert "In long.csv, naive" in window.text("#details")


@needs_browser
@pytest.mark.parametrize("pools", [[], [PoolView("empty", 0, [])]])
def test_page_without_buffers(window: Browser, pools: list[PoolView]):
    show(window, [PlanView("nothing", pools)])
    window.type("p", "+", "0")
    assert not window.log()


@needs_browser
def test_hostile_names_are_shown_as_text(window: Browser):
    show(window, hostile())
    window.run("document.querySelector('canvas').focus()")
    window.type("Right")
    assert "</script><script>" in window.text("#details")
    assert window.run("return document.title") != "gone"
    assert window.run("return document.querySelectorAll('b').length") == 1  # a caption
    assert not window.log()


@needs_browser
def test_page_with_ten_thousand_buffers_is_responsive(window: Browser):
    buffers = [
        ShownBuffer(Buffer(f"b{i}", 64, i, i + 50), 64 * (i % 50))
        for i in range(10_000)
    ]
    show(window, [PlanView("many", [pool_of("", buffers)])])
    first = window.run("return performance.getEntriesByName('drawn')[0].startTime")
    assert first < 1000  # ms; about 100 on an idle machine
    window.run(
        "const frame = requestAnimationFrame; window.spent = [];"
        "window.requestAnimationFrame = f => frame(t => {"
        "  const start = performance.now(); f(t);"
        "  spent.push(performance.now() - start) });"
    )
    for amount in (-100, -100, -100, 100, 100, 100):
        window.wheel(400, 300, amount)
    spent = sorted(window.run("return spent"))
    assert spent
    assert spent[len(spent) // 2] < 100  # ms; about 5 on an idle machine
