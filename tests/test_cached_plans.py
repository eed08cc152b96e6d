"""Tests plans that are cached on disk: which plans are found, and that they are checked
again."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tensorplan
from tensorplan.passes.plan import cached
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.runtime.executor import Executable
from tensorplan.support import cache

MODELS = Path(__file__).parent / "models"
PROGRAM = MODELS.parents[1] / "examples" / "classifier.mlir"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TENSORPLAN_CACHE", str(tmp_path))
    monkeypatch.setattr(cached, "LEAST", 0)
    for remembered in (cache._trim, cached._version):
        remembered.cache_clear()
    yield tmp_path
    cached._version.cache_clear()


def compiled(program: Path = PROGRAM, **options: object) -> Executable:
    run = tensorplan.compile(tensorplan.read(program), **options)  # pyright: ignore
    assert isinstance(run, Executable)
    return run


def plans(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.plan"))


def values(run: Executable) -> list[np.ndarray]:
    return run(*[np.ones(slot.shape, slot.dtype) for slot in run.inputs])


@pytest.mark.parametrize(
    "name",
    ["lenet_train", pytest.param("lstm_scan_train", marks=pytest.mark.thorough)],
)
def test_cached_plan_equals_the_new_plan(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = compiled(MODELS / f"{name}.mlir", threads=1)
    monkeypatch.setattr(PlanPipeline, "passes", None)  # must not be called
    found = compiled(MODELS / f"{name}.mlir", threads=1)
    assert cached._text(found._module) == cached._text(made._module)
    assert found._module.is_structurally_equivalent(made._module)
    for first, second in zip(values(made), values(found), strict=True):
        assert np.array_equal(first, second)


@pytest.mark.parametrize(
    "options", [{"alignment": 128}, {"threads": 3}, {"effort": "high"}]
)
def test_plans_for_other_options_are_separate(
    options: dict[str, object], folder: Path
) -> None:
    compiled(threads=1)
    compiled(**{"threads": 1, **options})
    assert len(plans(folder)) == 2


@pytest.mark.parametrize(
    "changed",
    ["VERSION", "program", "places", "kernels", "files"],
)
def test_key_depends_on_everything_that_determines_a_plan(
    changed: str, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiled()
    program = PROGRAM
    match changed:
        case "program":
            program = tmp_path / "classifier.mlir"
            program.write_text(PROGRAM.read_text().replace("0.0 : f32", "0.5 : f32"))
        case "places":
            program = tmp_path / "classifier.mlir"
            program.write_text(f"\n{PROGRAM.read_text()}")
        case "kernels":
            monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "SSE41")
        case "files":
            monkeypatch.setattr(cached, "_files", lambda _: [("a.py", 1, 2)])
        case _:
            monkeypatch.setattr(cached, changed, "0.0.0")
    cached._version.cache_clear()  # another process
    compiled(program)
    assert len(plans(folder)) == 2


def test_changed_source_files_are_found(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").touch()
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "a.py").write_text("1")
    (tmp_path / "text.md").touch()
    outside = list(cached._files(tmp_path))
    assert [Path(name).name for name, *_ in outside] == ["__init__.py"]
    (inner / "__init__.py").touch()
    assert [Path(name).name for name, *_ in cached._files(tmp_path)] == [
        *("__init__.py", "__init__.py", "a.py")
    ]
    before = list(cached._files(tmp_path))
    os.utime(inner / "a.py", ns=(1, 1))
    assert list(cached._files(tmp_path)) != before


OFFSET = r"value = [1-9]\d* : index"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (OFFSET, "value = 0 : index"),  # overlapping buffers
        (OFFSET, "value = 2050 : f32"),  # invalid IR
        ('"func.return"', '"func.'),  # not parsable
    ],
)
def test_unsound_cached_plan_is_replaced(right: str, wrong: str, folder: Path) -> None:
    """A cached plan is checked, even if its hash is right."""
    program = PROGRAM.with_name("mlp_train_sgd.mlir")  # has several buffers
    expected = values(compiled(program, threads=2))
    (file,) = plans(folder)
    sound = cache.read(file.name)
    assert sound is not None
    unsound, count = re.subn(right.encode(), wrong.encode(), sound, count=1)
    assert count == 1
    cache.write(file.name, unsound)
    assert np.array_equal(values(compiled(program, threads=2))[0], expected[0])
    assert cache.read(file.name) == sound


@pytest.mark.parametrize("off", [True, False])
def test_cache_can_be_turned_off(
    off: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    if off:
        monkeypatch.setenv("TENSORPLAN_CACHE", "0")
    for _ in range(2):
        compiled()
    assert len(plans(folder)) == (0 if off else 1)
    assert not (folder / "0").exists()


def test_plans_that_take_little_time_are_not_cached(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached, "LEAST", 100)
    compiled()
    assert not plans(folder)


def test_least_recently_used_files_are_deleted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MOST", 3 * (cache.DIGEST + 100))
    for number in range(5):
        cache.write(f"{number}.o", bytes(100))
        os.utime(folder / f"{number}.o", ns=(number, number))
    assert cache.read("0.o") == bytes(100)  # makes the oldest file the newest one
    (folder / "other").mkdir()
    (folder / "notes.txt").write_bytes(bytes(1000))  # not a file of the cache
    cache._trim.cache_clear()  # another process
    cache.write("5.o", bytes(100))
    assert sorted(x.name for x in folder.glob("*.o")) == ["0.o", "3.o", "4.o", "5.o"]
    assert (folder / "notes.txt").exists()
