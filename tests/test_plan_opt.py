"""Tests `plan-opt`: exit codes, atomic writes of files, reproducers, and interrupts."""

import gc
import logging
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tensorplan.dialects.diagnostics import remark
from tensorplan.dialects.garbage import ALLOCATIONS
from tensorplan.passes import get_all_passes
from tensorplan.support.remarks import REMARKS
from tensorplan.tools import pipelines
from tensorplan.tools.common import UsageError, guard, write_atomically
from tensorplan.tools.plan_opt import main, parse_arguments
from tensorplan.tools.plan_opt_main import PlanOptMain

PROGRAM = """\
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.negate %a : tensor<4xf32>
  %1 = tgraph.exponential %0 : tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a file in the current folder that contains a program."""
    monkeypatch.chdir(tmp_path)
    Path("program.mlir").write_text(PROGRAM)
    return "program.mlir"


class Crash(ModulePass):
    """A pass that crashes."""

    name = "test-crash"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise KeyError("nothing there")


class Break(ModulePass):
    """A pass that leaves invalid IR: it swaps the first two operations."""

    name = "test-break"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        block = next(iter(op.ops)).regions[0].block
        first, second, *_ = block.ops
        first.detach()
        block.insert_op_after(first, second)


class Remark(ModulePass):
    """A pass that emits a remark for every function."""

    name = "test-remark"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in op.ops:
            remark("left as it is", func)


class TestMain(PlanOptMain):
    """`plan-opt` with the test passes of this file."""

    __test__ = False

    def register_all_passes(self) -> None:
        super().register_all_passes()
        for cls in (Crash, Break, Remark):
            self.register_pass(cls.name, lambda cls=cls: cls)


def run(*args: str) -> int:
    def body() -> int:
        options = parse_arguments(args)
        TestMain(options).run()
        return 0

    return guard("plan-opt", body)


def test_exit_code_of_success_is_0(program: str, capsys: pytest.CaptureFixture[str]):
    assert main([program]) == 0
    out, err = capsys.readouterr()
    assert "tgraph.exponential %0" in out
    assert err == ""


def test_exit_code_of_invalid_input_is_1(
    program: str, capsys: pytest.CaptureFixture[str]
):
    Path(program).write_text(PROGRAM.replace("negate %a", "negate %b"))
    assert main([program]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "program.mlir:2:22: error: %b is not defined",
        "  %0 = tgraph.negate %b : tensor<4xf32>",
        "                     ^",
    ]


@pytest.mark.parametrize(
    "args",
    [
        ("-p", "no-such-pass"),
        ("-p", "plan-memory{alignment=x}"),
        ("-p", "plan-memory{"),
        ("-t", "no-such-target"),
        ("-t", "mlir{no-such-option=1}"),
        ("--print-ir-after", "no-such-pass"),
        ("--split-input-file", "--report", "report.json"),
        ("--no-such-flag",),
    ],
)
def test_exit_code_of_wrong_usage_is_2(
    program: str, args: tuple[str, ...], capsys: pytest.CaptureFixture[str]
):
    try:
        code = main([program, *args])
    except SystemExit as exit:  # argparse exits
        code = exit.code
    assert code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "plan-opt: error: " in err


@pytest.mark.parametrize("culprit", ["test-crash", "test-break"])
def test_exit_code_of_a_bug_is_70_with_a_reproducer(
    program: str,
    culprit: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    assert run(program, "-p", f"tgraph-place-devices{{default=x}},{culprit},cse") == 70
    assert not list(Path().glob("plan-opt-reproducer*"))
    out, err = capsys.readouterr()
    assert out == ""
    said, how = err.splitlines()
    assert said.startswith("plan-opt: this is a bug in plan-opt: ")
    assert said.endswith(f"in pass {culprit}")
    prefix, command = how.split("to reproduce: ")
    assert prefix == "note: "
    tool, *args = shlex.split(command)
    assert tool == "plan-opt"
    assert Path(args[0]).parent == temporary
    first, *rest = Path(args[0]).read_text().splitlines()
    assert first == f"// {command}"
    # The reproducer has the IR before the failing pass, after the preceding passes.
    assert 'tensor<4xf32, "x">' in "\n".join(rest)
    assert run(*args) == 70
    again = capsys.readouterr().err.splitlines()[0]
    assert again.split(":")[2] == said.split(":")[2]  # the kind of exception
    assert again.endswith(f"in pass {culprit}")


def test_invalid_ir_from_unverified_operations_is_invalid_input(
    program: str, capsys: pytest.CaptureFixture[str]
):
    Path(program).write_text(
        "func.func @f() {\n"
        '  %0 = "foreign.a"() : () -> i32\n'
        '  "foreign.b"(%0) : (i32) -> ()\n'
        "  func.return\n"
        "}\n"
    )
    assert run(program, "--allow-unregistered-dialect", "-p", "test-break") == 1
    assert "program.mlir:3:3: error: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (PROGRAM.encode(), "program.mlir:1:1: error: "),
        (
            f"module {{\n{PROGRAM}}}\n// -----\n%\n".encode(),
            "program.mlir:9:1: error: ",
        ),
        (b'"\xff"', "program.mlir is neither MLIR text"),
    ],
)
def test_without_an_implicit_module(
    program: str, data: bytes, message: str, capsys: pytest.CaptureFixture[str]
):
    Path(program).write_bytes(data)
    assert run(program, "--no-implicit-module", "--split-input-file") == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("text", [None, "[sram]\ncapacity = 0"])
@pytest.mark.parametrize(
    "options",
    [
        ("--target-memory", "memory.toml"),
        ("-p", 'plan-attach-target{file="memory.toml"}'),
        ("-p", 'plan-pipeline{target-memory="memory.toml"}'),
    ],
    ids=lambda options: options[-1].partition("{")[0],
)
def test_bad_target_file_is_invalid_input(
    options: Sequence[str],
    text: str | None,
    program: str,
    capsys: pytest.CaptureFixture[str],
):
    if text is not None:
        Path("memory.toml").write_text(text)
    assert run(program, *options) == 1
    assert capsys.readouterr().err.startswith("plan-opt: error: memory.toml: ")


def test_traceback_on_request(program: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PLAN_OPT_TRACEBACK", "1")
    with pytest.raises(Exception, match="this is a bug") as caught:
        run(program, "-p", "test-crash")
    assert isinstance(caught.value.__cause__, KeyError)


def test_remarks_go_to_stderr(program: str, capsys: pytest.CaptureFixture[str]):
    assert run(program, "-p", "test-remark") == 0
    out, err = capsys.readouterr()
    assert "func.func" in out
    assert err == "program.mlir:1:1: remark: left as it is\n"
    assert not [h for h in REMARKS.handlers if isinstance(h, logging.StreamHandler)]


def test_interrupt_is_quiet(capsys: pytest.CaptureFixture[str]):
    def body() -> int:
        raise KeyboardInterrupt

    assert guard("plan-opt", body) == 130
    assert capsys.readouterr() == ("", "")


def test_tools_raise_the_garbage_collection_threshold():
    def body() -> int:
        return gc.get_threshold()[0]

    assert guard("plan-run", body) == ALLOCATIONS > gc.get_threshold()[0]


def test_closed_pipe_is_quiet(tmp_path: Path):
    file = tmp_path / "large.mlir"
    line = "  %{} = tgraph.negate %a : tensor<4xf32>\n"
    body = "".join(line.format(index) for index in range(2000))
    file.write_text(f"func.func @f(%a: tensor<4xf32>) {{\n{body}  func.return\n}}\n")
    tool = subprocess.Popen(
        [sys.executable, "-m", "tensorplan.tools.plan_opt", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert tool.stdout
    assert tool.stderr
    tool.stdout.close()
    assert tool.stderr.read() == b""
    assert tool.wait() == 141
    tool.stderr.close()


def test_output_does_not_depend_on_the_hash_seed():
    train_step = (
        Path(__file__).parent.parent / "lit_tests/plan-pipeline/train_step.mlir"
    )
    command = [sys.executable, "-m", "tensorplan.tools.plan_opt", str(train_step)]
    outputs = {
        subprocess.run(
            [*command, "-p", "plan-pipeline"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(outputs) == 1
    assert b"memref.view" in outputs.pop()


def test_heavy_libraries_are_imported_lazily():
    code = (
        "import sys, tensorplan.tools.plan_opt as p\n"
        "assert p.main(['-', '-p', 'plan-check']) == 0\n"
        "print({'numpy', 'jax', 'jaxlib', 'xdsl.interpreter'} & sys.modules.keys())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        input=PROGRAM,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.endswith("set()\n")


class TestWriteAtomically:
    def test_links_stay_and_modes_are_kept(self, tmp_path: Path):
        file, link = tmp_path / "file", tmp_path / "link"
        file.write_text("old")
        file.chmod(0o640)
        link.symlink_to(file)
        write_atomically(str(link), b"new")
        assert link.is_symlink()
        assert file.read_bytes() == b"new"
        assert file.stat().st_mode & 0o777 == 0o640

    def test_new_files_follow_the_umask(self, tmp_path: Path):
        before = os.umask(0o027)
        try:
            write_atomically(str(tmp_path / "file"), b"new")
        finally:
            os.umask(before)
        assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640

    def test_failure_keeps_the_old_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        def fail(*_: object) -> None:
            raise OSError(28, "No space left on device")

        file = tmp_path / "file"
        file.write_text("old")
        monkeypatch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="No space left") as caught:
            write_atomically(str(file), b"new")
        assert caught.value.filename == str(file)
        assert file.read_text() == "old"
        assert [path.name for path in tmp_path.iterdir()] == ["file"]


class TestPipelines:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", []),
            ("plan-check", ["plan-check"]),
            (
                " plan-check ,  plan-memory { alignment = 8 } ",
                ["plan-check", "plan-memory{alignment=8}"],
            ),
            (
                'plan-memory{strategy="naive"  alignment=8}',
                ['plan-memory{alignment=8 strategy="naive"}'],
            ),
            (
                'tgraph-place-devices{ default="a , b" }',
                ['tgraph-place-devices{default="a , b"}'],
            ),
        ],
    )
    def test_spaces(self, text: str, expected: list[str]):
        assert [str(p) for p in pipelines.parse(text, get_all_passes())] == expected

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("plan-memori", "unknown pass 'plan-memori'; did you mean 'plan-memory'"),
            ("x", "unknown pass 'x' (--list-passes lists them)"),
            ("plan-in-place{x=1}", "pass plan-in-place has no options, got 'x'"),
            ("plan-memory{alignment}", "option 'alignment' is '', expected int"),
            ("plan-memory{alignment=1,2}", "option 'alignment' is '1,2', expected int"),
            ("plan-memory{alignment=3}", "alignment is 3, expected a power of two"),
        ],
    )
    def test_errors(self, text: str, message: str):
        with pytest.raises(UsageError) as caught:
            pipelines.parse(text, get_all_passes())
        assert message in str(caught.value)


@pytest.mark.parametrize("separator", ["", " ", " effort=low"])
def test_sizes_with_a_fraction_need_no_quotes(program: str, separator: str):
    assert run(program, "-p", f"plan-pipeline{{budget=1.5MiB{separator}}}") == 0


def test_url_is_refused(capsys: pytest.CaptureFixture[str]):
    assert main(["https://example.com/a.mlir"]) == 1
    error = "https://example.com/a.mlir: error: this is a URL, expected a file\n"
    assert capsys.readouterr().err == error


def test_output_path_is_checked_before_the_run(
    program: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["no-such-program.mlir", "-o", "no/such/folder.mlir"]) == 1
    error = "no/such/folder.mlir: error: no such file or directory\n"
    assert capsys.readouterr().err == error
