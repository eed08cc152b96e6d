"""oneDNN's primitives on arrays, as native calls."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from ctypes import Structure, addressof, c_int, c_void_p
from functools import partial

import numpy as np

from ....arrays import Array, address
from ...allocators.host import aligned_bytes
from ...calls import Call
from ...pool import ALIGNMENT, Scratch
from ...prepacking import Prepacked
from ..jit.llvm import compiler
from ..jit.records import Record
from .library import USER_SCRATCHPAD, Handle, Refused, library

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


_EXECUTE = """define i32 @{name}(ptr %words) {
  %execute = load ptr, ptr %words
  %at1 = getelementptr i64, ptr %words, i64 1
  %primitive = load ptr, ptr %at1
  %at2 = getelementptr i64, ptr %words, i64 2
  %stream = load ptr, ptr %at2
  %at3 = getelementptr i64, ptr %words, i64 3
  %wide = load i64, ptr %at3
  %count = trunc i64 %wide to i32
  %at4 = getelementptr i64, ptr %words, i64 4
  %arguments = load ptr, ptr %at4
  %status = call i32 %execute(ptr %primitive, ptr %stream, i32 %count, ptr %arguments)
  ret i32 %status
}"""
"""`dnnl_primitive_execute`, whose address is the first word, on the others."""


class Execution(Record):
    """The call of a primitive on `memory`: each argument's descriptor and array."""

    __slots__ = ("_arrays", "_handles")

    def __init__(
        self, description: Handle, memory: Mapping[int, tuple[int, Array]]
    ) -> None:
        lib = library()
        primitive = lib.make("primitive", "primitive_create", description.value)
        self._arrays: dict[int, Array] = {k: array for k, (_, array) in memory.items()}
        self._handles = {
            kind: lib.make(
                "memory", "memory_create", descriptor, lib.engine, address(array)
            )
            for kind, (descriptor, array) in memory.items()
        }
        arguments = (_Argument * len(memory))(
            *((kind, handle.value) for kind, handle in self._handles.items())
        )
        words = [lib.execute, primitive.value, lib.stream, len(memory)]
        super().__init__(
            compiler().function(_EXECUTE),
            [*words, addressof(arguments)],
            (primitive, arguments),
        )

    def pointers(self) -> Iterator[tuple[Array, Callable[[int], object]]]:
        for kind, array in self._arrays.items():
            yield array, partial(self._point, kind)

    def _point(self, kind: int, address: int) -> None:
        library().do("memory_set_data_handle", self._handles[kind].value, address)
        self._arrays.pop(kind, None)


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

    def memory(self) -> dict[int, tuple[int, Array]]:
        return {
            POST_OP * (index + 1) | SECOND_SOURCE: (used[0].value, used[1])
            for index, used in enumerate(self._arrays)
            if used
        }


def describe(array: Array) -> Handle:
    """Raises `Refused` for negative strides, broadcasts, and what lies askew."""
    size = array.itemsize
    if any(s % size for s in array.strides):
        raise Refused
    strides = [s // size for s in array.strides]
    if any(s <= 0 < size - 1 for s, size in zip(strides, array.shape, strict=True)):
        raise Refused
    # What the stride of a dimension of size 1 is does not matter, but to oneDNN.
    extent = 1
    for d in sorted(range(array.ndim), key=lambda d: (strides[d], -d)):
        if array.shape[d] == 1:
            strides[d] = extent
        extent = max(extent, strides[d] * array.shape[d])
    return library().describe(array, strides)


def compiled(
    description: Handle,
    arrays: Mapping[int, Array],
    attributes: Attributes,
    scratch: Scratch,
    reordered: Sequence[int] = (),
) -> list[Call]:
    """The calls that compute a primitive on arrays.

    The arguments in `reordered` are brought to the layout that the primitive wants: in
    the workspace, before or (what it writes) after it, or once and now if no run
    changes them. Raises `Refused` if only oneDNN's reference, a plain loop, could do
    it.
    """
    lib = library()
    if lib.implementation(description).startswith("ref"):
        raise Refused
    memory = attributes.memory()
    before: list[Record] = []
    after: list[Record] = []
    for kind, array in arrays.items():
        wanted = _wanted(description, kind)
        if kind not in reordered:
            memory[kind] = wanted, array
        elif constant := scratch.constant(array):
            memory[kind] = wanted, _prepacked(constant, array, wanted)
        elif lib.get("memory_desc_equal", (given := describe(array)).value, wanted):
            memory[kind] = wanted, array
        else:
            size = lib.get("memory_desc_get_size", wanted)
            copy = scratch.take((size,), np.dtype(np.uint8))
            source, memory[kind] = (given.value, array), (wanted, copy)
            if kind == WEIGHTS_GRADIENT:
                after.append(_reorder(memory[kind], source))
            else:
                before.append(_reorder(source, memory[kind]))
    wanted = _wanted(description, WORKSPACE)
    size = lib.get("memory_desc_get_size", wanted)
    if size:
        memory[WORKSPACE] = wanted, scratch.take((size,), np.dtype(np.uint8))
    return [(x, ()) for x in (*before, Execution(description, memory), *after)]


def _wanted(description: Handle, kind: int) -> int:
    """The descriptor of the memory that a primitive wants."""
    return library().get(
        "primitive_desc_query_md", description.value, _QUERIES[kind], 0
    )


def _prepacked(constant: Prepacked, array: Array, wanted: int) -> Array:
    """The array in the layout `wanted`: a copy, made unless it is there."""
    lib = library()
    with constant.lock:
        copies = constant.copies_of(array)
        for layout, copy in copies:
            if lib.get("memory_desc_equal", layout.value, wanted):
                return copy
        made = _packed(constant, array, wanted)
        if made is None:
            return array
        copies.append(made)
        return made[1]


def _packed(
    constant: Prepacked, array: Array, wanted: int
) -> tuple[Handle, Array] | None:
    """A copy in the layout `wanted`, and that layout; None if the array has it."""
    lib = library()
    is_flipped = min(array.strides, default=0) < 0
    source = np.copy(array) if is_flipped else array
    given = describe(source)
    if not is_flipped and lib.get("memory_desc_equal", given.value, wanted):
        return None
    layout = lib.make("memory_desc", "memory_desc_clone", wanted)
    copy = aligned_bytes(lib.get("memory_desc_get_size", wanted), ALIGNMENT)
    constant.fill(_reorder((given.value, source), (wanted, copy)))
    return layout, copy


def _reorder(source: tuple[int, Array], target: tuple[int, Array]) -> Record:
    lib = library()
    description = lib.make(
        *("primitive_desc", "reorder_primitive_desc_create"),
        *(source[0], lib.engine, target[0], lib.engine, None),
    )
    return Execution(description, {SOURCE: source, TARGET: target})
