"""Tests `plan-run`: values, state over steps, comparison, reports, and errors."""

import json
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorplan.passes.options import PlanOptions
from tensorplan.passes.tgraph.bufferize import TGraphBufferize
from tensorplan.passes.tgraph.fuse import TGraphFuse
from tensorplan.passes.tgraph.schedule import TGraphSchedule
from tensorplan.runtime.backends.jit import llvm
from tensorplan.tools import arrays, plan_opt, plan_run, plan_view
from tensorplan.tools.plan_arguments import option_of
from tensorplan.tools.plan_run import main
from tensorplan.tools.plan_run_main import size

# Input arg0 is a variable, x. Result 0 is the new x, x + y, and result 1 is x * y.
PROGRAM = """\
func.func @main(
    %v: !tgraph.variable<tensor<2x3xf32>> {tgraph.result = 0 : i32},
    %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %x = tgraph.read %v : tensor<2x3xf32>
  %0 = tgraph.add %x, %y : tensor<2x3xf32>
  %1 = tgraph.multiply %x, %y : tensor<2x3xf32>
  tgraph.assign %v, %0 : tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.full((2, 3), 0.5, np.float32)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs each test in a new folder that contains a program and its inputs."""
    monkeypatch.chdir(tmp_path)
    Path("program.mlir").write_text(PROGRAM)
    np.savez("in.npz", arg0=X, arg1=Y)


def run(*args: str) -> int:
    return main(["program.mlir", *args])


def outputs() -> dict[str, NDArray[Any]]:
    with np.load("out.npz") as file:
        return dict(file)


@pytest.mark.parametrize("level", ["reference", "planned"])
@pytest.mark.parametrize("steps", [1, 3])
def test_values_and_state(level: str, steps: int):
    args = ("--inputs", "in.npz", "--outputs", "out.npz", "--steps", str(steps))
    assert run(*args, "--level", level) == 0
    got = outputs()
    assert list(got) == ["out0", "out1"]
    np.testing.assert_array_equal(got["out0"], X + steps * Y)
    np.testing.assert_array_equal(got["out1"], (X + (steps - 1) * Y) * Y)


def test_inputs_may_have_the_names_of_arguments():
    np.savez("named.npz", y=Y, v=X)
    assert run("--inputs", "named.npz", "--outputs", "out.npz") == 0
    np.testing.assert_array_equal(outputs()["out1"], X * Y)
    np.savez("mixed.npz", v=X, arg1=Y)
    assert run("--inputs", "mixed.npz", "--expect", "out.npz") == 0


@pytest.mark.parametrize("level", ["reference", "planned"])
def test_results_have_the_names_of_the_model(
    level: str, capsys: pytest.CaptureFixture[str]
):
    text = PROGRAM.replace("= 0 : i32}", '= 0 : i32, tgraph.name = "params[0]"}')
    end = '-> (tensor<2x3xf32> {tgraph.name = "file"}) {'
    Path("program.mlir").write_text(text.replace("-> tensor<2x3xf32> {", end, 1))
    how = ("--inputs", "in.npz", "--level", level)
    assert run(*how, "--outputs", "out.npz") == 0
    got = outputs()
    assert list(got) == ["params[0]", "file"]
    np.savez("numbered.npz", out0=got["params[0]"], out1=got["file"] + 1)
    assert run(*how, "--expect", "out.npz") == 0
    assert run(*how, "--expect", "numbered.npz") == 1
    assert "the worst: file is off by 1" in capsys.readouterr().err


def test_input_file_is_not_modified():
    before = Path("in.npz").read_bytes()
    assert run("--inputs", "in.npz", "--steps", "2") == 0
    assert Path("in.npz").read_bytes() == before


def test_seed_determines_the_inputs():
    got: list[NDArray[Any]] = []
    for seed in ("1", "1", "2"):
        assert run("--seed", seed, "--outputs", "out.npz") == 0
        got.append(outputs()["out0"])
    np.testing.assert_array_equal(got[0], got[1])
    assert not np.array_equal(got[0], got[2])


def test_sanitized_run_gives_the_same_values():
    assert run("--outputs", "out.npz") == 0
    assert run("--sanitize", "--expect", "out.npz", "--rtol", "0", "--atol", "0") == 0


@pytest.mark.parametrize(
    "how",
    [["--concurrent", "--threads", "2"], ["--threads", "1"], []],
)
def test_streams_and_threads_give_the_same_values(how: list[str]):
    assert run("--outputs", "out.npz") == 0
    same = ("--expect", "out.npz", "--rtol", "0", "--atol", "0")
    assert run("--streams", "2", *how, *same) == 0


@pytest.mark.parametrize(
    "args",
    [
        ("--budget", "64MiB"),
        ("--budget", "64MiB", "--offload", "cpu:1", "--time-limit", "9"),
        ("--effort", "high"),
        ("--groups", "a=cpu:1,b=cpu:2"),
        ("--no-reuse-outputs", "--workspaces", "none", "--dynamic", "allocator"),
    ],
)
def test_plans_give_the_same_values(args: tuple[str, ...]):
    assert run("--outputs", "out.npz") == 0
    same = ("--expect", "out.npz", "--rtol", "0", "--atol", "0")
    assert run(*args, *same) == 0


def test_exceeded_budget_is_an_error(capsys: pytest.CaptureFixture[str]):
    text = PROGRAM.replace("%0 = tgraph.add %x, %y", "%0 = tgraph.add %z, %y").replace(
        "  %0 =",
        "  %z = tgraph.reverse %x {dimensions = array<i64: 0>} :"
        " tensor<2x3xf32>\n  %0 =",
    )
    Path("program.mlir").write_text(text)
    assert run("--budget", "1", "--no-reuse-outputs") == 1
    assert "more than the budget of 1" in capsys.readouterr().err


@pytest.mark.parametrize("tool", [plan_run, plan_view])
def test_tools_have_all_planning_options(tool: Any):
    for field in fields(PlanOptions):
        words = ["x", option_of(field.name)]
        words += [] if field.type is bool else ["1"]
        assert field.name in vars(tool.make_parser().parse(words))


def test_processes_give_the_same_values():
    pytest.importorskip("mpi4py")
    assert run("--outputs", "out.npz") == 0
    assert run("--processes", "1", "--expect", "out.npz") == 0


def test_profile():
    assert run("--steps", "3", "--streams", "2", "--profile", "trace.json") == 0
    trace = json.loads(Path("trace.json").read_text())
    names = [e["name"] for e in trace["traceEvents"] if e["ph"] == "X"]
    assert names.count("tgraph.multiply") == 3
    assert names == names[: len(names) // 3] * 3


def test_profile_lists_operations_left_to_numpy(capsys: pytest.CaptureFixture[str]):
    Path("program.mlir").write_text("""
        func.func @main(%x: tensor<999xf32>, %y: tensor<999xf32>) -> tensor<999xf32> {
          %s = tgraph.sort %x {dimension = 0 : i64} : tensor<999xf32> {
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %0 = tgraph.compare %a, %b {direction = "LT"}
              : (tensor<f32>, tensor<f32>) -> tensor<i1>
            tgraph.yield %0 : tensor<i1>
          }
          %r = tgraph.add %s, %y : tensor<999xf32>
          func.return %r : tensor<999xf32>
        }""")
    assert run("--profile", "trace.json") == 0
    line = capsys.readouterr().out.splitlines()[-1]
    if llvm.is_available():
        assert line == "left to NumPy: 1 tgraph.sort"
    else:
        assert line == "left to NumPy: 1 tgraph.sort; 1 tgraph.add"


def test_pool_line_and_report(capsys: pytest.CaptureFixture[str]):
    Path("program.mlir").write_text(
        PROGRAM.replace(
            "  tgraph.assign",
            "  %t = tgraph.transpose %0 {permutation = array<i64: 1, 0>} :"
            " (tensor<2x3xf32>) -> tensor<3x2xf32>\n"
            "  %p = tgraph.dot_general %0, %t {lhs_batching_dimensions = array<i64>,"
            " rhs_batching_dimensions = array<i64>,"
            " lhs_contracting_dimensions = array<i64: 1>,"
            " rhs_contracting_dimensions = array<i64: 0>} :"
            " (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>\n"
            "  %2 = tgraph.dot_general %p, %1 {lhs_batching_dimensions = array<i64>,"
            " rhs_batching_dimensions = array<i64>,"
            " lhs_contracting_dimensions = array<i64: 1>,"
            " rhs_contracting_dimensions = array<i64: 0>} :"
            " (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>\n"
            "  tgraph.assign",
        ).replace("return %1", "return %2")
    )
    assert (
        run("--report", "report.json", "--alignment", "128", "--device", "cpu:7") == 0
    )
    report = json.loads(Path("report.json").read_text())
    (pool,) = report["pools"]
    assert pool["device"] == "cpu:7"
    assert pool["alignment"] == 128
    assert pool["bytes"] >= pool["lower_bound_bytes"] > 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    alone = (
        "cpu:7: 144 bytes, lower bound 144 bytes, without reuse 256 bytes, 2 buffers"
    )
    assert first == alone
    further = pool["bytes"] - 144 + report["scratch_bytes"]
    if further:  # oneDNN's workspaces
        assert second == f"+ {size(further)} for this machine's kernels"
    else:
        assert second.startswith("argument 0: 1 buffer")
    assert {"read", "plan-memory", "verify", "run"} <= report["seconds"].keys()
    assert report["ops"]["tgraph.dot_general"] == 2


def test_passes_shared_by_both_plans_run_once(monkeypatch: pytest.MonkeyPatch):
    """Plans with and without kernel workspaces differ only from `tgraph-tile` on."""
    ran: list[str] = []
    for pass_ in (TGraphFuse, TGraphSchedule, TGraphBufferize):
        apply = pass_.apply
        monkeypatch.setattr(
            pass_,
            "apply",
            lambda self, *args, apply=apply: (
                ran.append(self.name),
                apply(self, *args),
            ),
        )
    assert run() == 0
    counts = {"tgraph-fuse": 1, "tgraph-schedule": 1, "tgraph-bufferize": 2}
    assert Counter(ran) == counts


def test_exit_code_of_a_difference_is_1(capsys: pytest.CaptureFixture[str]):
    assert run("--inputs", "in.npz", "--outputs", "out.npz") == 0
    expected = outputs()
    expected["out0"][0, 1] += 1e-3
    expected["out1"][1, 2] += 0.25
    np.savez("expected.npz", allow_pickle=False, **expected)
    capsys.readouterr()
    assert run("--inputs", "in.npz", "--expect", "expected.npz", "--rtol", "1e-5") == 1
    err = capsys.readouterr().err
    assert "2 of 2 outputs differ; the worst: out1 is off by 0.25 at [1, 2]" in err
    # The tolerance is relative to the largest magnitude: 1e-3 is below 1e-3 * 5.5.
    assert run("--inputs", "in.npz", "--expect", "expected.npz", "--rtol", "1e-3") == 1
    assert "1 of 2 outputs differ" in capsys.readouterr().err
    assert run("--inputs", "in.npz", "--expect", "expected.npz", "--rtol", "0.1") == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"arg0": X}, "in.npz: has no y, expected arg0, y"),
        ({"v": X, "arg1": Y, "arg2": Y}, "has arg2, expected v, arg1"),
        ({"arg0": X, "arg1": Y[0]}, "y is float32[3], expected float32[2, 3]"),
        (
            {"arg0": X.astype(np.float64), "arg1": Y},
            "v is float64[2, 3], expected float32[2, 3]",
        ),
        ({"arg0": X, "arg1": np.array([None])}, "cannot be read as npz"),
    ],
)
def test_exit_code_of_wrong_inputs_is_1(
    given: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]
):
    np.savez("in.npz", **given)
    assert run("--inputs", "in.npz") == 1
    assert message in capsys.readouterr().err


def test_wrong_files(capsys: pytest.CaptureFixture[str]):
    Path("text.npz").write_text("not an archive")
    np.save("single.npy", X)
    for file, message in (
        ("no-such.npz", "no-such.npz: error: no such file or directory"),
        ("text.npz", "text.npz: cannot be read as npz"),
        ("single.npy", "single.npy: a single array, expected an npz file"),
    ):
        assert run("--inputs", file) == 1
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--strategy", "magic"), "strategy is 'magic', expected one of"),
        (("--alignment", "3"), "alignment is 3, expected a power of two"),
        (("--steps", "0"), "argument --steps: 0, expected 1 or more"),
        (("--steps", "1.5"), "argument --steps: '1.5', expected an integer"),
        (("--threads", "two"), "argument --threads: 'two', expected an integer"),
        (("--time-limit", "10s"), "--time-limit: '10s', expected a number"),
        (("--seed", "-1"), "argument --seed: -1, expected 0 or more"),
        (("--rtol", "nan"), "argument --rtol: nan, expected 0 or more"),
        (("--level", "reference", "--sanitize"), "require --level=planned"),
        (
            ("--level", "reference", "--profile", "x"),
            "requires kernels",
        ),
        (("--seed", "1", "--inputs", "in.npz"), "not allowed with"),
        (("--streams", "0"), "streams is 0, expected 1 or more"),
        (("--device", "cuda:0"), "argument --device: 'cuda:0', expected cpu:0, cpu:1"),
        (("--device", "banana"), "argument --device: 'banana', expected cpu:0, cpu:1"),
        (("--processes", "0"), "argument --processes: 0, expected 1 or more"),
        (("--sanitize", "--concurrent"), "only one of --sanitize, --concurrent and"),
    ],
)
def test_exit_code_of_wrong_usage_is_2(
    args: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
):
    try:
        code = run(*args)
    except SystemExit as exit:  # argparse exits
        code = exit.code
    assert code == 2
    assert message in capsys.readouterr().err


def test_no_such_entry(capsys: pytest.CaptureFixture[str]):
    assert run("--entry", "train") == 1
    assert (
        "no function @train in the module, which has @main" in capsys.readouterr().err
    )


class TestDifference:
    def off(self, got: object, expected: object) -> float:
        return arrays.difference(
            "out0", np.array(got, np.float32), np.array(expected, np.float32), 0.0, 0.0
        ).error

    def test_nan_equals_nan_and_infinities_themselves(self):
        inf, nan = float("inf"), float("nan")
        assert self.off([nan, inf, -inf], [nan, inf, -inf]) == 0
        assert self.off([inf], [-inf]) == inf
        assert self.off([nan], [0]) == inf
        assert self.off([0], [nan]) == inf

    def test_shapes_must_agree(self):
        assert self.off([1, 1], [1]) == float("inf")
        assert self.off(np.zeros((0, 3)), np.zeros((0, 3))) == 0

    def test_allowed_is_relative_to_the_largest_magnitude(self):
        expected = np.array([-8.0, 0.0, float("inf")], np.float32)
        allowed = arrays.difference("out0", expected, expected, 0.25, 1.0).allowed
        assert allowed == 1.0 + 0.25 * 8.0


def test_human_readable_sizes():
    assert size(640) == "640 bytes"
    assert size(2560) == "2.5 KiB (2560 bytes)"
    assert size(3 << 30) == "3.0 GiB (3221225472 bytes)"
    assert size(3 << 40) == "3.0 TiB (3298534883328 bytes)"


def test_planned_program_is_not_planned_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["program.mlir", "-p", "plan-pipeline", "-o", "planned.mlir"]
    assert plan_opt.main(options) == 0
    assert main(["planned.mlir", "--report", "figures.json"]) == 0
    seconds = json.loads(Path("figures.json").read_text())["seconds"]
    assert seconds.keys() == {"read", "verify", "plan-check", "run"}
    assert main(["planned.mlir", "--strategy", "naive"]) == 2
    message = "planned.mlir is already planned, so --strategy has no effect"
    assert message in capsys.readouterr().err
