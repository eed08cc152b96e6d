"""Records the calls of `check` in `tests/test_kernels.py`, for use in other tests."""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from one_op import operation, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Region

from tensorplan.dialects.dtypes import Array
from tensorplan.dialects.tgraph.base import TensorOp


@dataclass(frozen=True)
class Case:
    """One call of `test_kernels.check`."""

    test: str
    cls: type[TensorOp]
    inputs: Sequence[Array]
    properties: dict[str, Attribute]
    result: TensorType[Attribute] | None
    region: Callable[[], Region] | None

    def operation(self, on_memrefs: bool) -> TensorOp:
        types = [tensor(x.shape, x.dtype.name) for x in self.inputs]
        region = self.region() if self.region else None
        return operation(
            self.cls, types, self.properties, self.result, on_memrefs, region
        )


def kernel_tests() -> ModuleType:
    path = Path(__file__).parent.with_name("test_kernels.py")
    spec = importlib.util.spec_from_file_location("kernel_cases", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


KERNELS = kernel_tests()
TESTS = [
    name
    for name, test in vars(KERNELS).items()
    if name.startswith("test_") and "check" in test.__code__.co_names
]


def arguments(test: Any) -> Iterator[dict[str, object]]:
    """Yields the arguments of each parametrization of `test`, by name."""
    axes: list[list[dict[str, object]]] = []
    for mark in getattr(test, "pytestmark", []):
        if mark.name != "parametrize":
            continue
        names, values = mark.args
        names = [names] if isinstance(names, str) else list(names)
        rows = [v.values if hasattr(v, "marks") else v for v in list(values)]
        rows = [row if len(names) > 1 else (row,) for row in rows]
        axes.append([dict(zip(names, row, strict=True)) for row in rows])
    for choice in product(*axes):
        yield {name: value for part in choice for name, value in part.items()}


def cases(name: str, monkeypatch: pytest.MonkeyPatch) -> list[Case]:
    found: list[Case] = []

    def check(
        rng: object,
        cls: type[TensorOp],
        inputs: Sequence[Array],
        properties: dict[str, Attribute] | None = None,
        result: TensorType[Attribute] | None = None,
        region: Callable[[], Region] | None = None,
    ) -> None:
        found.append(Case(name, cls, inputs, properties or {}, result, region))

    monkeypatch.setattr(KERNELS, "check", check)
    test = getattr(KERNELS, name)
    for given in arguments(test):
        test(**given)
    return found
