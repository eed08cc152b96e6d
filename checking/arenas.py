"""Checks arenas that a function does not allocate: proves what they claim.

    func.func @f(..., %arena: memref<256xi8> {tgraph.arena = 64 : i64})

Each call of @f in the module must pass memory of that type and alignment that no other
operand shares, and @f_arena_size must return at least its size in bytes. A global must
have the type and alignment that the arena claims. An address must have the alignment,
and arenas at addresses must not overlap. Shares no code with the planner.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IntegerAttr,
    UnrealizedConversionCastOp,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import SymbolTable

from ..analysis.functions import (
    arena_alignment,
    arena_arguments,
    returned_sizes,
    size_function,
)
from ..analysis.sizes import SizeReader
from ..dialects.diagnostics import LocatedError, name_of
from ..dialects.memory import maker_of
from ..dialects.sizes.symbolic import Symbolic
from ..dialects.tgraph.base import AnyMemRef, element_bytes
from .buffers import MemoryPool, name_of_buffer, name_of_global
from .unchecked import Unchecked


class Place(NamedTuple):
    """The place of memory that belongs to no function: a global, or an address."""

    name: str  # the global's; "" for an address
    start: int  # bytes from the start of the global, or the address


def place_of(value: SSAValue) -> Place | None:
    """The place of a memref's memory; None if it is not known."""
    if name := name_of_global(value):
        return Place(name, 0)
    address = _address(value)
    return None if address is None else Place("", address)


def _address(value: SSAValue) -> int | None:
    """The address of a memref whose descriptor has constant fields; None for others."""
    cast_op = value.owner
    if not isinstance(cast_op, UnrealizedConversionCastOp) or len(cast_op.inputs) != 1:
        return None
    fields: dict[Attribute, SSAValue] = {}
    descriptor = cast_op.inputs[0]
    while isinstance(op := descriptor.owner, Operation) and name_of(op) == _INSERT:
        descriptor, field = op.operands
        fields.setdefault(op.properties["position"], field)
    pointer, offset = fields.get(_POINTER), fields.get(_OFFSET)
    if pointer is None or offset is None:
        return None
    maker = pointer.owner
    if not isinstance(maker, Operation) or name_of(maker) != "llvm.inttoptr":
        return None
    base, first = _number(maker.operands[0]), _number(offset)
    if base is None or first is None:
        return None
    return base + first * element_bytes(cast(AnyMemRef, value.type).element_type)


_INSERT = "llvm.insertvalue"
_CONSTANTS = ("arith.constant", "llvm.mlir.constant")
_POINTER, _OFFSET = (DenseArrayBase.from_list(i64, [n]) for n in (1, 2))
"""The positions of a descriptor's aligned pointer, and of its offset in elements."""


def _number(value: SSAValue) -> int | None:
    op = value.owner
    if not isinstance(op, Operation) or name_of(op) not in _CONSTANTS:
        return None
    number = op.properties.get("value")
    return number.value.data if isinstance(number, IntegerAttr) else None


def check_arenas(
    func: FuncOp, memories: Sequence[MemoryPool], unchecked: Unchecked
) -> None:
    """Raises `LocatedError` for an arena that lacks the properties it claims."""
    _check_size_function(func)
    at_addresses: list[tuple[int, MemoryPool]] = []
    for memory in memories:
        op = maker_of(memory.value)
        place = place_of(memory.value)
        if isinstance(op, memref.GetGlobalOp):
            _check_global(op)
        elif place is not None:
            _check_alignment(memory.value, place.start, op)
            at_addresses.append((place.start, memory))
        elif isinstance(op, UnrealizedConversionCastOp):
            unchecked.add("arenas at addresses that are not constant", op)
    at_addresses.sort(key=lambda item: item[0])
    for (start, one), (next_start, other) in pairwise(at_addresses):
        if start + one.size > next_start:
            raise LocatedError(
                f"arena {name_of_buffer(other.value)} begins at address {next_start}, "
                f"expected {start + one.size} or more, where "
                f"{name_of_buffer(one.value)} ends",
                maker_of(other.value),
            )


def _check_alignment(arena: SSAValue, known: int, op: Operation) -> None:
    """Checks that the claimed alignment follows from `known`, an address in bytes."""
    claimed = arena_alignment(arena)
    if claimed and known % claimed:
        raise LocatedError(
            f"arena {name_of_buffer(arena)} lies at {known}, expected a multiple of "
            f"{claimed}",
            op,
        )


def _check_global(get: memref.GetGlobalOp) -> None:
    made = SymbolTable.lookup_symbol(get, get.name_)
    name = f"@{get.name_.string_value()}"
    if not isinstance(made, memref.GlobalOp):
        raise LocatedError(f"the module has no global {name}", get)
    if made.type != get.memref.type:
        raise LocatedError(
            f"global {name} has type {made.type}, expected {get.memref.type}, the "
            "arena's",
            get,
        )
    claimed = arena_alignment(get.memref)
    if claimed and made.constant:
        raise LocatedError(
            f"global {name} is constant, expected one that an arena may lie in", get
        )
    alignment = made.alignment.value.data if made.alignment else 1
    if claimed and alignment % claimed:
        raise LocatedError(
            f"global {name} has alignment {alignment}, expected a multiple of "
            f"{claimed}, the arena's",
            get,
        )


def _check_size_function(func: FuncOp) -> None:
    """Checks the sizes in bytes that the size function returns for arenas of static
    size, and their number."""
    arenas = arena_arguments(func)
    sizes = size_function(func) if arenas else None
    if sizes is None:
        return
    returned = returned_sizes(sizes)
    if len(returned) != len(arenas):
        raise LocatedError(
            f"@{sizes.sym_name.data} returns {len(returned)} sizes, expected "
            f"{len(arenas)}",
            sizes,
        )
    reader = SizeReader(sizes)
    for arena, value in zip(arenas, returned, strict=True):
        (bytes,) = cast(AnyMemRef, arena.type).get_shape()
        size = reader.size(value)
        if bytes == DYNAMIC_INDEX or (isinstance(size, int) and size >= bytes):
            continue
        what = "unknown" if size is None or isinstance(size, Symbolic) else f"{size}"
        raise LocatedError(
            f"@{sizes.sym_name.data} returns {what}, expected {bytes} bytes or more "
            f"for {name_of_buffer(arena)}",
            sizes,
        )
