"""Native calls of oneDNN's primitives on arrays."""

from collections.abc import Iterator, Mapping, Sequence
from ctypes import Structure, addressof, c_int, c_void_p
from ctypes import cast as as_type
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from ....support.arrays import Array, Shape, address, name_of
from ...allocators.host import aligned_bytes
from ...calls import Call
from ...pool import ALIGNMENT, Scratch
from ...prepacking import Prepacked
from ..jit import signals
from ..jit.llvm import compiler
from ..jit.records import Pointer, Record, Target
from .library import USER_SCRATCHPAD, Handle, Refused, dims, library

SOURCE, TARGET, WEIGHTS, WORKSPACE = 1, 17, 33, 80
SOURCE_GRADIENT, TARGET_GRADIENT, WEIGHTS_GRADIENT = 129, 145, 161
POST_OP, SECOND_SOURCE = 32768, 2
"""The roles of arrays in a primitive (`DNNL_ARG_...`)."""

KEPT = 1024
"""The number of descriptions that are cached: as many as oneDNN caches primitives."""

_QUERIES = {
    **{SOURCE: 129, WEIGHTS: 131, TARGET: 133, WORKSPACE: 136},
    **{SOURCE_GRADIENT: 130, WEIGHTS_GRADIENT: 132, TARGET_GRADIENT: 134},
}
"""The number of the query for the memory descriptor of each role
(`dnnl_query_..._md`).
"""


class _Argument(Structure):
    _fields_ = (("kind", c_int), ("memory", c_void_p))


def _executing(before: str = "", after: str = "") -> str:
    """A function that calls `dnnl_primitive_execute`, whose address is the first word,
    with the other words."""
    return f"""define i32 @{{name}}(ptr %words) {{
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
  {before}
  %status = call i32 %execute(ptr %primitive, ptr %stream, i32 %count, ptr %arguments)
  {after}
  ret i32 %status
}}
{signals.DECLARED if before else ""}"""


EXECUTE = _executing()

UNINTERRUPTED = _executing(
    f"""%at5 = getelementptr i64, ptr %words, i64 5
  %signals = load ptr, ptr %at5
  %before = alloca {signals.SET}
  {signals.block("%signals", "%before")}""",
    signals.restore("%before"),
)
"""`EXECUTE` with signals blocked. The last word is the address of their set."""


PostOp: TypeAlias = tuple[Any, ...]
"""`("sum", scale)`, `("eltwise", kind, alpha, beta)` or `("binary", kind, layout)`."""


@dataclass(frozen=True)
class Layout:
    """The layout of an array in memory."""

    shape: Shape
    element: str
    """NumPy's name of the element type."""
    strides: Shape | None = None
    """In elements; None if the primitive chooses the layout."""

    @cached_property
    def handle(self) -> Handle:
        return library().describe(self.shape, self.element, self.strides)

    @property
    def descriptor(self) -> int:
        return self.handle.value


@dataclass(frozen=True, eq=False)
class Wanted:
    """The layout that a primitive chooses for one of its arguments."""

    primitive: "Description"
    kind: int

    @property
    def descriptor(self) -> int:
        handle = self.primitive.handle.value
        return library().get("primitive_desc_query_md", handle, _QUERIES[self.kind], 0)


ENGINE, ATTRIBUTES = "engine", "attributes"
"""Placeholders in `Description.arguments` for objects that each process creates."""


@dataclass(frozen=True, eq=False)
class Description:
    """The definition of a primitive, from which any process can create it."""

    kind: str
    """The KIND in `dnnl_KIND_primitive_desc_create`."""
    arguments: tuple["Layout | Wanted | Shape | int | str | None", ...]
    """The arguments of that function."""
    post_ops: tuple[PostOp, ...] = ()

    @cached_property
    def handle(self) -> Handle:
        """The primitive descriptor. Raises `Refused` if there is no such primitive."""
        name = f"{self.kind}_primitive_desc_create"
        made = self._made_attributes()
        passed = {ENGINE: library().engine, ATTRIBUTES: made.value}
        return library().make(
            "primitive_desc", name, *(_passed(x, passed) for x in self.arguments)
        )

    @cached_property
    def implementation(self) -> str:
        """See `Library.implementation`."""
        return library().implementation(self.handle)

    def _made_attributes(self) -> Handle:
        lib = library()
        operations = lib.make("post_ops", "post_ops_create")
        for name, *arguments in self.post_ops:
            values = (x.descriptor if isinstance(x, Layout) else x for x in arguments)
            rest = (0, 0) if name == "sum" else ()  # no zero point, the target's type
            lib.do(f"post_ops_append_{name}", operations.value, *values, *rest)
        made = lib.make("primitive_attr", "primitive_attr_create")
        lib.do("primitive_attr_set_scratchpad_mode", made.value, USER_SCRATCHPAD)
        lib.do("primitive_attr_set_post_ops", made.value, operations.value)
        return made


def _passed(argument: object, passed: Mapping[str, int]) -> object:
    match argument:
        case Layout() | Wanted():
            return argument.descriptor
        case str():
            return passed[argument]
        case tuple():
            return dims(cast(Shape, argument))
        case _:
            return argument


class Operand(NamedTuple):
    """An array of a primitive, and its layout."""

    layout: Layout | Wanted
    array: Array
    packed: Array | None = None
    """The array that `array` is a packed copy of, if it is one."""


class Execution(Record):
    """The call of a primitive on its operands."""

    def __init__(self, description: Description, operands: Mapping[int, Operand]):
        is_gemm = "gemm" in description.implementation
        text = UNINTERRUPTED if is_gemm else EXECUTE
        super().__init__(compiler().function(text, quick=True))
        self.description = description
        self.operands = dict(operands)
        """Without operands that have been moved, which the caller keeps alive."""

    @cached_property
    def _primitive(self) -> Handle:
        handle = self.description.handle.value
        return library().make("primitive", "primitive_create", handle)

    @cached_property
    def _handles(self) -> Mapping[int, Handle]:
        lib = library()
        return {
            kind: lib.make(
                *("memory", "memory_create", layout.descriptor, lib.engine),
                address(array),
            )
            for kind, (layout, array, _) in self.operands.items()
        }

    @cached_property
    def _arguments(self) -> Any:
        handles = self._handles.items()
        pairs = ((kind, handle.value) for kind, handle in handles)
        return (_Argument * len(handles))(*pairs)

    def _made_words(self) -> Sequence[int]:
        lib, arguments = library(), self._arguments
        words = [lib.execute, self._primitive.value, lib.stream, len(arguments)]
        return [*words, addressof(arguments), addressof(signals.asynchronous())]

    def pointers(self) -> Iterator[tuple[Array, Pointer]]:
        for kind, operand in self.operands.items():
            yield operand.array, _Memory(self, kind)

    def point(self, kind: int, address: int) -> None:
        move = library().function("memory_set_data_handle")
        if status := move(self._handles[kind].value, address):
            raise Refused(f"dnnl_memory_set_data_handle returned status {status}")
        self.operands.pop(kind, None)

    def target(self, kind: int) -> Target:
        move = library().function("memory_set_data_handle")
        return Target(self._handles[kind].value, as_type(move, c_void_p).value or 0)


class _Memory(NamedTuple):
    execution: Execution
    kind: int

    def __call__(self, address: int) -> None:
        self.execution.point(self.kind, address)

    @property
    def target(self) -> Target:
        return self.execution.target(self.kind)


class Attributes:
    """The post-ops of a primitive, and the arrays that they read."""

    def __init__(self) -> None:
        self.post_ops: list[PostOp] = []
        self.operands: dict[int, Operand] = {}
        self.sums = 0

    @property
    def scales_only(self) -> bool:
        """Whether there are post-ops, and all operands of them are constant numbers."""
        return bool(self.post_ops) and not self.sums and not self.operands

    def sum(self, scale: float) -> None:
        """Adds the old contents of the target."""
        self.post_ops.append(("sum", scale))
        self.sums += 1

    def eltwise(self, kind: int, alpha: float, beta: float) -> None:
        self.post_ops.append(("eltwise", kind, alpha, beta))

    def binary(self, kind: int, array: Array) -> None:
        """Combines the target with an array of its shape, or with a broadcast. oneDNN
        reads the elements of a broadcast contiguously, whatever its strides are, so
        this raises `Refused` for other layouts."""
        repeated = array[*(slice(0, None if s else 1) for s in array.strides), ...]
        if repeated.shape != array.shape and not repeated.flags.c_contiguous:
            raise Refused
        array, layout = repeated, describe(repeated)
        self.post_ops.append(("binary", kind, layout))
        place = POST_OP * len(self.post_ops) | SECOND_SOURCE
        self.operands[place] = Operand(layout, array)

    def describe(self, kind: str, *arguments: Any) -> Description:
        """A primitive with these post-ops."""
        post_ops = tuple(self.post_ops)
        return described(kind, arguments, post_ops, repr(post_ops))


@lru_cache(KEPT)
def described(
    kind: str, arguments: tuple[Any, ...], post_ops: tuple[PostOp, ...], exactly: str
) -> Description:
    """The same description for equal arguments: of equal layers, of parts for threads,
    and of kernels that are measured and later run. `exactly` distinguishes -0.0 from
    0.0."""
    return Description(kind, arguments, post_ops)


def describe(array: Array) -> Layout:
    """The layout of an array. Raises `Refused` for negative strides, broadcasts, and
    strides that are not multiples of the element size."""
    size = array.itemsize
    if any(s % size for s in array.strides):
        raise Refused
    strides = [s // size for s in array.strides]
    if any(s <= 0 < size - 1 for s, size in zip(strides, array.shape, strict=True)):
        raise Refused
    # The stride of a dimension of size 1 matters only to oneDNN.
    extent = 1
    for d in sorted(range(array.ndim), key=lambda d: (strides[d], -d)):
        if array.shape[d] == 1:
            strides[d] = extent
        extent = max(extent, strides[d] * array.shape[d])
    return Layout(array.shape, name_of(array.dtype), tuple(strides))


def describe_any(array: Array) -> Layout:
    return Layout(array.shape, name_of(array.dtype))


def compiled(
    description: Description,
    arrays: Mapping[int, Array],
    attributes: Attributes,
    scratch: Scratch,
    reordered: Sequence[int] = (),
) -> list[Call]:
    """The calls that compute a primitive on arrays.

    The arguments in `reordered` are converted to the layout that the primitive prefers:
    in the workspace, before the primitive or, for results, after it; or immediately and
    once if no run changes them. Raises `Refused` if oneDNN has only its reference
    implementation, a plain loop.
    """
    lib = library()
    if description.implementation.startswith("ref"):
        raise Refused
    operands = attributes.operands.copy()
    before: list[Record] = []
    after: list[Record] = []
    for kind, array in arrays.items():
        wanted = Wanted(description, kind)
        if kind not in reordered:
            operands[kind] = Operand(wanted, array)
        elif constant := scratch.constant(array):
            operands[kind] = packed(constant, array, wanted)
        elif _are_equal(given := describe(array), wanted):
            operands[kind] = Operand(wanted, array)
        else:
            source, copy = Operand(given, array), _taken(wanted, scratch)
            operands[kind] = copy
            if kind in (TARGET, SOURCE_GRADIENT, WEIGHTS_GRADIENT):
                after.append(_reorder(copy, source))
            else:
                before.append(_reorder(source, copy))
    workspace = Wanted(description, WORKSPACE)
    if lib.get("memory_desc_get_size", workspace.descriptor):
        operands[WORKSPACE] = _taken(workspace, scratch)
    return [(x, ()) for x in (*before, Execution(description, operands), *after)]


def is_reorder(function: object) -> bool:
    return isinstance(function, Execution) and function.description.kind == "reorder"


def added(change: Array, target: Array, scratch: Scratch) -> list[Call]:
    """The calls that add `change` to `target`."""
    attributes = Attributes()
    attributes.sum(1.0)
    layouts = describe(change), ENGINE, describe(target), ENGINE, ATTRIBUTES
    description = attributes.describe("reorder", *layouts)
    return compiled(description, {SOURCE: change, TARGET: target}, attributes, scratch)


def moved(source: Array, target: Array) -> list[Call]:
    """The calls that copy `source` to `target`. Strides must not be negative."""
    made = _reorder(*(Operand(describe(x), x) for x in (source, target)))
    return [(made, ())]


def _taken(wanted: Wanted, scratch: Scratch) -> Operand:
    """Memory of the workspace with the layout `wanted`."""
    size = library().get("memory_desc_get_size", wanted.descriptor)
    return Operand(wanted, scratch.take((size,), np.dtype(np.uint8)))


def _are_equal(layout: Layout, wanted: Wanted) -> bool:
    return library().get("memory_desc_equal", layout.descriptor, wanted.descriptor)


def packed(constant: Prepacked, array: Array, wanted: Wanted) -> Operand:
    """The array with the layout `wanted`: an existing or a new copy, or `array` itself
    if it has that layout."""
    with constant.lock:
        copies = constant.copies_of(array, "oneDNN")
        for layout, copy in copies:
            if library().get("memory_desc_equal", layout.value, wanted.descriptor):
                return Operand(wanted, copy, array)
        made = _made(constant, array, wanted)
        if made is None:
            return Operand(wanted, array)
        copies.append(made)
        return Operand(wanted, made[1], array)


def _made(
    constant: Prepacked, array: Array, wanted: Wanted
) -> tuple[Handle, Array] | None:
    """A new copy with the layout `wanted`, and that layout; None if `array` has it."""
    lib = library()
    is_flipped = min(array.strides, default=0) < 0
    source = np.copy(array) if is_flipped else array
    given = describe(source)
    if not is_flipped and _are_equal(given, wanted):
        return None
    layout = lib.make("memory_desc", "memory_desc_clone", wanted.descriptor)
    size = lib.get("memory_desc_get_size", wanted.descriptor)
    copy = aligned_bytes(size, ALIGNMENT)
    reorder = _reorder(Operand(given, source), Operand(wanted, copy))

    def fill() -> None:
        if is_flipped:
            source[...] = array
        reorder()

    constant.fill(fill)
    return layout, copy


def _reorder(source: Operand, target: Operand) -> Record:
    arguments = source.layout, ENGINE, target.layout, ENGINE, None
    description = Description("reorder", arguments)
    return Execution(description, {SOURCE: source, TARGET: target})
