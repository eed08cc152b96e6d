"""The models of tests/models as parameters of tests; the large ones are `slow`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

MODELS = Path(__file__).parents[1] / "models"
LARGE = ("gpt2_scan_train", "resnet18_infer")
"""Their values are compared by test_models in any case."""


def marked(names: Iterable[str]) -> list[Any]:
    return [
        pytest.param(name, marks=pytest.mark.slow if name in LARGE else ())
        for name in names
    ]


def model_files() -> list[Any]:
    """Each under its model's name."""
    names = sorted(path.stem for path in MODELS.glob("*.mlir"))
    return [
        pytest.param(MODELS / f"{name}.mlir", id=name, marks=parameter.marks)
        for name, parameter in zip(names, marked(names), strict=True)
    ]
