"""Tests saved programs: they compute the same values and start without the IR, and
damaged files are errors."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np
import pytest
from processors import multiplies_packed
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.dtypes import Array
from tensorplan.runtime.backends.jit import llvm
from tensorplan.runtime.backends.onednn import backend as onednn
from tensorplan.runtime.callable import CallableProgram
from tensorplan.runtime.executor import Executable
from tensorplan.runtime.saved import reading

ROOT = Path(__file__).parent.parent
SUMS = """
func.func @main(%v: !tgraph.variable<tensor<4xf32>> {tgraph.result = 0 : i32},
                %x: tensor<4xf32>, %p: tensor<4xf32> {tgraph.parameter})
    -> tensor<4xf32> {
  %old = tgraph.read %v : tensor<4xf32>
  %scaled = tgraph.multiply %x, %p : tensor<4xf32>
  %new = tgraph.add %old, %scaled : tensor<4xf32>
  tgraph.assign %v, %new : tensor<4xf32>
  %root = tgraph.sqrt %new : tensor<4xf32>
  func.return %root : tensor<4xf32>
}
"""
RANDOM = """
func.func @main(%s: tensor<2xi64>) -> (tensor<2xi64>, tensor<8xi32>) {
  %after, %bits = tgraph.rng_bit_generator %s {algorithm = "threefry"}
    : (tensor<2xi64>) -> (tensor<2xi64>, tensor<8xi32>)
  func.return %after, %bits : tensor<2xi64>, tensor<8xi32>
}
"""
PRODUCT = """
func.func @main(%x: tensor<16x64xf32>, %w: tensor<64x64xf32> {tgraph.parameter})
    -> tensor<16x64xf32> {
  %y = tgraph.dot_general %x, %w
    {lhs_batching_dimensions = array<i64>, rhs_batching_dimensions = array<i64>,
     lhs_contracting_dimensions = array<i64: 1>,
     rhs_contracting_dimensions = array<i64: 0>}
    : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  func.return %y : tensor<16x64xf32>
}
"""
NAMED = [
    *("tests/models/lenet_train", "tests/models/lstm_scan_train"),
    "examples/mlp_train_two_devices",
]


@cache
def planned_file(name: str) -> ModuleOp:
    return tensorplan.plan(tensorplan.read(ROOT / f"{name}.mlir"))


def planned(text: str) -> Executable:
    run = tensorplan.compile(tensorplan.read(text))
    assert isinstance(run, Executable)
    return run


def arrays_for(run: CallableProgram) -> list[Array]:
    random = np.random.default_rng(0)
    given = set(range(len(run.inputs))) - set(run.parameters)
    return [
        random.standard_normal(slot.shape).astype(slot.dtype)
        if slot.dtype.kind == "f"
        else random.integers(0, 3, slot.shape).astype(slot.dtype)
        for slot in (run.inputs[n] for n in sorted(given))
    ]


def called(run: CallableProgram, arrays: list[Array]) -> list[Array]:
    """The results of the second of two calls on copies of `arrays` at different
    addresses. Asserts that both calls agree."""
    results = [run(*[x.copy() for x in arrays]) for _ in range(2)]
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first, second)
    return results[1]


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("native", [True, False])
def test_loaded_program_computes_the_same(name, native, tmp_path):
    run = Executable(planned_file(name), native=native)
    tensorplan.save(run, tmp_path / "a.plan")
    loaded = tensorplan.load(tmp_path / "a.plan")
    assert loaded.inputs == run.inputs
    assert loaded.results == run.results
    assert [(p.device, p.bytes) for p in loaded.pools] == [
        (p.device, p.bytes) for p in run.pools
    ]
    arrays = arrays_for(run)
    for x, y in zip(called(run, arrays), called(loaded, arrays), strict=True):
        np.testing.assert_array_equal(x, y)


def test_variables_are_not_saved(tmp_path):
    run = planned(SUMS)
    one = np.ones(4, np.float32)
    run(np.zeros(4, np.float32), one, one)
    tensorplan.save(run, tmp_path / "a.plan")
    total = np.full(4, 8, np.float32)
    new, root = tensorplan.load(tmp_path / "a.plan")(total, one, one)
    assert new is total
    np.testing.assert_array_equal(root, [3, 3, 3, 3])


def test_loaded_program_has_donated_inputs(tmp_path):
    exponential = "%e = tgraph.exponential %w : tensor<64x64xf32>\n  %y ="
    text = PRODUCT.replace("tgraph.parameter", "tgraph.donated")
    text = text.replace("%y =", exponential).replace("%x, %w\n", "%x, %e\n")
    planned(text).save(tmp_path / "program.plan")
    run = tensorplan.load(tmp_path / "program.plan")
    assert [slot.is_donated for slot in run.inputs] == [False, True]
    x, w = np.ones((16, 64), np.float32), np.zeros((64, 64), np.float32)
    fixed = w.copy()
    fixed.flags.writeable = False
    for array in (fixed, fixed, w):
        np.testing.assert_array_equal(run(x, array)[0], np.full((16, 64), 64))
    assert not fixed.any()
    assert w.all()  # overwritten by a value in its memory


def test_bound_inputs_are_saved(tmp_path):
    run = planned(SUMS)
    run.bind({0: np.full(4, 4, np.float32), 2: np.full(4, 5, np.float32)})
    tensorplan.save(run, tmp_path / "a.plan")
    loaded = tensorplan.load(tmp_path / "a.plan")
    assert len(loaded.inputs) == 2  # the parameter is a constant
    for expected in (3, np.sqrt(14, dtype=np.float32)):
        _, root = loaded(np.ones(4, np.float32))
        np.testing.assert_array_equal(root, np.full(4, expected, np.float32))
    np.testing.assert_array_equal(run.parameters[0], np.full(4, 4, np.float32))


@pytest.mark.skipif(not multiplies_packed(), reason="needs packed weights")
def test_packed_parameters_are_saved_once(tmp_path):
    run = planned(PRODUCT)
    x, w = arrays_for(run)
    run.bind({1: w})
    tensorplan.save(run, tmp_path / "a.plan")
    loaded = tensorplan.load(tmp_path / "a.plan")
    np.testing.assert_array_equal(loaded(x)[0], run(x)[0])
    with ZipFile(tmp_path / "a.plan") as archive:
        sizes = [x.file_size for x in archive.filelist if "constants" in x.filename]
    assert w.nbytes <= sum(sizes) < 2 * w.nbytes


def test_saved_files_are_deterministic(tmp_path):
    files = []
    for name in "ab":
        run = planned(SUMS)
        run.bind({2: np.arange(4, dtype=np.float32)})
        tensorplan.save(run, tmp_path / name)
        files.append((tmp_path / name).read_bytes())
    assert files[0] == files[1]


START = """
import sys
import numpy as np
import tensorplan
from tensorplan.runtime.backends.jit.llvm import Compiler
Compiler._compile = None
run = tensorplan.load(sys.argv[1])
ones = [np.ones(slot.shape, slot.dtype) for slot in run.inputs]
print(float(run(*ones)[-1].sum()))
libraries = {name.split(".")[0] for name in sys.modules}
print(*sorted(libraries & {"jax", "numba", "onnx", "torch", "xdsl"}))
"""


@pytest.mark.parametrize("name", ["lenet_infer", "lstm_scan_infer"])
def test_process_starts_without_ir_or_compilation(name, tmp_path):
    path = tmp_path / "a.plan"
    run = tensorplan.compile(tensorplan.read(ROOT / f"tests/models/{name}.mlir"))
    tensorplan.save(run, path)
    ones = [np.ones(slot.shape, slot.dtype) for slot in run.inputs]
    expected = float(run(*ones)[-1].sum())
    done = subprocess.run(
        [sys.executable, "-c", START, str(path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TENSORPLAN_CACHE": str(tmp_path / "cache")},
    )
    assert done.stdout == f"{expected}\n\n"
    assert not (tmp_path / "cache").exists()


# Programs that cannot be saved.


def test_operations_that_cannot_be_saved_are_named(tmp_path):
    with pytest.raises(LocatedError, match=r"program:3:\d+: tgraph.rng_bit_generator"):
        tensorplan.save(planned(RANDOM), tmp_path / "a.plan")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("options", [{"sanitize": True}, {"donate": [1]}])
def test_options_that_cannot_be_saved_are_refused(options, tmp_path):
    run = Executable(tensorplan.plan(tensorplan.read(SUMS)), **options)
    with pytest.raises(ValueError, match="cannot be saved"):
        tensorplan.save(run, tmp_path / "a.plan")


def test_symbolic_sizes_are_refused(tmp_path):
    text = """func.func @main(%x: tensor<?xf32, #tgraph.dims<n>>)
      -> tensor<?xf32, #tgraph.dims<n>> {
      %y = tgraph.negate %x : tensor<?xf32, #tgraph.dims<n>>
      func.return %y : tensor<?xf32, #tgraph.dims<n>>
    }"""
    run = tensorplan.compile(tensorplan.read(text))
    with pytest.raises(TypeError, match="a DynamicExecutable cannot be saved"):
        tensorplan.save(run, tmp_path / "a.plan")


def test_files_are_written_atomically(tmp_path, monkeypatch):
    path = tmp_path / "a.plan"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(ZipFile, "writestr", fail)
    with pytest.raises(OSError, match="no space left"):
        tensorplan.save(planned(SUMS), path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


# Bad files.


@pytest.fixture
def saved(tmp_path) -> Path:
    path = tmp_path / "a.plan"
    run = Executable(tensorplan.plan(tensorplan.read(SUMS)), native=False)
    run.bind({2: np.ones(4, np.float32)})
    tensorplan.save(run, path)
    return path


def rewritten(path: Path, change: Callable[[dict[str, bytes]], object]) -> None:
    with ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    with ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(ZipInfo(name), data)


def described(change: Callable[[dict], object]) -> Callable[[dict[str, bytes]], None]:
    def changed(files: dict[str, bytes]) -> None:
        manifest = json.loads(files["program.json"])
        change(manifest)
        files["program.json"] = json.dumps(manifest).encode()

    return changed


def test_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        tensorplan.load(tmp_path / "a.plan")


@pytest.mark.parametrize("data", [b"", b"PK", b"\x7fELF" + bytes(100)])
def test_file_that_is_no_archive_is_an_error(data, tmp_path):
    path = tmp_path / "a.plan"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"a\.plan: not a saved program, or damaged: "):
        tensorplan.load(path)


def test_truncated_file_is_an_error(saved):
    data = saved.read_bytes()
    for size in range(0, len(data), 101):
        saved.write_bytes(data[:size])
        with pytest.raises(ValueError, match="not a saved program, or damaged: "):
            tensorplan.load(saved)


def test_flipped_byte_is_an_error_or_harmless(saved):
    data = saved.read_bytes()
    one, start = np.ones(4, np.float32), np.full(4, 3, np.float32)
    for place in range(0, len(data), 7):
        saved.write_bytes(
            data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]
        )
        try:
            run = tensorplan.load(saved)
        except (ValueError, OSError):
            continue
        np.testing.assert_array_equal(run(start.copy(), one)[1], 2 * one)


def call(function: object) -> Callable[[dict], None]:
    return lambda manifest: manifest["calls"].append([function, []])


HOSTILE = {
    "a function of Python's": call({"function": "eval"}),
    "a function of NumPy's that writes": call({"numpy": "save"}),
    "a method that writes": call(
        {"method": [{"array": [0, 0, "uint8", [1], None]}, "tofile"]}
    ),
    "a form that there is not": call({"pickle": ""}),
    "native code that is not there": call({"native": ["0", []]}),
    "a place outside": call({"array": [0, 1 << 40, "float32", [4], None]}),
    "a place before": call({"array": [0, -4, "float32", [1], None]}),
    "strides to elsewhere": call({"array": [0, 0, "float32", [2], [1 << 40]]}),
    "objects": call({"array": [0, 0, "object", [1], None]}),
    "nesting": lambda m: m.update(calls=json.loads("[" * 900 + "]" * 900)),
    "memory for nobody": lambda m: m["memories"].append({"bytes": 1 << 62}),
    "a memory that is not there": lambda m: m["inputs"][0].update(memory=99),
    "an input larger than its memory": lambda m: m["inputs"][0].update(shape=[99]),
    "an input that is not there": lambda m: m["bound"].append([99, None]),
    "no calls": lambda m: m.pop("calls"),
    "no memories": lambda m: m.update(memories=None),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_hostile_manifests_are_errors(change, saved):
    rewritten(saved, described(change))
    with pytest.raises(ValueError, match=r"a\.plan: not a saved program, or damaged: "):
        tensorplan.load(saved)


def test_pickled_constants_are_refused(saved, tmp_path):
    np.save(tmp_path / "evil.npy", np.array([print], object), allow_pickle=True)
    evil = (tmp_path / "evil.npy").read_bytes()
    rewritten(saved, lambda files: files.update({"constants/0.npy": evil}))
    with pytest.raises(ValueError, match="Object arrays cannot be loaded"):
        tensorplan.load(saved)


def test_compressed_entries_are_refused(saved):
    with ZipFile(saved, "a", ZIP_DEFLATED) as archive:
        archive.writestr("more", bytes(1 << 20))
    with pytest.raises(ValueError, match="more is compressed"):
        tensorplan.load(saved)


ELSEWHERE = {
    "has format 0, expected 5": {"format": 0},
    "saved by tensorplan 0.0, expected": {"tensorplan": "0.0"},
    "saved for vax, but this machine is": {"processor": ["vax", ""]},
    "without .vax": {"processor": [llvm.compiler().host.triple, "+vax,-fma"]},
    "saved with oneDNN 0.0.0, but this machine has": {"oneDNN": "0.0.0"},
}


@pytest.mark.skipif(not onednn.is_available(), reason="needs oneDNN")
@pytest.mark.parametrize("message", ELSEWHERE)
def test_files_for_other_machines_and_versions_are_refused(message, saved):
    rewritten(saved, described(lambda manifest: manifest.update(ELSEWHERE[message])))
    with pytest.raises(
        ValueError, match=rf"a\.plan: {message}|{message}.*this machine"
    ):
        tensorplan.load(saved)


def test_native_code_needs_the_extra(tmp_path, monkeypatch):
    run = planned(SUMS)
    tensorplan.save(run, tmp_path / "a.plan")
    if not llvm.is_available():
        pytest.skip("there is no native code")
    monkeypatch.setattr(reading, "is_available", lambda: False)
    with pytest.raises(ValueError, match="which requires the extra fast"):
        tensorplan.load(tmp_path / "a.plan")


def test_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        tensorplan.save(planned(SUMS), pipe)
        assert os.read(reader, 2) == b"PK"
        assert pipe.is_fifo()
    finally:
        os.close(reader)


def test_error_names_a_missing_folder(tmp_path):
    program = planned(SUMS)
    with pytest.raises(FileNotFoundError, match=r"missing/file'$"):
        tensorplan.save(program, tmp_path / "missing" / "file")
