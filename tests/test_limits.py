"""Tests limits: huge sizes, odd names, hostile or missing files, time and memory."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from threading import Thread
from xml.etree import ElementTree

import numpy as np
import pytest

from tensorplan.planning import (
    STRATEGIES,
    Buffer,
    Limits,
    Problem,
    deadline,
    registry,
    solve,
    validate,
)
from tensorplan.planning.solver import auto, budget, kernels
from tensorplan.tools import plan_audit, plan_opt, plan_run, plan_solve, plan_view

Capture = pytest.CaptureFixture[str]
HOSTILE = "\"'&<b>é</script><script>alert(1)</script>\\\t "
PROGRAM = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.negate %x : tensor<4xf32>
  %1 = tgraph.reverse %0 {dimensions = array<i64: 0>} : tensor<4xf32>
  %2 = tgraph.add %0, %1 : tensor<4xf32>
  func.return %2 : tensor<4xf32>
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM)
    return path


# Sizes


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
@pytest.mark.parametrize("size", [2**31, 2**32 + 1, 2**62, 2**63 - 1, 2**63, 10**30])
def test_huge_buffers_are_placed_or_refused(strategy: str, size: int) -> None:
    """No sum overflows: the plan is valid, and its peak is neither too small nor too
    large."""
    buffers = [Buffer(f"b{n}", size - n, n % 3, n % 3 + 2) for n in range(5)]
    problem = Problem(buffers)
    plan = solve(problem, strategy, Limits(time_limit=0.1))
    assert validate(problem, plan.offsets) is None
    assert plan.lower_bound <= plan.peak <= sum(b.size for b in buffers) * 2


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_empty_buffers_and_no_buffers(strategy: str) -> None:
    empty = Problem([Buffer("a", 0, 0, 3), Buffer("b", 0, 1, 2), Buffer("c", 7, 1, 4)])
    assert solve(empty, strategy).peak == 7
    assert solve(Problem([]), strategy).peak == 0


@pytest.mark.parametrize(
    "type",
    [
        "memref<9223372036854775807xi8>",
        "memref<0x9223372036854775807xf32>",
        "memref<f32>",
        "memref<0xf32>",
    ],
)
def test_any_static_size_is_planned(type: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "huge.mlir"
    path.write_text(
        f"func.func @f(%x: {type}) {{\n%a = memref.alloc() : {type}\n"
        f"memref.copy %x, %a : {type} to {type}\n"
        f"memref.copy %a, %x : {type} to {type}\nfunc.return\n}}\n"
    )
    code = plan_opt.main([str(path), "-p", "plan-memory", "-t", "json"])
    out, err = capsys.readouterr()
    assert code == 0, err
    (pool,) = json.loads(out)["pools"]
    assert pool["bytes"] >= pool["lower_bound_bytes"] >= 0


HUGE = "9223372036854775807"  # 2^63 - 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"""func.func @f(%x: memref<3x{HUGE}xi8>) {{
  %a = memref.alloc() : memref<3x{HUGE}xi8>
  memref.copy %x, %a : memref<3x{HUGE}xi8> to memref<3x{HUGE}xi8>
  memref.copy %a, %x : memref<3x{HUGE}xi8> to memref<3x{HUGE}xi8>
  func.return
}}""",
            f"1:1: error: the arena has {3 * int(HUGE)} bytes, expected at most {HUGE}",
        ),
        (
            f"""func.func @f(%x: tensor<{int(HUGE) + 1}xi8>) {{
  func.return
}}""",
            f"1:25: error: dimension has size {int(HUGE) + 1}, expected at most {HUGE}",
        ),
        (
            f"""func.func @f(%x: tensor<3x{HUGE}xi8>) {{
  %0 = tgraph.reverse %x {{dimensions = array<i64: 0, 1>}} : tensor<3x{HUGE}xi8>
  func.return
}}""",
            f'1:1: error: func.func: tensor<3x{HUGE}xi8, "cpu:0"> has sizes whose '
            f"product is {3 * int(HUGE)}, expected at most {HUGE}",
        ),
    ],
    ids=["arena", "dimension", "strides"],
)
def test_sizes_beyond_64_bits_are_rejected(
    text: str, message: str, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "huge.mlir"
    path.write_text(text)
    assert plan_opt.main([str(path), "-p", "plan-pipeline"]) == 1
    assert f"huge.mlir:{message}" in capsys.readouterr().err


LARGE = str(10**25)


@pytest.mark.parametrize(
    ("passes", "code", "message"),
    [
        (f"plan-pipeline{{budget={'9' * 400}}}", 0, ""),
        (f'plan-pipeline{{streams={LARGE} bounds="n<=4"}}', 0, ""),
        (f"tgraph-tile{{tiles={LARGE}}}", 2, f"tiles is {LARGE}, expected 1 to"),
        (f'plan-pipeline{{bounds="n<={LARGE}"}}', 2, f"size n is {LARGE}, expected at"),
        (f'plan-pipeline{{hints="n={LARGE}"}}', 2, f"size n is {LARGE}, expected at"),
        (
            f'specialize-sizes{{sizes="n={LARGE}"}}',
            2,
            f"size n is {LARGE}, expected at",
        ),
        (
            f'specialize-sizes{{sizes="n={HUGE}"}}',
            1,
            f"size of {2 * int(HUGE)}, expected",
        ),
    ],
)
def test_numbers_in_options(
    passes: str, code: int, message: str, tmp_path: Path, capsys: Capture
) -> None:
    one, two = (f"tensor<?xf32, #tgraph.dims<{size}>>" for size in ("n", "2*n"))
    path = tmp_path / "program.mlir"
    path.write_text(
        f"func.func @main(%x: {one}) -> {two} {{\n"
        f"%0 = tgraph.concatenate %x, %x {{dimension = 0 : i64}} : ({one}, {one}) -> "
        f"{two}\nfunc.return %0 : {two}\n}}\n"
    )
    assert plan_opt.main([str(path), "-p", passes]) == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("level", ["planned", "reference"])
def test_programs_larger_than_any_memory_are_not_run(
    level: str, tmp_path: Path, capsys: Capture
) -> None:
    type = f"tensor<{HUGE}xi8>"
    path = tmp_path / "huge.mlir"
    path.write_text(
        f"func.func @main(%x: {type}) -> {type} {{\n"
        f"%0 = tgraph.negate %x : {type}\nfunc.return %0 : {type}\n}}\n"
    )
    assert plan_run.main([str(path), "--level", level]) == 1
    assert f"{HUGE} elements, expected at most" in capsys.readouterr().err


def nested(depth: int) -> str:
    inside = "memref.copy %x, %y : memref<4xf32> to memref<4xf32>"
    opened = "scf.if %c {\n" * depth
    return (
        "func.func @f(%c: i1, %x: memref<4xf32>, %y: memref<4xf32>) {\n"
        f"{opened}{inside}\n{'}' * depth}\nfunc.return\n}}\n"
    )


@pytest.mark.parametrize("depth", [50, 5000])
def test_deep_nesting_is_planned_or_refused(
    depth: int, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "deep.mlir"
    path.write_text(nested(depth))
    code = plan_opt.main([str(path), "-p", "plan-memory"])
    assert code == (0 if depth == 50 else 1)
    place = re.escape(str(path)) + r":\d+:\d+: error: the program is nested too deeply"
    assert (depth == 50) != bool(re.match(place, capsys.readouterr().err))


def branches(depth: int) -> str:
    """Nested branches as StableHLO, which has a separate reader."""
    t = "tensor<4xf32>"
    opened = "".join(f'%r{n} = "stablehlo.if"(%c) ({{\n' for n in range(depth))
    closed = "".join(
        f"stablehlo.return %r{n} : {t}\n}}, {{\nstablehlo.return %x : {t}\n}}) : "
        f"(tensor<i1>) -> {t}\n"
        for n in reversed(range(1, depth + 1))
    )
    innermost = f"%r{depth} = stablehlo.negate %x : {t}\n"
    return (
        f"func.func @main(%c: tensor<i1>, %x: {t}) -> {t} {{\n"
        f"{opened}{innermost}{closed}return %r0 : {t}\n}}\n"
    )


@pytest.mark.parametrize("depth", [50, 1000])
def test_deep_branches_are_planned_or_refused(
    depth: int, tmp_path: Path, capsys: Capture
) -> None:
    pytest.importorskip("jaxlib")
    path = tmp_path / "deep.mlir"
    path.write_text(branches(depth))
    code = plan_opt.main([str(path), "-p", "plan-pipeline"])
    assert code == (0 if depth == 50 else 1)
    place = re.escape(str(path)) + r":\d+:\d+: error: the program is nested too deeply"
    assert (depth == 50) != bool(re.match(place, capsys.readouterr().err))


def many_buffers(count: int) -> str:
    random = Random(0)
    rows = ["id,lower,upper,size"]
    for n in range(count):
        rows.append(
            f"b{n},{n},{n + random.randint(1, 30)},{64 * random.randint(1, 99)}"
        )
    return "\n".join(rows)


@pytest.mark.slow
def test_a_million_buffers(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    path.write_text(many_buffers(1_000_000))
    start = time.process_time()
    out = str(tmp_path / "out.csv")
    assert plan_solve.main([str(path), "--strategy", "linear-scan", "-o", out]) == 0
    assert plan_view.main([out, "--svg", str(tmp_path / "out.svg")]) == 0
    assert time.process_time() - start < 120


# Names


def test_names_are_escaped_in_all_outputs(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "odd <&\"'>.mlir"
    quoted = HOSTILE.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\09")
    path.write_text(PROGRAM.replace("@main", f'@"{quoted}"').replace("%0", "%a-b.c$d"))
    planned, report = tmp_path / "planned.mlir", tmp_path / "report.json"
    arguments = [str(path), "-p", "plan-pipeline", "-o", str(planned)]
    assert plan_opt.main([*arguments, "--report", str(report)]) == 0
    assert json.loads(report.read_text())["buffers"]
    assert plan_opt.main([str(planned), "-t", "c-header"]) == 0
    for line in capsys.readouterr().out.splitlines():
        assert line.count("*/") <= 1, line
    page, drawing = tmp_path / "page.html", tmp_path / "drawing.svg"
    assert plan_view.main([str(planned), "-o", str(page), "--svg", str(drawing)]) == 0
    assert "<script>alert" not in page.read_text()
    ElementTree.fromstring(drawing.read_text())


def test_names_in_csv_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    name = HOSTILE.replace('"', '""')
    path.write_text(f'id,lower,upper,size\n"{name}",0,1,8\n')
    page, drawing = tmp_path / "page.html", tmp_path / "drawing.svg"
    assert plan_view.main([str(path), "-o", str(page), "--svg", str(drawing)]) == 0
    assert "<script>alert" not in page.read_text()
    ElementTree.fromstring(drawing.read_text())
    out = tmp_path / "out.csv"
    assert plan_solve.main([str(path), "-o", str(out)]) == 0
    assert plan_view.main([str(out), "--ascii"]) == 0  # the file is still read as CSV


# Hostile files


class Trap:
    """Creates a folder when its pickle is read."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("/tmp/tensorplan-was-here",)


def test_pickles_in_npz_are_not_read(
    program: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "trap.npz"
    np.savez(path, arg0=np.array([Trap()], dtype=object))
    assert plan_run.main([str(program), "--inputs", str(path)]) == 1
    assert "cannot be read as npz" in capsys.readouterr().err
    assert not Path("/tmp/tensorplan-was-here").exists()
    assert plan_run.main([str(program), "--expect", str(path)]) == 1
    assert not Path("/tmp/tensorplan-was-here").exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        *((data, "cannot be read as npz") for data in (b"", b"PK\3\4", b"\x80\4N.")),
        (b"\x93NUMPY\1\0", "a single array, expected an npz file"),
    ],
)
def test_files_that_are_not_npz(
    data: bytes, message: str, program: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "no.npz"
    path.write_bytes(data)
    assert plan_run.main([str(program), "--inputs", str(path)]) == 1
    assert f"no.npz: {message}" in capsys.readouterr().err


@pytest.mark.thorough
def test_damaged_bytecode(tmp_path: Path, capsys: Capture) -> None:
    jax = pytest.importorskip("jax")
    from jax import export

    vector = jax.ShapeDtypeStruct((4,), np.float32)
    data = export.export(jax.jit(jax.numpy.tanh))(vector).mlir_module_serialized
    for length in range(4, len(data), 397):
        path = tmp_path / "damaged.mlirbc"
        path.write_bytes(data[:length])
        assert plan_opt.main([str(path)]) == 1
        assert "damaged.mlirbc" in capsys.readouterr().err


# Paths


TOOLS = {
    "plan-opt -o": lambda file, out: plan_opt.main([file, "-o", out]),
    "plan-opt --report": lambda file, out: plan_opt.main(
        [file, "-p", "plan-pipeline", "--report", out]
    ),
    "plan-run --outputs": lambda file, out: plan_run.main([file, "--outputs", out]),
    "plan-run --report": lambda file, out: plan_run.main([file, "--report", out]),
}
by_output = pytest.mark.parametrize("write", TOOLS.values(), ids=TOOLS)


@by_output
def test_output_into_a_folder(write, program: Path, tmp_path: Path, capsys) -> None:
    assert write(str(program), str(tmp_path)) == 1
    assert "is a directory" in capsys.readouterr().err


@by_output
def test_output_into_a_missing_folder(
    write, program: Path, tmp_path: Path, capsys
) -> None:
    assert write(str(program), str(tmp_path / "no" / "out")) == 1
    assert f"{tmp_path / 'no' / 'out'}: error: no such file" in capsys.readouterr().err


@by_output
def test_output_below_a_file(write, program: Path, capsys) -> None:
    assert write(str(program), f"{program}/out") == 1
    assert "not a directory" in capsys.readouterr().err


@by_output
def test_output_through_a_link(write, program: Path, tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    assert write(str(program), str(link)) == 0
    assert link.is_symlink()
    assert target.stat().st_size


@by_output
def test_output_to_a_device(write, program: Path) -> None:
    assert write(str(program), "/dev/null") == 0
    assert not Path("/dev/null").is_file()


def test_output_to_dev_stdout(program: Path) -> None:
    command = [sys.executable, "-m", "tensorplan.tools.plan_opt", str(program)]
    told = subprocess.run(
        [*command, "-o", "/dev/stdout"], capture_output=True, text=True
    )
    assert told.returncode == 0
    assert "tgraph.negate" in told.stdout


def test_output_onto_the_input(program: Path) -> None:
    for _ in range(2):
        arguments = [str(program), "-p", "plan-pipeline", "-o", str(program)]
        assert plan_opt.main(arguments) == 0
        assert "tgraph.negate" in program.read_text()


def test_a_failed_output_leaves_no_files(program: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    bad = tmp_path / "program.mlir"
    assert plan_opt.main([str(bad), "-o", str(tmp_path / "no" / "x")]) == 1
    assert sorted(tmp_path.iterdir()) == before


def same_outputs(program: Path) -> dict[str, int]:
    csv = program.with_suffix(".csv")
    csv.write_text("id,lower,upper,size\na,0,1,8\n")
    file, out = str(program), str(program.parent / "both")
    found: dict[str, int] = {}
    for name, main, arguments in (
        (
            "plan-opt",
            plan_opt.main,
            ["-p", "plan-pipeline", "-o", out, "--report", out],
        ),
        ("plan-run", plan_run.main, ["--outputs", out, "--report", out]),
        ("plan-audit", plan_audit.main, ["--json", out, "--sarif", out]),
        ("plan-solve", plan_solve.main, ["-o", out, "--report", out]),
        ("plan-view", plan_view.main, ["-o", out, "--svg", out]),
    ):
        source = str(csv) if name in ("plan-solve", "plan-view") else file
        try:
            found[name] = main([source, *arguments])
        except SystemExit as exit:
            found[name] = exit.code if isinstance(exit.code, int) else -1
    return found


def test_two_outputs_cannot_go_to_one_file(program: Path) -> None:
    assert set(same_outputs(program).values()) == {2}


# Time and memory


def hard_problem(count: int = 300) -> Problem:
    """Returns a problem so dense that searches use all of their time limit."""
    random = Random(1)
    buffers: list[Buffer] = []
    for n in range(count):
        start = random.randrange(200)
        end = start + random.randint(1, 60)
        buffers.append(Buffer(f"b{n}", random.randint(1, 10_000), start, end))
    return Problem(buffers)


def load_kernels(
    problem: Problem, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loads numba and the kernels of a strategy, which may compile them: this can take
    longer than the time limit, once in a process."""
    with monkeypatch.context() as patch:
        for name in ("_LOADING", "_READING", "_COMPILING"):
            patch.setattr(kernels, name, 0.0)
        solve(problem, strategy, Limits(time_limit=0.1))


@pytest.mark.parametrize("strategy", ["auto", "usmp-hill-climb"])
@pytest.mark.parametrize("limit", [0.1, 0.4])
def test_searches_keep_their_time_limit(
    strategy: str, limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_kernels(hard_problem(), strategy, monkeypatch)
    start = time.process_time()
    plan = solve(hard_problem(), strategy, Limits(time_limit=limit))
    taken = time.process_time() - start
    if not plan.optimal:
        assert taken <= 1.1 * limit + 0.1


@pytest.mark.thorough
@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_all_strategies_keep_their_time_limit(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a limit, most strategies would take some seconds for 10,000 buffers. The
    test measures CPU time."""
    for module in (deadline, registry, budget, auto):
        monkeypatch.setattr(module, "monotonic", time.process_time)
    problem = hard_problem(10_000)
    load_kernels(problem, strategy, monkeypatch)
    start = time.process_time()
    plan = solve(problem, strategy, Limits(time_limit=0.1))
    assert time.process_time() - start <= 1.05 * 0.1 + 1
    assert validate(problem, plan.offsets) is None


def test_a_stop_ends_the_searches_in_its_scope() -> None:
    with deadline.stoppable() as stop:
        assert not deadline.passed()
        Thread(target=stop).start()
        plan = solve(hard_problem(), "auto", Limits(time_limit=600))
        assert plan.was_ended
        assert deadline.passed()
    assert not deadline.passed()


def test_out_of_memory_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "large.mlir"
    path.write_text(PROGRAM.replace("4xf32", "4000000000xf32"))

    limited = """
import resource, runpy

resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
runpy.run_module("tensorplan.tools.plan_run", run_name="__main__")
"""
    told = subprocess.run(
        [sys.executable, "-c", limited, str(path)], capture_output=True, text=True
    )
    assert told.returncode == 1
    assert "out of memory" in told.stderr
    assert "Traceback" not in told.stderr
