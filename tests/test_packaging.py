"""Tests that the checkout is the package: a wheel contains it and nothing else."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tensorplan.tools import start
from tensorplan.version import VERSION

ROOT = Path(__file__).parent.parent
BESIDE = {"benchmarks", "build", "docs", "lit_tests", "tests"}
"""Folders of a checkout that are not part of the package."""

DATA = {".css", ".html", ".js", ".json", ".mlir"}


def package_files() -> set[str]:
    """The files that a wheel should contain, relative to the folder of the package."""
    folders = {init.parent for init in ROOT.glob("[!.]*/**/__init__.py")}
    assert not {folder.relative_to(ROOT).parts[0] for folder in folders} & BESIDE
    files = [file for folder in folders for file in folder.iterdir()]
    files += [*(ROOT / "tools/views/web").iterdir(), *ROOT.glob("*.py")]
    names = {
        file.relative_to(ROOT).as_posix()
        for file in files
        if file.suffix == ".py" or file.suffix in DATA
    }
    return {*names, "py.typed"} - {"dev.py", "setup.py"}


def test_every_folder_with_python_is_a_package():
    tops = {init.parent for init in ROOT.glob("[!.]*/__init__.py")}
    for file in (file for top in tops for file in top.rglob("*.py")):
        assert (file.parent / "__init__.py").exists(), file


def test_whole_package_is_type_checked_strictly():
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    tops = {init.parent.name for init in ROOT.glob("[!.]*/__init__.py")}
    assert tops - {"examples"} <= set(tools["pyright"]["strict"])


def test_ctrl_c_while_a_command_is_loading(monkeypatch: pytest.MonkeyPatch):
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(start, "import_module", interrupted)
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    for entry in scripts.values():
        module, _, name = entry.partition(":")
        assert module == start.__name__
        assert getattr(start, name)() == 130


def test_package_is_imported_once():
    root = str(ROOT / "__init__.py")
    modules = [
        name
        for name, module in sys.modules.items()
        if getattr(module, "__file__", None) == root
    ]
    assert modules in ([], ["tensorplan"])


def run_xdsl_opt(*arguments: str, stdin: str = "") -> str:
    run = subprocess.run(
        [sys.executable, "-m", "xdsl.tools.xdsl_opt", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_changelog_has_the_version():
    """The version is the newest one in the changelog, below the unreleased changes."""
    first, newest, *_ = re.findall(
        r"^## \[(.+)\]", (ROOT / "CHANGELOG.md").read_text(), re.M
    )
    assert (first, newest) == ("Unreleased", VERSION)


def test_plain_xdsl_opt_lists_our_passes():
    help = "".join(run_xdsl_opt("--help").split())
    for name in ("plan-memory", "plan-check", "plan-pipeline", "tgraph-fuse"):
        assert name in help


def test_plain_xdsl_opt_runs_our_passes():
    program = """
      func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
        %0 = tgraph.negate %a : tensor<4xf32>
        func.return %0 : tensor<4xf32>
      }
    """
    placed = run_xdsl_opt("-p", 'tgraph-place-devices{default="gpu:3"}', stdin=program)
    assert 'tgraph.negate %a : tensor<4xf32, "gpu:3">' in placed


def test_every_factory_loads():
    from tensorplan.dialects import get_all_dialects
    from tensorplan.passes import get_all_passes

    for name, dialect in get_all_dialects().items():
        assert dialect().name == name
    for name, pass_ in get_all_passes().items():
        assert pass_().name == name


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel built from a renamed checkout that contains files of an old build."""
    # pyproject.toml builds with this version. The environment of test-oldest has an
    # older one.
    pytest.importorskip("setuptools", minversion="77")
    build = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation")
    source = tmp_path_factory.mktemp("wheel") / "a checkout"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "vectors"))
    subprocess.run([*build, "-q", "-w", source.parent, source], check=True)
    (file,) = source.parent.glob("*.whl")
    return zipfile.ZipFile(file)


def test_wheel_contains_only_the_package(wheel: zipfile.ZipFile):
    names = {n for n in wheel.namelist() if ".dist-info/" not in n}
    assert names == {f"tensorplan/{name}" for name in package_files()}
    assert "tensorplan/examples/mlp_train_sgd.mlir" in names


@pytest.mark.thorough
def test_demo_runs_from_a_wheel(wheel: zipfile.ZipFile, tmp_path: Path):
    wheel.extractall(tmp_path)
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r});" + (
        "import tensorplan.tools.demo as demo; print(demo.__file__);"
        "sys.exit(demo.main(demo.Path('page.html')))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert "all outputs are as expected" in run.stdout, run.stderr
    assert run.stdout.startswith(str(tmp_path))
