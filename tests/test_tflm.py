"""Tests plans for TensorFlow Lite Micro: offsets, preserved contents, and damaged
files.

`tests/foreign/tflm/record.py` describes the files.
"""

import struct
from contextlib import suppress
from io import BytesIO, TextIOWrapper
from itertools import permutations
from pathlib import Path
from random import Random

import pytest

from tensorplan.checking.foreign import audit
from tensorplan.frontends.plans import litert, tflite
from tensorplan.frontends.plans.flatbuffer import Table, root
from tensorplan.integrations import tflm
from tensorplan.planning import Buffer, Problem, validate
from tensorplan.support.foreign_plan import ForeignPlanError

FOLDER = Path(__file__).parent / "foreign" / "tflm"
BRANCHES, LOOP, NPU = (
    (FOLDER / f"{name}.tflite").read_bytes() for name in ("branches", "loop", "npu")
)

# pyright: reportPrivateUsage=false

ROWS = [
    (24, 0, 2),
    (6, 1, 3),
    (30, 2, 5),
    (36, 3, 4),
    (9, 4, 5),
    (39, 5, 6),
    (39, 6, 6),
]
"""For each tensor of `branches`, written by hand: rows of 32 bytes, first step, last
step."""


def test_plan_is_smaller_than_the_runtimes_plan() -> None:
    planned = tflm.plan(BRANCHES)
    assert planned[1:] == (2496, 2496, 3744)
    buffers = [
        Buffer(str(n), 32 * rows, first, last + 1, 16)
        for n, (rows, first, last) in enumerate(ROWS)
    ]
    offsets = tflm.offsets(planned.model)
    assert not validate(Problem(buffers), offsets)
    assert max(o + b.size for o, b in zip(offsets, buffers, strict=True)) == 2496


def test_no_offsets_if_the_runtimes_plan_is_as_small() -> None:
    planned = tflm.plan(LOOP)
    assert planned.arena == planned.runtime_arena
    assert set(tflm.offsets(planned.model)) == {-1}


def test_live_ranges_in_subgraphs() -> None:
    """The loop is step 1. Its condition starts at step 2, and its body at step 5."""
    model = tflm._Model(LOOP, "loop")
    assert model.lives == {
        **{0: (0, 7), 3: (1, 7), 4: (7, 7)},
        **{5: (2, 3), 7: (3, 4), 8: (4, 4)},
        **{10: (5, 6), 11: (6, 6)},
    }


def nested(levels: int, innermost: tflm._Operator) -> list[tflm._Graph]:
    """Nested subgraphs, each of which calls the next one twice."""
    calls = [tflm._Operator("", (), (), [n, n]) for n in range(1, levels)]
    return [tflm._Graph((), (), [each]) for each in (*calls, innermost)]


def test_repeated_subgraph_is_analyzed_once() -> None:
    """With n levels, there are 2 ** (n + 1) - 3 steps, and the first write is in step 2
    * n - 1."""
    write = tflm._Operator("", (), [0], ())
    assert tflm._lives(nested(3, write)) == {0: (5, 13)}
    assert tflm._lives(nested(28, write)) == {0: (55, 2**29 - 3)}
    with pytest.raises(OverflowError):
        tflm._lives(nested(40, write))


@pytest.mark.parametrize("called", [0, 2, 3, -1])
def test_calls_of_missing_or_recursive_subgraphs(called: int) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # which ends as "damaged"
        tflm._lives(nested(3, tflm._Operator("", (), (), [called])))


def contents(data: bytes) -> list[object]:
    """All fields of a model except its plan."""
    model = root(data)
    entries = [
        (entry.text(0), bytes(model.tables(4)[entry.number(1, "I")].vector(0, "B")))
        for entry in model.tables(6)
        if entry.text(0) != tflite.METADATA
    ]
    buffers = [bytes(buffer.vector(0, "B")) for buffer in model.tables(4)]
    graphs = [
        [
            [(t.vector(0), t.number(2, "I"), t.text(3)) for t in graph.tables(0)],
            [graph.vector(1), graph.vector(2)],
            [(o.number(0), o.vector(1), o.vector(2)) for o in graph.tables(3)],
        ]
        for graph in model.tables(2)
    ]
    codes = [(code.text(1), code.number(3)) for code in model.tables(1)]
    return [model.number(0, "I"), model.text(3), graphs, codes, entries, buffers[:4]]


@pytest.mark.parametrize("data", [BRANCHES, LOOP])
def test_other_contents_of_the_file_are_kept(data: bytes) -> None:
    planned = tflm.plan(data).model
    old = contents(data)
    new = contents(planned)
    assert new[:-1] == old[:-1]
    assert new[-1][: len(root(data).tables(4))] == old[-1]  # type: ignore[index]


@pytest.mark.parametrize("data", [BRANCHES, LOOP])
def test_buffers_stay_aligned(data: bytes) -> None:
    planned = tflm.plan(data).model
    assert (len(planned) - len(data)) % 16 == 0
    content = root(planned).tables(4)[-1].table(0)
    assert isinstance(content, Table)
    assert (content.at + 4) % 16 == 0


def test_plan_replaces_an_existing_plan() -> None:
    planned = tflm.plan(BRANCHES).model
    at = planned.index(b"".join(o.to_bytes(4, "little") for o in tflm.offsets(planned)))
    spoiled = planned[:at] + b"\xff" * 28 + planned[at + 28 :]
    assert set(tflm.offsets(spoiled)) == {-1}
    assert tflm.plan(spoiled).model == planned


@pytest.mark.parametrize(
    ("data", "verdict"),
    [(tflm.plan(BRANCHES).model, "proved"), (NPU, "not refuted")],
)
def test_the_audit_reads_the_plan(data: bytes, verdict: str, tmp_path: Path) -> None:
    (path := tmp_path / "planned.tflite").write_bytes(data)
    assert audit(litert.read_file(path)).verdict == verdict


def test_the_audit_finds_each_planted_overlap(tmp_path: Path) -> None:
    planned = tflm.plan(BRANCHES).model
    offsets = tflm.offsets(planned)
    at = planned.index(struct.pack("<7i", *offsets))
    for (moved, (_, start, _)), (victim, (_, first, last)) in permutations(
        enumerate(ROWS), 2
    ):
        if first < start < last:
            spoiled = [*offsets]
            spoiled[moved] = offsets[victim]
            data = planned[:at] + struct.pack("<7i", *spoiled) + planned[at + 28 :]
            (path := tmp_path / "spoiled.tflite").write_bytes(data)
            assert audit(litert.read_file(path)).verdict == "unsound"


def test_models_compiled_by_vela_are_refused() -> None:
    with pytest.raises(ForeignPlanError, match="Vela has compiled the offsets"):
        tflm.plan(NPU)


def test_plan_with_a_wrong_tensor_count_is_refused() -> None:
    planned = tflm.plan(BRANCHES).model
    count = planned.index((1).to_bytes(4, "little") + bytes(4) + b"\x07") + 8
    with pytest.raises(ForeignPlanError, match="damaged"):
        tflm.offsets(planned[:count] + b"\x08" + planned[count + 1 :])


def test_damaged_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    random = Random(1)
    for _ in range(300):
        data = bytearray(random.choice([BRANCHES, LOOP]))
        for _ in range(random.choice([1, 4])):
            data[random.randrange(8, len(data))] = random.randrange(256)
        with suppress(ForeignPlanError):
            tflm.plan(bytes(data[: random.choice([None, len(data) // 2])]))
    path = tmp_path / "text.tflite"
    path.write_text("no model at all")
    assert tflm.main([str(path), "-o", str(tmp_path / "out.tflite")]) == 1
    error = capsys.readouterr().err
    assert error == f"{path}: error: this is not a TensorFlow Lite model\n"


def test_standard_files(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(BRANCHES)))
    assert tflm.main(["-", "-o", "-"]) == 0
    captured = capfdbinary.readouterr()
    assert captured.out == tflm.plan(BRANCHES).model
    assert captured.err.startswith(b"arena: 2,496 bytes")


def test_values_in_the_runtime() -> None:
    """Runs TensorFlow Lite Micro's own interpreter, if it is installed."""
    runtime = pytest.importorskip("tflite_micro").runtime
    numpy = pytest.importorskip("numpy")
    for data in (BRANCHES, LOOP):
        results = []
        for model in (data, tflm.plan(data).model):
            interpreter = runtime.Interpreter.from_bytes(model)
            shape = interpreter.get_input_details(0)["shape"]
            values = numpy.arange(numpy.prod(shape), dtype="f4").reshape(shape)
            interpreter.set_input(values, 0)
            interpreter.invoke()
            results.append(interpreter.get_output(0))
        assert numpy.array_equal(*results)
