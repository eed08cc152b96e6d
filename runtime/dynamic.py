"""Runs programs with symbolic sizes: as a static program for the sizes of each call.

A call binds the size names in the types of the arguments to numbers. The program is
specialized once for each set of sizes, and the result is cached. All specialized
programs share the same pools: an arena of static size is the same for all sizes, and an
arena of computed size grows to the largest.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from threading import RLock
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from ..dialects.diagnostics import LocatedError
from ..dialects.dtypes import Array
from ..dialects.sizes.dims import BOUNDS, REQUIRES, numbers_in, violated
from ..dialects.sizes.symbolic import (
    Size,
    Symbolic,
    definitions,
    inverse,
    names_in,
    substitute,
)
from ..dialects.tgraph.signature import Signature, signature
from ..support.slots import Input, Result
from .executor import Executable
from .pool import Pool
from .runnable import check_devices

Specialize = Callable[[ModuleOp, Mapping[str, int]], ModuleOp]
"""Returns a copy of a module with numbers for its symbolic sizes."""

KEPT = 16
"""The number of specialized programs that are cached: the most recently used."""


class DynamicExecutable:
    """A memref program with symbolic sizes, ready to run; called like an `Executable`.

    `sizes` are those of the last call. The first call with new sizes specializes and
    prepares the program, and checks its plan again. The `kept` most recently used of
    these programs are cached. Options are those of `Executable`. Several threads may
    call it, as they may call an `Executable`.

    Raises `ValueError` when called with sizes that contradict each other, or that the
    program does not allow.
    """

    def __init__(
        self,
        module: ModuleOp,
        specialize: Specialize,
        entry: str = "main",
        *,
        kept: int = KEPT,
        pools: Sequence[Pool] = (),
        **options: Any,
    ):
        if options.get("processes"):
            raise ValueError(
                "programs with symbolic sizes run in one process, expected processes=1"
            )
        self.sizes: Mapping[str, int] = {}
        self.pools: Sequence[Pool] = pools
        self.parameters: dict[int, object] = {}
        """The inputs that `bind` has bound, by index."""
        self._module = module
        self._specialize = specialize
        self._entry = entry
        self._kept = kept
        self._options = options
        self._binding = Binding(signature(module, entry))
        check_devices(self._binding.signature.function)
        self._programs: OrderedDict[tuple[int, ...], Executable] = OrderedDict()
        self._alone = RLock()

    def clone(self) -> "DynamicExecutable":
        """Returns the same program with its own memory, for calls in parallel; see
        `Executable.clone`. Cached programs are cloned as well."""
        with self._alone:
            other = copy(self)
            other._alone = RLock()
            other.pools = [pool.new_like() for pool in self.pools]
            other.parameters = self.parameters.copy()
            other._programs = OrderedDict(
                (sizes, program.clone(other.pools))
                for sizes, program in self._programs.items()
            )
        return other

    @property
    def inputs(self) -> Sequence[Input]:
        return self._binding.signature.inputs

    @property
    def results(self) -> Sequence[Result]:
        return self._binding.signature.results

    @property
    def scratch_bytes(self) -> int:
        """The largest number of bytes of kernel scratch memory that any cached program
        takes, without planned workspaces."""
        with self._alone:
            programs = self._programs.values()
            return max((p.scratch_bytes for p in programs), default=0)

    def bind(self, parameters: Mapping[int, object]) -> None:
        """Binds inputs, by index, for all later calls."""
        with self._alone:
            self.parameters.update(parameters)
            for program in self._programs.values():
                program.bind(parameters)

    def at(self, sizes: Mapping[str, int]) -> Executable:
        """The program for these sizes. Raises `ValueError` for sizes that the program
        does not allow."""
        self._binding.check(sizes)
        key = tuple(sizes[name] for name in self._binding.names)
        with self._alone:
            if key not in self._programs:
                self._programs[key] = self._made(sizes)
                if len(self._programs) > self._kept:
                    self._programs.popitem(last=False)[1].close()
            self._programs.move_to_end(key)
            return self._programs[key]

    def _made(self, sizes: Mapping[str, int]) -> Executable:
        module = self._specialize(self._module, sizes)
        pools, options = self.pools, self._options
        program = Executable(
            *(module, self._entry), pools=pools, parameters=self.parameters, **options
        )
        devices = {pool.device for pool in pools}
        new = [pool for pool in program.pools if pool.device not in devices]
        self.pools = [*pools, *new]
        return program

    def __call__(
        self, *arrays: object, out: Sequence[Array | None] | None = None
    ) -> list[Array]:
        with self._alone:
            self.sizes = self._sizes_of(arrays)
            return self.at(self.sizes)(*arrays, out=out)

    def _sizes_of(self, arrays: Sequence[object]) -> Mapping[str, int]:
        given = iter(arrays)
        count = len(self.inputs) - len(self.parameters)
        if len(arrays) != count:
            raise TypeError(f"the number of arrays is {len(arrays)}, expected {count}")
        shapes = [
            np.shape(
                cast(Any, self.parameters[n] if n in self.parameters else next(given))
            )
            for n in range(len(self.inputs))
        ]
        return self._binding.sizes(shapes)

    def close(self) -> None:
        """Ends threads; a later call restarts them."""
        with self._alone:
            for program in self._programs.values():
                program.close()


class Binding:
    """How size names follow from the shapes of a program's inputs.

    Raises `LocatedError` if a name does not follow from them.
    """

    def __init__(self, signature: Signature):
        self.signature = signature
        sizes = [size for _, _, size in self._places()]
        self._definitions = definitions(sizes)
        self.names = [name for name, _ in self._definitions]
        results = [size for result in signature.results for size in result.shape]
        for size in (*sizes, *results):
            if unknown := [n for n in names_in(size) if n not in self.names]:
                raise LocatedError(
                    f"size {unknown[0]} cannot be derived from the inputs' shapes",
                    signature.function,
                )

    def _places(self) -> Iterator[tuple[int, int, Size]]:
        for number, slot in enumerate(self.signature.inputs):
            for dim, size in enumerate(slot.shape):
                yield number, dim, cast(Size, size)

    def sizes(self, shapes: Sequence[Sequence[int]]) -> dict[str, int]:
        """The value of each name. Raises `ValueError` for shapes that do not match."""
        for number, (slot, shape) in enumerate(
            zip(self.signature.inputs, shapes, strict=True)
        ):
            if len(shape) != len(slot.shape):
                raise ValueError(
                    f"argument {number} has {len(shape)} dimensions, expected "
                    f"{len(slot.shape)}"
                )
        places = [*self._places()]
        values: dict[str, int] = {}
        for name, index in self._definitions:
            number, dim, size = places[index]
            found = inverse(substitute(size, values), name, shapes[number][dim])
            values[name] = cast(int, found)
        for number, dim, size in places:
            got, expected = shapes[number][dim], substitute(size, values)
            if got != expected:
                text = (
                    f"{size} = {expected}" if isinstance(size, Symbolic) else expected
                )
                raise ValueError(
                    f"argument {number} has size {got} along dimension {dim}, expected "
                    f"{text}"
                )
        return values

    def check(self, values: Mapping[str, int]) -> None:
        """Raises `ValueError` for sizes that the program does not allow."""
        attributes = self.signature.function.attributes
        bounds = numbers_in(attributes.get(BOUNDS))
        for name in self.names:
            value = values.get(name, 0)
            if value < 1:
                raise ValueError(f"size {name} is {value}, expected 1 or more")
            if name in bounds and value > bounds[name]:
                raise ValueError(
                    f"size {name} is {value}, expected at most {bounds[name]}, the "
                    "bound that the program was planned for"
                )
        if fault := violated(attributes.get(REQUIRES), values):
            raise ValueError(fault)


def is_dynamic(module: ModuleOp, entry: str = "main") -> bool:
    """Whether the program has symbolic sizes."""
    io = signature(module, entry)
    slots = (*io.inputs, *io.results)
    return any(isinstance(size, Symbolic) for slot in slots for size in slot.shape)
