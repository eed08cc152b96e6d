"""Runs memref programs: compiled once into a flat list of calls, then only called.

The caller's arrays are the arguments' memory. When a call brings an argument in other
memory than the last, the steps that touch it are made again; else nothing is.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from tensorplan.runtime.dtypes import Array
from tensorplan.runtime.native.records import joined
from tensorplan.runtime.pool import Pool
from tensorplan.runtime.program import Memory, PlanViolation, Program
from tensorplan.runtime.signature import Input, Result, Slot, signature

__all__ = ["Executable", "PlanViolation"]


class Executable:
    """A memref program, ready to run. Not for use by several threads at a time.

    `executable(*arrays)` takes an array for each input and returns the results in the
    order of the signature (see `tensorplan.runtime.signature`):

    - An input that is a C-contiguous NumPy array of the right type is used where it is,
      and kept alive until another takes its place. Other array types (whatever has
      `__array_interface__`, `__array__` or `__dlpack__`) are seen as NumPy arrays;
      lists and numbers are copied.
    - A variable given as such an array, if writable, is updated in place and returned.
      Otherwise a copy is updated and returned.
    - Other results are returned as new arrays, or written to the arrays in `out`.

    Raises `LocatedError` when made from IR that it cannot run; `TypeError` or
    `ValueError` when called with arrays that do not fit.

    With `sanitize`, memory without use holds what is surely wrong: 0xFF in every byte
    (NaN in every float type, -1 in integers) in buffers and results before their first
    access and in buffers after their last; 0xA5 in what no buffer of a pool covers,
    which is looked at after the run (`PlanViolation`). A sound plan's results are the
    same, an unsound plan's are not.

    What the program allocates without a plan comes from an `allocator` (a name in
    `tensorplan.runtime.allocators.ALLOCATORS`). With `pools`, those of other programs,
    it uses their memory and their allocators; only one of the programs may run at a
    time.

    Where llvmlite is installed, elementwise operations, reductions and fused groups are
    compiled to native code, unless `native` is false (or the environment variable
    `TENSORPLAN_NATIVE` is 0).
    """

    def __init__(
        self,
        module: ModuleOp,
        entry: str = "main",
        *,
        sanitize: bool = False,
        allocator: str = "bfc",
        pools: Sequence[Pool] = (),
        native: bool = True,
    ):
        signature_ = signature(module, entry)
        self.inputs: Sequence[Input] = signature_.inputs
        self.results: Sequence[Result] = signature_.results
        self._program = Program(module, signature_, sanitize, pools, allocator, native)
        self._tape = self._flat()
        self._parameters: dict[int, Array] = {}
        # What the last call gave for each input, if used in place.
        self._given: list[object] = [None] * len(self.inputs)
        # The array that each argument is bound to, first the program's own.
        self._own = {
            slot.value: self._program.view(slot.value).array()
            for slot in (*self.inputs, *self.results)
            if slot.value in self._program.arguments
        }
        self._bound = dict(self._own)

    @property
    def pools(self) -> Sequence[Pool]:
        """The devices' memory: `pool.device`, `pool.bytes`."""
        return self._program.pools

    @property
    def parameters(self) -> Mapping[int, Array]:
        """The inputs that `bind` has given once, by number."""
        return self._parameters

    def bind(self, parameters: Mapping[int, object]) -> None:
        """Gives inputs, by number, for all calls from now on; these take the others
        only. Programs share parameters when one binds those of another:
        `other.bind(program.parameters)`; then each sees how the others update them.

        Raises `TypeError` or `ValueError` for arrays that do not fit.
        """
        bound: dict[int, Array] = {}
        for index, given in parameters.items():
            if not 0 <= index < len(self.inputs):
                raise ValueError(
                    f"there is no input {index}, expected 0 to {len(self.inputs) - 1}"
                )
            slot = self.inputs[index]
            array = _as_array(given, slot, f"argument {index}")
            if not _is_plain(array) or (slot.is_variable and not array.flags.writeable):
                array = np.array(array, order="C")
            bound[index] = array
        self._parameters |= bound

    @property
    def scratch_bytes(self) -> int:
        """Bytes of the workspaces that kernels use while they run, on all devices."""
        return self._program.scratch_bytes

    def __call__(
        self, *arrays: object, out: Sequence[Array | None] | None = None
    ) -> list[Array]:
        expected = len(self.inputs) - len(self._parameters)
        if len(arrays) != expected:
            raise TypeError(f"got {len(arrays)} arrays, expected {expected}")
        if self._parameters:
            rest = iter(arrays)
            arrays = tuple(
                self._parameters[index] if index in self._parameters else next(rest)
                for index in range(len(self.inputs))
            )
        if self._program.follow_pools():
            for step in self._program.steps:
                step.remake()
            self._tape = self._flat()
        wanted: dict[SSAValue, Array] = {}
        in_place = self._given.copy()
        for index, given in enumerate(arrays):
            if given is None or given is not self._given[index]:
                array, is_in_place = self._accept(index, given)
                wanted[self.inputs[index].value] = array
                in_place[index] = given if is_in_place else None
        outs = self._outs(out)
        wanted |= {
            value: array
            for value, array in outs.items()
            if array is not self._bound[value]
        }
        if wanted:
            self._separate(wanted)
            self._bind(wanted)
            self._given = [
                None if self._bound[slot.value] is self._own[slot.value] else given
                for slot, given in zip(self.inputs, in_place, strict=True)
            ]
        with np.errstate(all="ignore"):
            for function, arguments in self._tape:
                function(*arguments)
        return [
            self._result(number, None if out is None else out[number])
            for number in range(len(self.results))
        ]

    def _accept(self, index: int, given: object) -> tuple[Array, bool]:
        """The array to bind to an input, and whether it is what was given."""
        slot = self.inputs[index]
        array = _as_array(given, slot, f"argument {index}")
        if slot.is_variable:
            is_array = isinstance(given, np.ndarray) and array.flags.writeable
        else:
            is_array = not isinstance(given, list | tuple | int | float | np.generic)
        if is_array and _is_plain(array):
            return array, True
        if slot.is_variable:
            return np.array(array, order="C"), False
        own = self._own[slot.value]
        own[...] = array
        return own, False

    def _outs(self, out: Sequence[Array | None] | None) -> dict[SSAValue, Array]:
        """The array to bind to each argument that receives a result."""
        if out is not None and len(out) != len(self.results):
            raise ValueError(
                f"out has {len(out)} arrays, expected {len(self.results)}: one for "
                "each result, or None"
            )
        outs: dict[SSAValue, Array] = {}
        for number, result in enumerate(self.results):
            given = None if out is None else out[number]
            if given is not None:
                _check_out(given, result, number)
            if result.input is None and result.value in self._own:
                outs[result.value] = self._own[result.value] if given is None else given
        return outs

    def _bind(self, wanted: dict[SSAValue, Array]) -> None:
        """Makes arrays the memory of arguments, and what depends on it anew."""
        changed: set[SSAValue] = set()
        for value, array in wanted.items():
            memory: Memory = self._program.arguments[value]
            if _address(array) != _address(self._bound[value]):
                memory.bytes = array.reshape(-1).view(np.uint8)
                changed.add(value)
            self._bound[value] = array
        if not changed:
            return
        for step in self._program.steps:
            if not changed.isdisjoint(step.arguments):
                step.remake()
        self._tape = self._flat()

    def _separate(self, wanted: dict[SSAValue, Array]) -> None:
        """Keeps what is written apart from all other arguments.

        An input that shares memory with a variable is copied. Raises `ValueError` if
        two arguments that are written share memory, or a result's with an input.
        """
        bound = self._bound | wanted
        spans = {value: _span(array) for value, array in bound.items()}
        inputs = {slot.value for slot in self.inputs}
        written = {s.value for s in self.inputs if s.is_variable}
        written |= {v for v in bound if v not in inputs}
        for value in list(wanted):
            start, stop = spans[value]
            for other, (other_start, other_stop) in spans.items():
                if other is value or stop <= other_start or other_stop <= start:
                    continue
                if value not in written and other not in written:
                    continue
                reader = next((v for v in (value, other) if v not in written), None)
                if reader is None or not {value, other} <= inputs:
                    raise ValueError(
                        "arrays for a variable or for a result share memory with one "
                        "another or with an input"
                    )
                own = self._own[reader]
                if bound[reader] is not own:
                    own[...] = bound[reader]
                    wanted[reader] = own

    def _result(self, number: int, out: Array | None) -> Array:
        result = self.results[number]
        if result.input is not None:
            return self._bound[result.value]
        if result.value in self._own:
            return self._own[result.value].copy() if out is None else out
        array = self._program.view(result.value).array()
        if out is None:
            return array.copy()
        out[...] = array
        return out

    def _flat(self) -> list[tuple[Any, tuple[Any, ...]]]:
        return joined([call for step in self._program.steps for call in step.calls])


def _as_array(given: object, slot: Slot, name: str) -> Array:
    """What was given as an array of the slot's type and shape, without a copy if
    possible."""
    try:
        if isinstance(given, np.ndarray):
            array = cast(Array, given)
        elif hasattr(given, "__array_interface__") or hasattr(given, "__array__"):
            array = np.asarray(given)
        elif hasattr(given, "__dlpack__"):
            array = np.from_dlpack(given)  # pyright: ignore
        else:
            array = np.asarray(given)
            if array.size == 0 or np.can_cast(array.dtype, slot.dtype, "same_kind"):
                array = array.astype(slot.dtype)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise TypeError(f"{name} is no array: {error}") from None
    if array.dtype != slot.dtype:
        raise TypeError(
            f"{name} has elements of type {array.dtype}, expected {slot.dtype}"
        )
    if array.shape != slot.shape:
        raise ValueError(f"{name} has shape {array.shape}, expected {slot.shape}")
    return array


def _is_plain(array: Array) -> bool:
    return array.flags.c_contiguous and array.flags.aligned


def _check_out(given: Array, result: Result, number: int) -> None:
    name = f"out {number}"
    if result.input is not None:
        raise ValueError(
            f"{name} is given, expected None: result {number} is the new contents of "
            f"argument {result.input}"
        )
    if _as_array(given, result, name) is not given:
        raise TypeError(f"{name} is a {type(given).__name__}, expected a NumPy array")
    if not _is_plain(given) or not given.flags.writeable:
        raise ValueError(f"{name} is not a writable C-contiguous array")


def _address(array: Array) -> int:
    return array.__array_interface__["data"][0]


def _span(array: Array) -> tuple[int, int]:
    """The addresses that a contiguous array covers; none if it is empty."""
    start = _address(array)
    return start, start + array.nbytes
