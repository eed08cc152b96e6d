"""Vectors: what the original systems did, read from the JSON files of a folder.

    pytest tests/conformance                  the suite's own vectors
    pytest tests/conformance --vectors DIR    those in DIR, of the same schema

A test marked `@pytest.mark.vectors(mechanism)` runs on each vector of that mechanism,
in whatever file it is; without any it is skipped. It takes `vector`. No test knows a
vector by its name: where we do not do as the original did, the test finds that out.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

OWN_VECTORS = Path(__file__).parent / "vectors"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--vectors", type=Path, metavar="DIR", help="other vectors")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "vectors(mechanism): runs on each vector of a mechanism"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker("vectors")
    if not mark:
        return
    (mechanism,) = mark.args
    folder = metafunc.config.getoption("vectors", default=None) or OWN_VECTORS
    vectors = [v for v in read(folder) if v["mechanism"] == mechanism]
    metafunc.parametrize("vector", vectors, ids=[v["name"] for v in vectors])


@pytest.fixture
def vectors(request: pytest.FixtureRequest) -> Mapping[str, Mapping[str, Any]]:
    """All by name, the suite's own too: one may refer to another."""
    folder = request.config.getoption("vectors", default=None) or OWN_VECTORS
    return {v["name"]: v for v in [*read(OWN_VECTORS), *read(folder)]}


@cache
def read(folder: Path) -> list[Mapping[str, Any]]:
    """All vectors in the files of the folder, in order of file names."""
    if not folder.is_dir():
        raise pytest.UsageError(f"--vectors: {folder} is no folder")
    files = sorted(folder.glob("*.json"))
    return [v for file in files for v in json.loads(file.read_text())["vectors"]]
