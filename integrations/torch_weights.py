"""The weights of an inference graph: what follows from them is computed once, and again
after they have changed.

A program of its own computes it (inference.py), such as weights of convolutions with
the scales of batch norms in them. Kernels copy its results to the layouts that they
want once, too (prepacking.py).

PyTorch does not say whether a tensor has changed: `parameter.data.mul_(2)`, a NumPy
view and other libraries leave its version as it is. Each call therefore compares the
weights that this program reads, bit by bit, with what they were. Kernels read all other
weights where they are, and pack them in each call. That takes no longer than comparing.

With `freezing`, kernels pack all weights once, and calls compare addresses and
versions.
"""

from __future__ import annotations

import ctypes
import sys
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
from ..passes.inference import separated, unmark
from ..support.arrays import Array, address
from .torch_calls import Make, TensorProgram, Tensors

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ..runtime.executor import Executable
    from ..support.slots import Input, Result

Build: TypeAlias = "Callable[[ModuleOp], Executable]"

KEPT = 64
"""Sets of weights of a graph, such as those of layers that share it. With more, all
weights are passed in each call."""

_compare = ctypes.CDLL("msvcrt" if sys.platform == "win32" else None).memcmp
_compare.argtypes = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t


class Weighted:
    """A program some of whose arguments are weights, by number."""

    def __init__(
        self,
        module: ModuleOp,
        weights: Sequence[int],
        build: Build,
        results: Sequence[Make],
        freezing: bool,
    ):
        """`results` make tensors for its results."""
        names = argument_names(module)
        self._names = [names[n] for n in weights]
        self._weights = weights
        self._inputs = [n for n in names if n not in weights]
        self._build = build
        self._results = results
        self._freezing = freezing
        self._module = module.clone()
        with_parameters(module, {n: Parameter(names[n], None) for n in weights})
        precompute, self._computed = separated(context(), module, names.values())
        self._precompute = build(precompute) if precompute else None
        if not freezing:
            unmark(module, set(self._computed.values()))
        self._run = build(module)
        self._sets: Any = import_module("torch.utils.weak").WeakIdKeyDictionary()
        """By the first tensor of each."""
        self._count = 0
        self._alone = RLock()

    def __call__(self, given: list[Any]) -> list[Any]:
        """The results."""
        with self._alone:
            weights = self._found([given[n] for n in self._weights])
            if weights is None:
                return self._unweighted(given)
            return weights.call([given[n] for n in self._inputs])

    @cached_property
    def _unweighted(self) -> TensorProgram:
        return TensorProgram(self._build(self._module), self._results)

    def _found(self, tensors: Tensors) -> _Weights | None:
        """The program for the weights in these tensors; None for too many of them, and
        for some that lie askew."""
        found = self._sets.get(tensors[0])
        starts = [tensor.data_ptr() for tensor in tensors]
        versions = list(map(_version, tensors)) if self._freezing else []
        if found is None or found.starts != starts:
            found = self._bound(tensors, starts) if self._count < KEPT else None
            if found is None:
                return None
            self._sets[tensors[0]] = found
        elif found.versions != versions or any(map(_compare, *found.compared)):
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
        if not self._freezing:
            bound.watch()
        return bound


def _is_in_place(array: Array, start: int) -> bool:
    """Whether a program can be bound to an array, which is a tensor's own memory."""
    is_there = address(array) == start or not array.size
    return is_there and array.flags.c_contiguous and array.flags.aligned


def _version(tensor: Any) -> int:
    """How often PyTorch has seen it change."""
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
        """`starts` are the addresses of `arrays`. `precompute` gives the parameters of
        `run` that are `computed`."""
        self.call: TensorProgram
        self.run = run
        self.starts = starts
        self.versions: Sequence[int] = []
        self.compared: Sequence[Sequence[int]] = [], [], []
        """Addresses of weights and of copies, and bytes."""
        self._precompute = precompute
        taken: Sequence[Input] = precompute.inputs if precompute else []
        given: Sequence[Result] = precompute.results if precompute else []
        self._sources = [arrays[slot.name] for slot in taken]
        self._copies: Sequence[Array] = []
        self._results: Sequence[Array] = [np.ndarray(x.shape, x.dtype) for x in given]
        self.compute()
        values = {**arrays, **{x: self._results[n] for n, x in computed.items()}}
        slots = enumerate(run.inputs)
        run.bind({n: values[slot.name] for n, slot in slots if slot.name in values})

    def compute(self) -> None:
        """Computes what follows from the weights, in the same place."""
        for copy, array in zip(self._copies, self._sources, strict=False):
            copy[...] = array
        if self._precompute is not None:
            self._precompute(*self._sources, out=self._results)
        self.run.repack()

    def watch(self) -> None:
        """Has calls compare the weights that the results follow from."""
        sources = self._sources
        self._copies = [array.copy() for array in sources]
        starts, copies = (list(map(address, x)) for x in (sources, self._copies))
        self.compared = starts, copies, [array.nbytes for array in sources]
