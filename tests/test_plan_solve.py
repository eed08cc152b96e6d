"""Tests `plan-solve` and its CSV format: reading, writing, errors, and interrupts."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rectangles import worn_rectangle

from tensorplan.planning import (
    STRATEGIES,
    Buffer,
    Limits,
    Placement,
    Problem,
    Progress,
    csv_format,
    deadline,
    solve,
)
from tensorplan.tools import progress as progress_lines
from tensorplan.tools.plan_solve import main

CHAIN = "id,lower,upper,size\na,0,2,64\nb,1,3,64\nc,2,4,64\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("chain.csv").write_text(CHAIN)


@pytest.mark.parametrize(
    "header",
    ["id,lower,upper,size", "buffer,begin,end,size", "buffer_id,start,end,size"],
)
def test_aliases_of_column_names(header: str):
    table = csv_format.read(f"{header}\nx,3,7,64\n")
    assert table.buffers == [Buffer("x", 64, 3, 7, gaps=[])]


def test_optional_columns_and_values():
    text = (
        "hint,size,gaps,other,alignment,id,offset,lower,upper\n"
        "8,64,2-4 6-7,kept,32,a,96,0,10\n"
        "\n"
        " ,1, ,, ,b,0,-5,5\n"
    )
    a = Buffer("a", 64, 0, 10, 32, [(2, 4), (6, 7)], hint=8)
    b = Buffer("b", 1, -5, 5, 16, [])
    assert csv_format.read(text, alignment=16).buffers == [a, b]
    kept = csv_format.read(text, keep_offsets=True).buffers
    assert [b.offset for b in kept] == [96, 0]


def test_inclusive_ends():
    table = csv_format.read("id,begin,end,size,gaps\na,0,9,1,2-3\n", inclusive=True)
    assert table.buffers == [Buffer("a", 1, 0, 10, gaps=[(2, 4)])]


def test_written_rows_equal_read_rows():
    text = 'id,note,lower,upper,size\na,"x, ""y""",0,1,5\nb,,0,1,6\n'
    written = csv_format.write(csv_format.read(text), [6, 0])
    assert written == (
        'id,note,lower,upper,size,offset\na,"x, ""y""",0,1,5,6\nb,,0,1,6,0\n'
    )
    again = csv_format.write(csv_format.read(written), [0, 5])
    assert again.endswith("0,1,5,0\nb,,0,1,6,5\n")


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_stay(separator: str):
    text = "id,lower,upper,size\na,0,1,5\n".replace(",", separator)
    table = csv_format.read(text)
    assert table.buffers == [Buffer("a", 5, 0, 1, gaps=[])]
    assert csv_format.write(table, [3]) == (
        "id,lower,upper,size,offset\na,0,1,5,3\n".replace(",", separator)
    )


def test_sizes_and_alignments_may_have_units():
    text = "id,lower,upper,size,alignment\na,0,1,1.5KiB,2KB\nb,0,1,7,\n"
    assert csv_format.read(text).buffers == [
        Buffer("a", 1536, 0, 1, 2000, gaps=[]),
        Buffer("b", 7, 0, 1, gaps=[]),
    ]


@given(
    st.lists(
        st.tuples(
            st.text("abc,\"' \u00e9", min_size=1),
            st.integers(0, 10**12),
            st.integers(0, 99),
            st.integers(1, 9),
        ),
        unique_by=lambda row: row[0].strip(),
    )
)
def test_round_trip(rows: list[tuple[str, int, int, int]]):
    buffers = [Buffer(id, size, at, at + n, gaps=[]) for id, size, at, n in rows]
    header = ["id", "lower", "upper", "size"]
    fields = [[b.id, str(b.start), str(b.end), str(b.size)] for b in buffers]
    text = csv_format.write(csv_format.Table(header, fields, buffers), range(len(rows)))
    read = csv_format.read(text, keep_offsets=True).buffers
    for offset, (wanted, got) in enumerate(zip(buffers, read, strict=True)):
        assert got.offset == offset
        assert (got.size, got.start, got.end) == (wanted.size, wanted.start, wanted.end)
        assert got.id == wanted.id.strip()


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "there is no header, expected id,lower,upper,size"),
        ("\n\n", 2, "there is no header"),
        ("id,lower,size\n", 1, "there is no column upper or end"),
        (
            "id,lower,start,upper,size\n",
            1,
            "columns lower and start have the same meaning",
        ),
        (f"{CHAIN}a,1,2,3\n", 5, "buffer a is in line 2 already"),
        (f"{CHAIN}\nd,1,2,3\n b ,1,2,3\n", 7, "buffer b is in line 3 already"),
        (f"{CHAIN}d,1,2\n", 5, "there are 3 fields, expected 4"),
        (f"{CHAIN}\nd,1,2,3,4\n", 6, "there are 5 fields, expected 4"),
        (f"{CHAIN}d,1,two,3\n", 5, "upper is 'two', expected an integer"),
        (f"{CHAIN}d,1,2,\n", 5, "size is '', expected an integer"),
        (f"{CHAIN}d,1,2,1e3\n", 5, "size is '1e3', expected an integer"),
        (f"{CHAIN}d,1,2,1.5KB2\n", 5, "size is '1.5KB2', expected an integer"),
        (f"{CHAIN}d,1,2,1.5XB\n", 5, "size is '1.5XB', expected bytes such as 4096"),
        (f"{CHAIN}d,1,2,{'9' * 5000}\n", 5, "size is '999"),
        (f"{CHAIN}d,2,1,4\n", 5, "buffer d: live range is [2, 1)"),
        (f"{CHAIN}d,1,2,-4\n", 5, "buffer d: size is -4, expected 0 or more"),
        (f'{CHAIN}"d,1,2,4\n', 5, "unexpected end of data"),
        ("id,lower,upper,size,gaps\na,0,9,1,2\n", 2, "gap is '2', expected FIRST-END"),
        ("id,lower,upper,size,gaps\na,0,9,1,4-2\n", 2, "buffer a: gap is [4, 2)"),
        ("id,lower,upper,size,gaps\na,0,9,1,2-4@0:1\n", 2, "windows in gaps are not"),
    ],
)
def test_malformed_rows(
    text: str, line: int, reason: str, capsys: pytest.CaptureFixture[str]
):
    Path("bad.csv").write_text(text)
    assert main(["bad.csv"]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"bad.csv:{line}: error: ")
    assert reason in error
    assert error.count("\n") == 1


def test_file_that_is_not_utf8(capsys: pytest.CaptureFixture[str]):
    Path("bad.csv").write_bytes(CHAIN.encode() + b"d\xff,0,1,2\n")
    assert main(["bad.csv"]) == 1
    assert capsys.readouterr().err == "bad.csv:5: error: this is not UTF-8\n"


def test_byte_order_mark_and_carriage_returns():
    text = CHAIN.replace("\n", "\r\n")
    Path("chain.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert main(["chain.csv", "-o", "out.csv"]) == 0
    assert (
        Path("out.csv").read_text().startswith("id,lower,upper,size,offset\na,0,2,64,")
    )


def test_all_strategies_are_reported_and_the_best_is_written():
    assert main("chain.csv --strategy all -o out.csv --report r.json".split()) == 0
    report = json.loads(Path("r.json").read_text())
    assert (report["buffers"], report["lower_bound_bytes"]) == (3, 128)
    assert [r["strategy"] for r in report["results"]] == list(STRATEGIES)
    by_name = {r["strategy"]: r for r in report["results"]}
    assert by_name["naive"] == {
        "strategy": "naive",
        "peak_bytes": 192,
        "optimal": False,
        "seconds": by_name["naive"]["seconds"],
    }
    assert by_name["tflite"]["optimal"]
    table = csv_format.read(Path("out.csv").read_text(), keep_offsets=True)
    assert max(b.offset + b.size for b in table.buffers if b.offset is not None) == 128


def test_files_and_folders(capsys: pytest.CaptureFixture[str]):
    Path("all").mkdir()
    for name in ("b.csv", "a.tsv"):
        Path("all", name).write_text(CHAIN)
    Path("all", "notes.txt").write_text("none")
    assert main("chain.csv all --strategy naive,auto --table csv".split()) == 0
    rows = [row[:5] for row in csv.reader(io.StringIO(capsys.readouterr().out))]
    assert rows[0] == ["file", "strategy", "peak", "lower bound", "gap"]
    files = ["chain.csv", "all/a.tsv", "all/b.csv"]
    assert [row[0] for row in rows[1:]] == [file for file in files for _ in range(2)]
    assert rows[1][1:] == ["naive", "192", "128", "50.00%"]


def test_bad_file_does_not_stop_the_others(capsys: pytest.CaptureFixture[str]):
    Path("bad.csv").write_text("id\n")
    assert main(["bad.csv", "chain.csv"]) == 1
    out, err = capsys.readouterr()
    assert "bad.csv:1: error: there is no column lower" in err
    assert "chain.csv" in out


def test_folder_without_buffers(capsys: pytest.CaptureFixture[str]):
    Path("none").mkdir()
    assert main(["none"]) == 1
    error = "none: error: a folder without .csv or .tsv files\n"
    assert capsys.readouterr().err == error


def test_markdown_table(capsys: pytest.CaptureFixture[str]):
    assert main("chain.csv --strategy naive --table markdown".split()) == 0
    head, rule, row = capsys.readouterr().out.splitlines()
    assert head == "| strategy | peak | lower bound | gap | CPU s | optimal |"
    assert rule == "| --- | --: | --: | --: | --: | --: |"
    assert row.startswith("| naive | 192 | 128 | 50.00% | ")


def test_capacity(capsys: pytest.CaptureFixture[str]):
    command = "chain.csv --strategy naive -o out.csv --report r.json --capacity"
    assert main([*command.split(), "191"]) == 1
    assert capsys.readouterr().err == (
        "chain.csv: error: the best plan needs 192 bytes, expected at most 191 "
        "(--capacity)\n"
    )
    assert not Path("out.csv").exists()
    assert Path("r.json").exists()
    assert main([*command.split(), "192"]) == 0
    assert Path("out.csv").exists()


@pytest.mark.slow
def test_search_ends_when_the_capacity_is_met():
    """The strategy does not search for a plan that is better than the capacity
    requires."""
    write_hard("hard.csv")
    buffers = csv_format.read(Path("hard.csv").read_text()).buffers
    quick = solve(Problem(buffers), "auto", Limits(effort=0)).peak
    best = solve(Problem(buffers), "auto", Limits(effort=0.1)).peak
    assert best < quick
    capacity = (best + quick) // 2
    seen: list[int] = []
    limits = Limits(progress=lambda progress: seen.append(progress.peak))
    plan = solve(Problem(buffers, capacity), "auto", limits)
    assert plan.peak <= capacity
    assert all(peak > capacity for peak in seen[:-1])


def test_pools_are_planned_separately(capsys: pytest.CaptureFixture[str]):
    Path("pools.csv").write_text(
        "pool,id,lower,upper,size\nsram,a,0,2,64\ndram,b,0,2,100\nsram,c,1,2,32\n"
    )
    assert main("pools.csv -o out.csv --report r.json --capacity 100".split()) == 0
    table = csv_format.read(Path("out.csv").read_text(), keep_offsets=True)
    assert [(b.pool, b.offset) for b in table.buffers] == [
        ("sram", 0),
        ("dram", 0),
        ("sram", 64),
    ]
    assert json.loads(Path("r.json").read_text())["lower_bound_bytes"] == 196
    assert main("pools.csv --capacity 99".split()) == 1
    assert "the best plan needs 100 bytes" in capsys.readouterr().err


HINTED = "id,lower,upper,size,hint\n"


def test_hints_are_the_initial_plan():
    """The 192 bytes of the hinted plan are kept if they fit the capacity. Without a
    capacity, `auto` finds a better plan."""
    rows = ["a,0,2,64,64", "b,1,3,64,128", "c,2,4,64,0"]
    Path("hinted.csv").write_text(HINTED + "\n".join(rows))
    assert main("hinted.csv -o out.csv --capacity 192".split()) == 0
    table = csv_format.read(Path("out.csv").read_text(), keep_offsets=True)
    assert [b.offset for b in table.buffers] == [64, 128, 0]
    assert main("hinted.csv -o out.csv".split()) == 0
    table = csv_format.read(Path("out.csv").read_text(), keep_offsets=True)
    assert max(b.offset + b.size for b in table.buffers if b.offset is not None) == 128


def test_plan_is_never_worse_than_the_hints():
    write_hard("hard.csv")
    buffers = csv_format.read(Path("hard.csv").read_text()).buffers
    best = solve(Problem(buffers), "auto", Limits(effort=0.1))
    quick = solve(Problem(buffers), "auto", Limits(effort=0))
    assert best.peak < quick.peak
    pairs = zip(buffers, best.offsets, strict=True)
    hinted = [replace(b, hint=offset) for b, offset in pairs]
    assert solve(Problem(hinted), "auto", Limits(effort=0)).peak == best.peak
    most = [replace(b, hint=b.hint if n % 9 else None) for n, b in enumerate(hinted)]
    assert solve(Problem(most), "auto", Limits(effort=0)).peak <= quick.peak


def test_unsound_and_negative_hints_are_ignored():
    text = f"{HINTED}a,0,2,64,0\nb,1,3,64,32\nc,2,4,64,-1\n"
    buffers = csv_format.read(text).buffers
    assert [b.hint for b in buffers] == [0, 32, None]
    assert solve(Problem(buffers), "auto").peak == 128


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("model.mlir", b"func.func @main() {}"),
        ("model.csv", b'"builtin.module"() ({\n}) : () -> ()'),
        ("model", b"// a comment\nmodule {\n}"),
        ("model", b"#loc = loc(unknown)\nmodule @jit_step attributes {} {\n}"),
        ("model", b"ML\xefR\x01"),
        ("model.onnx", b"\x08\x08\xff"),
    ],
)
def test_programs_are_refused(
    name: str, data: bytes, capsys: pytest.CaptureFixture[str]
):
    Path(name).write_bytes(data)
    assert main([name]) == 1
    error = capsys.readouterr().err
    assert error.startswith(
        f"{name}: error: this is a program, expected buffers as CSV"
    )
    assert "plan-opt" in error


def interrupted(problem: Problem, limits: Limits) -> Placement:
    """A strategy that Ctrl-C interrupts, and that polls its deadline."""
    os.kill(os.getpid(), signal.SIGINT)
    while not deadline.passed():
        time.sleep(0.001)
    return Placement([0, 64, 0])


def test_interrupt_keeps_the_best_plan(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(STRATEGIES, "interrupted", interrupted)
    before = signal.getsignal(signal.SIGINT)
    assert main("chain.csv --strategy naive,interrupted,tlsf -o out.csv".split()) == 130
    out, error = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()[1:]] == [
        "naive",
        "interrupted",
    ]
    assert error == (
        "plan-solve: interrupted: the best plan so far has 128 bytes and is written to "
        "out.csv\n"
    )
    table = csv_format.read(Path("out.csv").read_text(), keep_offsets=True)
    assert [b.offset for b in table.buffers] == [0, 64, 0]
    assert signal.getsignal(signal.SIGINT) is before
    assert not deadline.passed()


def test_interrupt_writes_no_plan_above_the_capacity(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(STRATEGIES, "interrupted", interrupted)
    command = "chain.csv --strategy interrupted -o out.csv --capacity 100"
    assert main(command.split()) == 130
    assert "128 bytes and is not written" in capsys.readouterr().err
    assert not Path("out.csv").exists()


def test_second_interrupt_ends_immediately(monkeypatch: pytest.MonkeyPatch):
    def stubborn(problem: Problem, limits: Limits) -> Placement:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("it goes on")

    monkeypatch.setitem(STRATEGIES, "stubborn", stubborn)
    assert main("chain.csv --strategy naive,stubborn -o out.csv".split()) == 130
    assert not Path("out.csv").exists()


@pytest.mark.thorough
@pytest.mark.parametrize("strategy", ["auto", "usmp-hill-climb"])
def test_interrupt_of_a_real_search(strategy: str):
    if strategy == "auto":  # hard, since `auto` proves easy problems optimal
        rows = [f"{b.id},{b.start},{b.end},{b.size}" for b in worn_rectangle()]
        Path("hard.csv").write_text("\n".join(["id,lower,upper,size", *rows]))
    else:
        write_hard("hard.csv", 3000)
    command = f"hard.csv --strategy {strategy} -o out.csv --time-limit 600".split()
    tool = subprocess.Popen(
        [sys.executable, "-m", "tensorplan.tools.plan_solve", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert tool.stdout
    tool.stdout.readline()  # the table's header, printed before the search
    time.sleep(1)
    tool.send_signal(signal.SIGINT)
    _, error = tool.communicate(timeout=20)
    assert tool.returncode == 130, error
    assert "is written to out.csv" in error
    table = csv_format.read(Path("out.csv").read_text(), keep_offsets=True)
    assert all(buffer.offset is not None for buffer in table.buffers)
    assert main(["out.csv", "--keep-offsets", "--strategy", "naive"]) == 0


def test_colliding_kept_offsets_are_refused(capsys: pytest.CaptureFixture[str]):
    Path("bad.csv").write_text(
        "id,lower,upper,size,offset\na,0,2,64,0\nb,1,3,64,32\nc,2,3,8,\n"
    )
    assert main(["bad.csv"]) == 0
    assert main(["bad.csv", "--keep-offsets"]) == 1
    assert capsys.readouterr().err == (
        "bad.csv: error: the offsets in the file: buffers a and b are both live in "
        "step 1 and share byte 32\n"
    )


def write_hard(path: str, count: int = 400) -> None:
    """Writes a problem so dense that searches use their whole budget."""
    random = Random(3)
    rows = ["id,lower,upper,size"]
    for n in range(count):
        start = random.randrange(100)
        end = start + random.randint(1, 60)
        rows.append(f"{n},{start},{end},{random.randint(1, 999)}")
    Path(path).write_text("\n".join(rows))


def test_no_buffers(capsys: pytest.CaptureFixture[str]):
    Path("none.csv").write_text("id,lower,upper,size\n")
    assert main(["none.csv", "--strategy", "all", "--capacity", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert len(lines) == len(STRATEGIES)
    for line in lines:
        assert line.split()[1:4] == ["0", "0", "0.00%"]


def test_limits_reach_the_strategy(monkeypatch: pytest.MonkeyPatch):
    seen: list[Limits] = []

    def spy(problem: Problem, limits: Limits) -> Placement:
        seen.append(limits)
        return Placement([0] * len(problem.buffers))

    monkeypatch.setitem(STRATEGIES, "spy", spy)
    Path("one.csv").write_text("id,lower,upper,size\na,0,2,64\n")
    main("one.csv --strategy spy --seed 7 --time-limit 0.5".split())
    main("one.csv --strategy spy".split())
    assert seen == [Limits(0.5, 7), Limits(60, 0)]
    assert seen[0].progress is None  # stderr is not a terminal


def test_progress_of_long_searches_is_shown(monkeypatch: pytest.MonkeyPatch):
    def slow(problem: Problem, limits: Limits) -> Placement:
        assert limits.progress
        limits.progress(Progress(192, 128, 0.5))
        limits.progress(Progress(192, 128, 2.0))
        return Placement([0, 64, 0])

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setitem(STRATEGIES, "slow", slow)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    assert main(["chain.csv", "--strategy", "slow"]) == 0
    shown = terminal.getvalue()
    assert shown.count("peak 192, lower bound 128, gap 50.00%, 2 s") == 1
    assert "0 s" not in shown
    assert shown.endswith("\r\x1b[K")


def test_progress_of_a_search_without_improvements(monkeypatch: pytest.MonkeyPatch):
    def silent(problem: Problem, limits: Limits) -> Placement:
        time.sleep(0.5)
        return Placement([0, 64, 0])

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(progress_lines, "DELAY", 0.05)
    monkeypatch.setattr(progress_lines, "INTERVAL", 0.01)
    monkeypatch.setitem(STRATEGIES, "silent", silent)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    assert main(["chain.csv", "--strategy", "silent"]) == 0
    assert terminal.getvalue().count("silent: 0 s") > 2
    assert terminal.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("chain.csv --strategy nope", "strategy is 'nope', expected one of "),
        ("chain.csv --strategy naive,", "strategy is '', expected one of "),
        ("chain.csv --alignment 0", "argument --alignment: 0, expected 1 or more"),
        ("chain.csv --time-limit nan", "argument --time-limit: nan, expected 0 or"),
        ("- -", "only one BUFFERS.csv can be stdin"),
        ("chain.csv chain.csv -o x.csv", "--output applies to one file, not 2"),
        ("chain.csv chain.csv --report r.json", "--report applies to one file, not 2"),
    ],
)
def test_wrong_usage(arguments: str, message: str, capsys: pytest.CaptureFixture[str]):
    try:
        code = main(arguments.split())
    except SystemExit as exit:  # raised by argparse
        code = exit.code
    assert code == 2
    assert message in capsys.readouterr().err


def test_strategies_are_listed(capsys: pytest.CaptureFixture[str]):
    assert main(["--list-strategies"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(STRATEGIES)
    assert all(len(line.split()) > 3 for line in lines), "they say what they do"
