"""Precomputes the values that depend only on the weights of an inference graph.

A separate program computes them (inference.py), such as weights of convolutions
multiplied by the scales of batch norms. It runs once, and again after the weights have
changed. Kernels also pack its results into their own layouts once (prepacking.py).

This is for `freezing` only, in which each call compares the addresses and versions of
all weights. The version of a PyTorch tensor does not record all changes:
`parameter.data.mul_(2)`, NumPy views and other libraries do not increase it. Without
`freezing`, programs therefore read weights where they lie. Kernels pack them in each
call, which takes no longer than a comparison with a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .. import context
from ..analysis.functions import argument_names
from ..frontends.parameters import Parameter, with_parameters
from ..frontends.torch.program import array_of
from ..passes.inference import separated
from ..support.arrays import Array, address
from .torch_calls import Make, TensorProgram, Tensors

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ..runtime.executor import Executable
    from ..support.slots import Input, Result

Build: TypeAlias = "Callable[[ModuleOp], Executable]"

KEPT = 64
"""The maximum number of sets of weights with which a graph is specialized; layers that
share a graph have a set each. Weights of further sets are passed in each call."""


class Weighted:
    """A program, some of whose arguments are weights."""

    def __init__(
        self,
        module: ModuleOp,
        weights: Sequence[int],
        build: Build,
        results: Sequence[Make],
    ):
        """`weights` are the numbers of the arguments that are weights. `results`
        allocate the tensors for the program's results."""
        names = argument_names(module)
        self._names = [names[n] for n in weights]
        self._weights = weights
        self._inputs = [n for n in names if n not in weights]
        self._build = build
        self._results = results
        self._module = module.clone()
        with_parameters(module, {n: Parameter(names[n], None) for n in weights})
        precompute, self._computed = separated(context(), module, names.values())
        self._precompute = build(precompute) if precompute else None
        self._run = build(module)
        self._sets: Any = import_module("torch.utils.weak").WeakIdKeyDictionary()
        """The specialized programs, by the first weight of each."""
        self._count = 0
        self._alone = RLock()

    def __call__(self, given: list[Any]) -> list[Any]:
        """Runs the program on the tensors `given`, and returns its results."""
        with self._alone:
            weights = self._found([given[n] for n in self._weights])
            if weights is None:
                return self._unweighted(given)
            return weights.call([given[n] for n in self._inputs])

    @cached_property
    def _unweighted(self) -> TensorProgram:
        return TensorProgram(self._build(self._module), self._results)

    def _found(self, tensors: Tensors) -> _Weights | None:
        """The program that is bound to the weights `tensors`. None if there are too
        many sets of weights, or if a tensor is not contiguous and aligned."""
        found = self._sets.get(tensors[0])
        starts = [tensor.data_ptr() for tensor in tensors]
        versions = list(map(_version, tensors))
        if found is None or found.starts != starts:
            found = self._bound(tensors, starts) if self._count < KEPT else None
            if found is None:
                return None
            self._sets[tensors[0]] = found
        elif found.versions != versions:
            found.compute()
        found.versions = versions
        return found

    def _bound(self, tensors: Tensors, starts: Sequence[int]) -> _Weights | None:
        arrays = [array_of(x.resolve_conj().resolve_neg()) for x in tensors]
        if not all(map(_is_in_place, arrays, starts)):
            return None
        run = self._run.clone(self._run.pools) if self._count else self._run
        self._count += 1
        named = dict(zip(self._names, arrays, strict=True))
        bound = _Weights(run, starts, named, self._precompute, self._computed)
        bound.call = TensorProgram(run, self._results)
        return bound


def _is_in_place(array: Array, start: int) -> bool:
    """Whether a program can be bound to `array`: it is contiguous, aligned, and not a
    copy of the tensor at the address `start`."""
    is_there = address(array) == start or not array.size
    return is_there and array.flags.c_contiguous and array.flags.aligned


def _version(tensor: Any) -> int:
    """The tensor's version; 0 for inference tensors, which have none."""
    return 0 if tensor.is_inference() else tensor._version


class _Weights:
    """A program that is bound to weights."""

    def __init__(
        self,
        run: Executable,
        starts: Sequence[int],
        arrays: Mapping[str, Array],
        precompute: Executable | None,
        computed: Mapping[int, str],
    ):
        """`starts` are the addresses of `arrays`, which are the weights by name.
        `precompute` computes parameters of `run`, whose names are in `computed` by the
        number of the result."""
        self.call: TensorProgram
        self.run = run
        self.starts = starts
        self.versions: Sequence[int] = []
        self._precompute = precompute
        taken: Sequence[Input] = precompute.inputs if precompute else []
        given: Sequence[Result] = precompute.results if precompute else []
        self._sources = [arrays[slot.name] for slot in taken]
        self._results: Sequence[Array] = [np.ndarray(x.shape, x.dtype) for x in given]
        self.compute()
        values = {**arrays, **{x: self._results[n] for n, x in computed.items()}}
        slots = enumerate(run.inputs)
        run.bind({n: values[slot.name] for n, slot in slots if slot.name in values})

    def compute(self) -> None:
        """Runs `precompute` on the current weights, overwriting its earlier results,
        and packs the parameters of `run` again."""
        if self._precompute is not None:
            self._precompute(*self._sources, out=self._results)
        self.run.repack()
