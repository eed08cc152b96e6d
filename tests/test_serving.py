"""Tests `plan-serve`: shared memory of a server's programs, their layout, and page
counts."""

from collections.abc import Sequence
from io import BytesIO, TextIOWrapper
from itertools import combinations
from pathlib import Path

import pytest

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.reporting.serving import Block, Program, layouts
from tensorplan.runtime.executor import Executable
from tensorplan.tools import plan_serve

PRODUCT = """tgraph.dot_general {a}, %w {{
    lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>
  }} : (tensor<{rows}x64xf32>, tensor<64x64xf32>) -> tensor<{rows}x64xf32>"""
STEP = """
func.func @main(
  %x: tensor<{rows}x64xf32>, %w: tensor<64x64xf32> {{tgraph.parameter}},
  %cache: !tgraph.variable<tensor<{cache}x64xf32>>
) -> tensor<{rows}x64xf32> {{
  %old = tgraph.read %cache : tensor<{cache}x64xf32>
  %new = tgraph.negate %old : tensor<{cache}x64xf32>
  tgraph.assign %cache, %new : tensor<{cache}x64xf32>
  %y = {first}
  %z = {second}
  func.return %z : tensor<{rows}x64xf32>
}}
"""
WEIGHTS, CACHE, ROW = 64 * 64 * 4, 32 * 64 * 4, 64 * 4


def text_of(rows: int, cache: int = 32) -> str:
    first, second = (PRODUCT.format(a=a, rows=rows) for a in ("%x", "%y"))
    return STEP.format(rows=rows, cache=cache, first=first, second=second)


def program(name: str, rows: int, cache: int = 32, alignment: int = 64) -> Program:
    module = tensorplan.read(text_of(rows, cache))
    return Program(name, tensorplan.plan(module, alignment=alignment))


def blocks(*models: Sequence[Program], in_turns: bool = False) -> Sequence[Block]:
    [layout] = layouts(models, in_turns)
    assert layout.size == max(block.offset + block.size for block in layout.blocks)
    return layout.blocks


PREFILL, DECODE, OTHER = program("prefill", 16), program("decode", 1), program("b", 4)


def test_programs_of_a_model_share_parameters_and_state() -> None:
    """A call needs memory for the argument, the result, and the arena with %y."""
    start = WEIGHTS + CACHE
    assert blocks([PREFILL, DECODE]) == [
        Block("parameters of prefill, decode", 0, WEIGHTS),
        Block("state of prefill, decode", WEIGHTS, CACHE),
        Block("a call of prefill", start, 3 * 16 * ROW),
        Block("a call of decode", start, 3 * ROW),
    ]


def test_state_of_another_type_is_separate() -> None:
    [_, state, *_] = blocks([PREFILL, program("long", 1, cache=64)])
    assert state.size == 3 * CACHE


@pytest.mark.parametrize("in_turns", [False, True])
def test_only_alternating_programs_overlap(in_turns: bool) -> None:
    found = blocks([PREFILL, DECODE], [OTHER], in_turns=in_turns)
    assert [b.what for b in found if b.size == WEIGHTS] == [
        "parameters of prefill, decode",
        "parameters of b",
    ]
    over = {
        f"{one.what[-7:]} {two.what[-4:]}"
        for one, two in combinations(found, 2)
        if max(one.offset, two.offset)
        < min(one.offset + one.size, two.offset + two.size)
    }
    further = {"prefill of b", " decode of b"} if in_turns else set[str]()
    assert over == {"prefill code"} | further


def test_arena_with_a_large_alignment_is_padded() -> None:
    large = program("large", 16, alignment=4096)
    [*_, call] = blocks([large])
    [pool] = tensorplan.report(large.module)["pools"]
    assert call.size >= pool["bytes"] + 2 * 16 * ROW + 4096 - 64


def test_executed_programs_need_the_planned_bytes() -> None:
    runs = [Executable(PREFILL.module, native=False)]
    runs.append(Executable(DECODE.module, pools=runs[0].pools, native=False))
    [pool] = runs[1].pools
    [*_, prefill, _] = blocks([PREFILL, DECODE])
    assert pool.bytes + 2 * 16 * ROW == prefill.size


def test_buffers_without_a_plan_are_refused() -> None:
    text = PREFILL.module.clone()
    other = tensorplan.read("""
func.func @other(%n: index) {
  %a = memref.alloc(%n) : memref<?xf32>
  memref.dealloc %a : memref<?xf32>
  func.return
}""")
    text.body.block.add_op(op := next(iter(other.ops)).clone())
    assert op.parent is not None
    with pytest.raises(LocatedError, match="no plan places this buffer"):
        layouts([[Program("both", text)]], False)


def test_symbolic_sizes_need_bounds() -> None:
    text = """
func.func @main(%x: tensor<?xf32, #tgraph.dims<n>>) -> tensor<?xf32, #tgraph.dims<n>> {
  %0 = tgraph.exponential %x : tensor<?xf32, #tgraph.dims<n>>
  %1 = tgraph.reverse %0 {dimensions = array<i64: 0>} : tensor<?xf32, #tgraph.dims<n>>
  func.return %1 : tensor<?xf32, #tgraph.dims<n>>
}"""
    open_, bounded = (
        tensorplan.plan(tensorplan.read(text), bounds=bounds)
        for bounds in ("", "n<=64")
    )
    assert [b.size for b in blocks([Program("bounded", bounded)])] == [3 * 64 * 4]
    with pytest.raises(LocatedError, match="expected static sizes, or a plan for bou"):
        layouts([[Program("open", open_)]], False)


@pytest.fixture
def files(tmp_path: Path) -> str:
    for name, rows in (("prefill", 16), ("decode", 1)):
        (tmp_path / f"{name}.mlir").write_text(text_of(rows))
    return f"{tmp_path / 'prefill.mlir'},{tmp_path / 'decode.mlir'}"


NEEDED = WEIGHTS + CACHE + 3 * 16 * ROW


@pytest.mark.parametrize(
    ("memory", "pages", "code", "said"),
    [
        (NEEDED + 3 * 512 + 511, 3, 0, "3 pages of 512 B"),
        (NEEDED + 3 * 512 + 511, 4, 1, "has 38,911 bytes, 1 too few for 38,912"),
        (NEEDED - 1, 0, 1, "has 36,863 bytes, 1 too few for 36,864"),
    ],
)
def test_pages(
    files: str,
    memory: int,
    pages: int,
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--memory", str(memory), "--page", "512", "--pages", str(pages)]
    assert plan_serve.main([files, *options]) == code
    captured = capsys.readouterr()
    assert said in (captured.err if code else captured.out)


def test_files_with_the_same_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / folder / "decode.mlir" for folder in ("small", "large")]
    for rows, file in enumerate(files, 1):
        file.parent.mkdir()
        file.write_text(text_of(rows))
    assert plan_serve.main([*map(str, files)]) == 0
    out = capsys.readouterr().out
    assert all(f"a call of {file.with_suffix('')}\n" in out for file in files)


def test_program_from_stdin(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = text_of(1).encode()
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(content)))
    assert plan_serve.main(["-"]) == 0
    assert "a call of <stdin>" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--page", "1KiB"], 2, "--page requires --memory"),
        (["--memory", "1KiB", "--pages", "2"], 2, "--pages requires --page"),
        (
            ["--memory", "1KiB", "--page", "0"],
            2,
            "--page is 0, expected 1 or more bytes",
        ),
        (["--memory", "1", "--page", "1", "--pages", "-1"], 2, "--pages is -1"),
        (["--alignment", "3"], 2, "alignment"),
        (["nosuch.mlir"], 1, "nosuch.mlir"),
        (["a.mlir,"], 2, "argument MODEL: 'a.mlir,', expected FILE or FILE,FILE,..."),
        (["-", "-"], 2, "only one FILE can be stdin"),
    ],
)
def test_errors(
    files: str,
    options: list[str],
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert plan_serve.main([files, *options]) == code
    assert said in capsys.readouterr().err
