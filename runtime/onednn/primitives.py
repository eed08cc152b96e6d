"""oneDNN's primitives on arrays, as calls."""

from collections.abc import Callable, Mapping, Sequence
from ctypes import Structure, addressof, c_int, c_void_p

import numpy as np

from tensorplan.runtime.dtypes import Array
from tensorplan.runtime.onednn.library import (
    USER_SCRATCHPAD,
    Handle,
    Refused,
    library,
)
from tensorplan.runtime.pool import Scratch

SOURCE, TARGET, WEIGHTS, WORKSPACE = 1, 17, 33, 80
SOURCE_GRADIENT, TARGET_GRADIENT, WEIGHTS_GRADIENT = 129, 145, 161
POST_OP, SECOND_SOURCE = 32768, 2
"""What an array is to a primitive (`DNNL_ARG_...`)."""

_QUERIES = {
    **{SOURCE: 129, WEIGHTS: 131, TARGET: 133, WORKSPACE: 136},
    **{SOURCE_GRADIENT: 130, WEIGHTS_GRADIENT: 132, TARGET_GRADIENT: 134},
}
"""The numbers of the queries for their descriptors (`dnnl_query_..._md`)."""


class _Argument(Structure):
    _fields_ = (("kind", c_int), ("memory", c_void_p))


class Execution:
    """A primitive to be executed on some memory, which it keeps alive."""

    __slots__ = ("_arguments", "_call", "_execute", "_kept")

    def __init__(
        self, description: Handle, memory: Mapping[int, tuple[int | None, Array]]
    ):
        """`memory`: for each argument its descriptor and its array."""
        lib = library()
        primitive = lib.make("primitive", "primitive_create", description.value)
        handles = {
            kind: lib.make(
                "memory", "memory_create", descriptor, lib.engine, address(array)
            )
            for kind, (descriptor, array) in memory.items()
        }
        self._arguments = (_Argument * len(handles))(
            *((kind, handle.value) for kind, handle in handles.items())
        )
        self._execute = lib.execute
        self._call = (
            primitive.value,
            lib.stream,
            len(handles),
            addressof(self._arguments),
        )
        self._kept = primitive, handles, memory

    def __call__(self) -> None:
        if status := self._execute(*self._call):
            raise RuntimeError(f"oneDNN gives status {status}")


class Attributes:
    """What a primitive does after its main work: post-ops, and the arrays they read."""

    def __init__(self) -> None:
        lib = library()
        self._operations = lib.make("post_ops", "post_ops_create")
        self._arrays: list[tuple[Handle, Array] | None] = []  # by post-op
        self.sums = 0

    def sum(self, scale: float) -> None:
        """Adds the target's old contents."""
        library().do("post_ops_append_sum", self._operations.value, scale, 0, 0)
        self._arrays.append(None)
        self.sums += 1

    def eltwise(self, kind: int, alpha: float, beta: float) -> None:
        library().do(
            "post_ops_append_eltwise", self._operations.value, kind, alpha, beta
        )
        self._arrays.append(None)

    def binary(self, kind: int, array: Array) -> None:
        """With an array of the target's shape, or a broadcast."""
        array = array[*(slice(0, None if s else 1) for s in array.strides), ...]
        described = describe(array)
        library().do(
            "post_ops_append_binary", self._operations.value, kind, described.value
        )
        self._arrays.append((described, array))

    def made(self) -> Handle:
        lib = library()
        made = lib.make("primitive_attr", "primitive_attr_create")
        lib.do("primitive_attr_set_scratchpad_mode", made.value, USER_SCRATCHPAD)
        lib.do("primitive_attr_set_post_ops", made.value, self._operations.value)
        return made

    def memory(self) -> dict[int, tuple[int | None, Array]]:
        return {
            POST_OP * (index + 1) | SECOND_SOURCE: (used[0].value, used[1])
            for index, used in enumerate(self._arrays)
            if used
        }


def describe(array: Array) -> Handle:
    """Raises `Refused` for elements that are not f32, negative strides, broadcasts."""
    if array.dtype != np.float32 or any(s % 4 for s in array.strides):
        raise Refused
    strides = [s // 4 for s in array.strides]
    if any(s <= 0 < size - 1 for s, size in zip(strides, array.shape, strict=True)):
        raise Refused
    # What the stride of a dimension of size 1 is does not matter, but to oneDNN.
    extent = 1
    for d in sorted(range(array.ndim), key=lambda d: (strides[d], -d)):
        if array.shape[d] == 1:
            strides[d] = extent
        extent = max(extent, strides[d] * array.shape[d])
    return library().describe(array.shape, strides)


def address(array: Array) -> int:
    return array.__array_interface__["data"][0]


def compiled(
    description: Handle,
    arrays: Mapping[int, Array],
    attributes: Attributes,
    scratch: Scratch,
    reordered: Sequence[int] = (),
) -> list[Callable[[], None]]:
    """The executions that compute a primitive on arrays.

    The arguments in `reordered` are brought to the layout that the primitive wants,
    in the workspace, before or (what it writes) after it. Raises `Refused` if only
    oneDNN's reference, a plain loop, could do it.
    """
    lib = library()
    if lib.implementation(description).startswith("ref"):
        raise Refused
    memory = attributes.memory()
    before: list[Callable[[], None]] = []
    after: list[Callable[[], None]] = []
    for kind, array in arrays.items():
        wanted = lib.get(
            "primitive_desc_query_md", description.value, _QUERIES[kind], 0
        )
        if kind in reordered:
            given = describe(array)
            if not lib.get("memory_desc_equal", given.value, wanted):
                size = lib.get("memory_desc_get_size", wanted)
                copy = scratch.take((size,), np.dtype(np.uint8))
                ends = (given.value, array), (wanted, copy)
                if kind == WEIGHTS_GRADIENT:
                    after.append(_reorder(ends[1], ends[0]))
                else:
                    before.append(_reorder(*ends))
                array = copy
        memory[kind] = wanted, array
    wanted = lib.get(
        "primitive_desc_query_md", description.value, _QUERIES[WORKSPACE], 0
    )
    size = lib.get("memory_desc_get_size", wanted)
    if size:
        memory[WORKSPACE] = wanted, scratch.take((size,), np.dtype(np.uint8))
    return [*before, Execution(description, memory), *after]


def _reorder(
    source: tuple[int | None, Array], target: tuple[int | None, Array]
) -> Execution:
    lib = library()
    attributes = Attributes()
    made = attributes.made()
    description = lib.make(
        "primitive_desc",
        "reorder_primitive_desc_create",
        source[0],
        lib.engine,
        target[0],
        lib.engine,
        made.value,
    )
    return Execution(description, {SOURCE: source, TARGET: target})
