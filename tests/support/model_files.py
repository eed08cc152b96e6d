"""The models of tests/models as parameters of tests; the large ones are `slow`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

MODELS = Path(__file__).parents[1] / "models"
LARGE = ("gpt2_scan_train", "lenet_train", "resnet18_infer")
"""Models marked `slow`. tests/test_models.py always compares their values."""


def marked(names: Iterable[str]) -> list[Any]:
    return [
        pytest.param(name, marks=pytest.mark.slow if name in LARGE else ())
        for name in names
    ]


def model_files() -> list[Any]:
    """Parameters for all files, with the names of the models as ids."""
    names = sorted(path.stem for path in MODELS.glob("*.mlir"))
    return [
        pytest.param(MODELS / f"{name}.mlir", id=name, marks=parameter.marks)
        for name, parameter in zip(names, marked(names), strict=True)
    ]
