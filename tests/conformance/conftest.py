"""Fixtures for vectors: JSON records of what the original systems did.

    pytest tests/conformance                  the suite's own vectors
    pytest tests/conformance --vectors DIR    vectors in DIR, of the same schema

A test marked `@pytest.mark.vectors(mechanism)` has the parameter `vector` and runs on
each vector of that mechanism in any file of the folder. Without vectors it is skipped.
Tests never select vectors by name: a test derives from the vector's contents whether
tensorplan deliberately differs from the original.
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
    """All vectors by name, including the suite's own, to which others may refer."""
    folder = request.config.getoption("vectors", default=None) or OWN_VECTORS
    return {v["name"]: v for v in [*read(OWN_VECTORS), *read(folder)]}


@cache
def read(folder: Path) -> list[Mapping[str, Any]]:
    """All vectors in the JSON files of `folder`, in the order of file names."""
    if not folder.is_dir():
        raise pytest.UsageError(f"--vectors: {folder} is no folder")
    files = sorted(folder.glob("*.json"))
    return [v for file in files for v in json.loads(file.read_text())["vectors"]]
