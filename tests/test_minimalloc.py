"""Tests the interfaces of minimalloc that other programs call.

Deeploy calls the command; snax-mlir and others call the Python modules.
"""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tensorplan.integrations import minimalloc as mm

EXAMPLE = """id,lower,upper,size
b1,0,3,4
b2,3,9,4
b3,0,9,4
b4,9,21,4
b5,0,21,4
"""

DEEPLOY = """id,lower,upper,size
TILING_CODEGEN_L1_0_input_0_ref,0,1,8192
TILING_CODEGEN_L1_0_weight_ref,0,1,2304
TILING_CODEGEN_L1_0_output_ref,0,2,8192
TILING_CODEGEN_L1_0_buffer_0,0,1,512
TILING_CODEGEN_L1_1_output_ref,1,2,8192
"""
"""A file that Deeploy's `Tiler.minimalloc` wrote."""


def run(tmp_path: Path, text: str, *flags: str) -> tuple[int, Path]:
    (tmp_path / "in.csv").write_text(text)
    output = tmp_path / "out.csv"
    paths = [f"--input={tmp_path / 'in.csv'}", f"--output={output}"]
    return mm.main([*paths, *flags]), output


def test_deeploy_calls_the_command(tmp_path: Path) -> None:
    """Calls the command and reads its output as Deeploy's `TilerExtension.py` does."""
    install = tmp_path / "minimalloc"
    module = "tensorplan.integrations.minimalloc"
    install.write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n')
    install.chmod(0o755)
    name = str(tmp_path / "input_minimalloc")
    Path(f"{name}.csv").write_text(DEEPLOY)
    command = [str(install), "--capacity=27200", f"--input={name}.csv"]
    command.append(f"--output={name}_out.csv")
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with open(f"{name}_out.csv", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["id", "lower", "upper", "size", "offset"]
    spaces = {row[0]: (int(row[-1]), int(row[-1]) + int(row[-2])) for row in rows}
    assert spaces.keys() == {line.split(",")[0] for line in DEEPLOY.split()[1:]}
    assert max(end for _, end in spaces.values()) <= 27200
    tight = subprocess.run([*command, "--capacity=19199"], capture_output=True)
    assert tight.returncode == 1


def test_snax_calls_the_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Calls the module as `snax_allocate.py` of snax-mlir does in its own test."""
    (tmp_path / "minimalloc.py").write_text(f"from {mm.__name__} import *\n")
    monkeypatch.syspath_prepend(tmp_path)
    from minimalloc import Buffer, Problem  # pyright: ignore

    buffers = [Buffer(str(n), i, i, 13, a) for n, i, a in ((1, 2, 10), (2, 4, 10))]
    buffers.append(Buffer("3", 8, 8, 13, 14))
    for buffer, end in zip(buffers, (6, 7, 10), strict=True):
        buffer.end_time = end
    solution = Problem(buffers, 10000).solve()
    pointers = dict(zip((b.id for b in buffers), solution, strict=True))
    assert sorted(pointers.items())[::2] == [("1", pointers["1"]), ("3", 0)]
    assert {pointers["1"], pointers["2"]} == {0, 20}
    assert Problem([Buffer("x", 0, 0, 8, 0)], 8).solve()[0] == 0  # no alignment
    with pytest.raises(mm.MiniMallocError, match="no plan within 32 bytes"):
        Problem(buffers, 32).solve()
    del sys.modules["minimalloc"]


def test_solver_and_validator() -> None:
    buffers = [
        mm.Buffer("a", mm.Lifespan(0, 10), size=4, gaps=[mm.Gap(mm.Lifespan(2, 8))]),
        mm.Buffer("b", mm.Lifespan(2, 8), size=4, alignment=4),
        mm.Buffer("c", mm.Lifespan(0, 10), size=2, offset=4),
    ]
    params = mm.SolverParams()
    params.timeout = mm.Duration.from_seconds(10)
    setattr(params, "canonical_only", False)  # noqa: B010
    problem = mm.Problem(buffers, capacity=6)
    solution = mm.Solver(params).solve(problem)
    assert solution == mm.Solution([0, 0, 4], 6)
    assert solution is not None
    assert mm.validate(problem, solution) is mm.ValidationResult.GOOD
    assert mm.Solver().solve(mm.Problem(buffers, capacity=5)) is None
    collision = [mm.Buffer(x, mm.Lifespan(0, 1), 2, offset=0) for x in "ab"]
    assert mm.Solver().solve(mm.Problem(collision, capacity=9)) is None
    assert mm.Problem(collision, 9).strip_solution() == mm.Solution([0, 0])
    assert mm.Problem(buffers).strip_solution() is None


@pytest.mark.parametrize(
    ("offsets", "height", "result"),
    [
        ([0, 4], 6, "GOOD"),
        ([0], 4, "BAD_SOLUTION"),
        ([1, 4], 6, "BAD_FIXED"),
        ([0, -2], 4, "BAD_OFFSET"),
        ([0, 8], 10, "BAD_OFFSET"),
        ([0, 5], 7, "BAD_ALIGNMENT"),
        ([0, 4], 5, "BAD_HEIGHT"),
        ([0, 4], 7, "BAD_HEIGHT"),
        ([0, 2], 4, "BAD_OVERLAP"),
    ],
)
def test_validation(offsets: list[int], height: int, result: str) -> None:
    buffers = [
        mm.Buffer("a", mm.Lifespan(0, 2), 4, offset=0),
        mm.Buffer("b", mm.Lifespan(1, 3), 2, 2),
    ]
    found = mm.validate(mm.Problem(buffers, 9), mm.Solution(offsets, height))
    assert found.name == result


def test_csv_of_both_formats(tmp_path: Path) -> None:
    text = (
        "id,lower,upper,size,alignment,hint,gaps\na,0,9,4,8,-1,2-3 5-6\nb,1,2,3,1,7,\n"
    )
    problem = mm.from_csv(text)
    assert problem is not None
    assert mm.to_csv(problem) == text
    old = mm.to_csv(problem, mm.Solution([0, 8], 11), old_format=True)
    assert old.splitlines()[:2] == [
        "id,start,end,size,alignment,hint,gaps,offset",
        "a,0,8,4,8,-1,2-2 5-5,0",
    ]
    again = mm.from_csv(old)
    assert again is not None
    assert again.strip_solution() == mm.Solution([0, 8])
    assert again == problem
    mm.to_csv_file(tmp_path / "x.csv", problem)
    assert mm.from_csv_file(tmp_path / "x.csv") == problem
    assert mm.from_csv("id,lower\n") is None


@pytest.mark.parametrize(
    "flags",
    [
        ["--capacity=12", "--timeout=1m30s", "--nocanonical_only", "--validate"],
        ["--capacity", "12", "--timeout", "inf", "--no-section-inference"],
        ["--minimize-capacity", "--preordering-heuristics=WAT"],
        ["--check_dominance=false", "--minimize_capacity"],
    ],
)
def test_flags_of_both_commands(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, output = run(tmp_path, EXAMPLE, *flags)
    assert code == 0
    error = capsys.readouterr().err
    assert "Elapsed time:" in error
    assert ("PASS" in error) == ("--validate" in flags)
    found = mm.from_csv_file(output)
    assert found is not None
    solution = found.strip_solution()
    assert solution is not None
    solution.height, found.capacity = 12, 12
    assert mm.validate(found, solution) is mm.ValidationResult.GOOD


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        (EXAMPLE, ["--capacity=11"], "no plan within 11 bytes"),
        (EXAMPLE, [], "--capacity is 0"),
        ("id,lower\n", ["--capacity=9"], r"in.csv:1: there is no column upper or end"),
        (
            "id,lower,upper,size,gaps\na,0,9,1,2-3@0:1\n",
            ["--capacity=9"],
            "in.csv:2: .*windows in gaps are not supported",
        ),
    ],
)
def test_errors(
    text: str,
    flags: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, output = run(tmp_path, text, *flags)
    assert code == 1
    assert not output.exists()
    assert re.search(message, capsys.readouterr().err)
    assert mm.main(["--input=nowhere", f"--output={os.devnull}", "--capacity=1"]) == 1


def test_usage_errors(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        mm.main(["--input=a", "--output=b", "--timeout=soon"])
    assert exit_.value.code == 2
    assert "'soon' is not a duration" in capsys.readouterr().err
