"""pyproject.toml lists every package there is, and xDSL's own tools find us."""

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


def test_every_package_is_listed():
    folders = dict(SETUPTOOLS["package-dir"])
    found = {"tensorplan"}
    assert folders.pop("tensorplan") == "src/tensorplan"
    for name, folder in folders.items():
        for init in (ROOT / folder).rglob("__init__.py"):
            found.add(".".join((name, *init.parent.relative_to(ROOT / folder).parts)))
    assert found == set(SETUPTOOLS["packages"])


def test_every_folder_with_python_is_a_package():
    folders = set(SETUPTOOLS["package-dir"].values()) - {"src/tensorplan"}
    for folder in folders:
        for file in (ROOT / folder).rglob("*.py"):
            assert (file.parent / "__init__.py").exists(), file


def test_links_for_editors_point_at_the_sources():
    folders = set(SETUPTOOLS["package-dir"].values()) - {"src/tensorplan"}
    for folder in folders:
        link = ROOT / "src/tensorplan" / folder
        if not link.is_symlink():
            pytest.skip("a checkout without symbolic links")
        assert link.resolve() == ROOT / folder


def run_xdsl_opt(*arguments: str, stdin: str = "") -> str:
    run = subprocess.run(
        [sys.executable, "-m", "xdsl.tools.xdsl_opt", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


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


def test_a_wheel_has_what_the_demo_needs(tmp_path: Path):
    # What pyproject.toml builds with; the environment of test-oldest has an older one.
    pytest.importorskip("setuptools", minversion="77")
    build = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation")
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns(".*", "build", "docs", "tests", "lit_tests")
    shutil.copytree(ROOT, source, symlinks=True, ignore=ignored)
    subprocess.run([*build, "-q", "-w", tmp_path, source], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "tensorplan/examples/mlp_train_sgd.mlir" in names


def test_the_demo_runs_from_any_folder(tmp_path: Path):
    pytest.importorskip("jaxlib")
    command = [sys.executable, "-m", "tensorplan.tools.demo"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "all outputs are as expected" in run.stdout
