"""Finds functions on tensors, and reads and writes function attributes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, TypeGuard, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.traits import SymbolTable

from ..dialects.diagnostics import LocatedError
from ..dialects.memory import ARENA, root_of
from ..dialects.tgraph.base import (
    DONATED,
    NAME,
    PARAMETER,
    RESULT,
    VARIABLE,
    TensorOp,
    VariableType,
)
from ..dialects.tgraph.callbacks import has_side_effect
from ..dialects.tgraph.shaping import ConstantOp, ViewOp
from ..dialects.tgraph.structure import FusionOp, IfOp, WhileOp

Attributes = dict[str, Attribute]

ARENA_SIZE = "_arena_size"
"""The suffix of the name of a function that returns the sizes of another's arenas."""


def is_tensor(type: Attribute) -> bool:
    return isinstance(type, TensorType | VariableType)


def tensor_functions(
    module: ModuleOp, *, with_scalars: bool = False
) -> Iterator[tuple[FuncOp, Block]]:
    """The functions that compute on tensors, each with its only block.

    Raises `LocatedError` for a function with several blocks, since level 1 has no
    control flow, and for scalar results, unless `with_scalars` allows them.
    """
    for func in module.ops:
        if not isinstance(func, FuncOp) or func.is_declaration:
            continue
        if not any(
            is_tensor(value.type)
            for block in func.body.blocks
            for value in chain(block.args, (r for op in block.ops for r in op.results))
        ):
            continue
        if len(func.body.blocks) > 1:
            raise LocatedError(
                f"function @{func.sym_name.data} on tensors has "
                f"{len(func.body.blocks)} blocks, expected 1",
                func,
            )
        if not with_scalars:
            _check_results(func.body.block)
        yield func, func.body.block


def check_memrefs(module: ModuleOp) -> None:
    """Raises `LocatedError` for a function on tensors."""
    for func, _ in tensor_functions(module, with_scalars=True):
        raise LocatedError(
            f"function @{func.sym_name.data} is on tensors, expected memrefs; run "
            "tgraph-bufferize first",
            func,
        )


def _check_results(block: Block) -> None:
    for op in block.ops:
        for result in op.results:
            if not is_tensor(result.type):
                raise LocatedError(
                    f"{op.name} has a result of type {result.type} in a function on "
                    "tensors, expected a tensor",
                    op,
                )


def tensor_blocks(module: ModuleOp) -> Iterator[Block]:
    """The blocks of the functions on tensors, and of the loops and branches in them."""
    for _, block in tensor_functions(module):
        yield from blocks_within(block)


def blocks_within(block: Block) -> Iterator[Block]:
    """A block on tensors, and the blocks of the loops and branches in it."""
    blocks = [block]
    for found in blocks:  # grows during the loop
        yield found
        blocks += (
            region.block
            for op in found.ops
            if isinstance(op, WhileOp | IfOp)
            for region in op.regions
        )


def erase_unused(block: Block) -> None:
    """Erases tensor operations whose results are unused."""
    for op in reversed(list(block.ops)):
        erase_if_unused(op)


def erase_makers(values: Iterable[SSAValue]) -> None:
    """Erases the tensor operations that make these values if they are unused, and then
    the operations that only they used."""
    waiting = [value.owner for value in values]
    while waiting:
        op = waiting.pop()
        if isinstance(op, Operation) and op.parent is not None:
            read = [value.owner for value in op.operands]
            if erase_if_unused(op):
                waiting += read


def is_unused(op: Operation) -> TypeGuard[TensorOp]:
    """Whether nothing reads the results of a tensor operation, which has no effect."""
    return (
        isinstance(op, TensorOp)
        and not any(result.uses for result in op.results)
        and not op.outs
        and not has_side_effect(op)
    )


def erase_if_unused(op: Operation) -> bool:
    """Erases a tensor operation whose results are unused, unless it has an effect.
    Returns whether it did."""
    if not is_unused(op):
        return False
    op.detach()
    op.erase()
    return True


def argument_attributes(func: FuncOp) -> list[Attributes]:
    return _dictionaries(func.arg_attrs, len(func.function_type.inputs))


class CallerMemory(NamedTuple):
    """A memref argument whose memory other buffers may use while its contents are not
    needed: after the last read of what the caller passed, and before the first write
    of what the caller will read."""

    argument: SSAValue
    title: str  # "result 1", "argument 0"
    is_given: bool  # whether it has contents when the function starts
    is_kept: bool  # whether it must have contents when the function ends


def is_constant(value: SSAValue) -> bool:
    """Whether no run changes a tensor or memref: it is a parameter, a constant, or a
    view of one, also where a region gets it as an argument."""
    while True:
        op = (value := root_of(value)).owner
        if isinstance(op, ViewOp) and not op.outs:
            value = op.inputs[0]
            continue
        if isinstance(op, Operation):
            is_literal = isinstance(op, ConstantOp) and not op.outs
            return is_literal or isinstance(op, memref.GetGlobalOp)
        assert isinstance(value, BlockArgument)
        around, number = op.parent_op(), value.index
        match around:
            case FuncOp() if op.prev_block is None:
                own = argument_attributes(around)[number]
                return PARAMETER in own and VARIABLE not in own
            case FusionOp():
                value = around.inputs[number]
            case WhileOp() if number >= len(around.res):
                value = around.inputs[number]
            case IfOp():
                value = around.inputs[number + 1]
            case _:
                return False


def caller_memories(func: FuncOp) -> Iterator[CallerMemory]:
    """The memory of results, variables and donated arguments, in order."""
    entry = func.body.blocks[0]
    for argument, attributes in zip(entry.args, argument_attributes(func), strict=True):
        title, number = f"argument {argument.index}", attributes.get(RESULT)
        if not isinstance(argument.type, MemRefType):
            continue
        if VARIABLE in attributes:
            yield CallerMemory(argument, title, is_given=True, is_kept=True)
        elif isinstance(number, IntegerAttr):
            title = f"result {number.value.data}"
            yield CallerMemory(argument, title, is_given=False, is_kept=True)
        elif DONATED in attributes and PARAMETER not in attributes:
            yield CallerMemory(argument, title, is_given=True, is_kept=False)


def arena_alignment(value: SSAValue) -> int | None:
    """The alignment in bytes of an arena; None for other memrefs."""
    attributes: Mapping[str, Attribute] = {}
    if isinstance(op := value.owner, Operation):
        attributes = op.attributes
    elif isinstance(func := op.parent_op(), FuncOp) and op is func.body.first_block:
        number = cast(BlockArgument, value).index
        attributes = func.arg_attrs.data[number].data if func.arg_attrs else {}
    alignment = attributes.get(ARENA)
    if isinstance(alignment, UnitAttr):
        alignment = isinstance(op, memref.AllocOp | memref.AllocaOp) and op.alignment
        return alignment.value.data if alignment else 1
    return alignment.value.data if isinstance(alignment, IntegerAttr) else None


def arena_arguments(func: FuncOp) -> list[BlockArgument]:
    """The arguments of a function that are arenas, in order."""
    attributes = argument_attributes(func)
    return [a for a in func.args if ARENA in attributes[a.index]]


def size_function(func: FuncOp) -> FuncOp | None:
    """The function that returns the size in bytes of each arena argument of `func`;
    None if there is none. It takes the other arguments of `func`, or none."""
    name = f"{func.sym_name.data}{ARENA_SIZE}"
    found = SymbolTable.lookup_symbol(func, name) if func.parent_op() else None
    return found if isinstance(found, FuncOp) and not found.is_declaration else None


def returned_sizes(func: FuncOp) -> Sequence[SSAValue]:
    """The values that a function of one block returns."""
    last = func.body.blocks[0].last_op
    return last.operands if isinstance(last, ReturnOp) else ()


def result_attributes(func: FuncOp) -> list[Attributes]:
    return _dictionaries(func.res_attrs, len(func.function_type.outputs))


def set_argument_attributes(
    func: FuncOp, attributes: Sequence[Mapping[str, Attribute]]
) -> None:
    _store(func, "arg_attrs", attributes)


def argument_names(module: ModuleOp) -> dict[int, str]:
    """The names of the arguments of `@main` in the model that it was imported from, by
    argument index. Unnamed arguments are left out."""
    return {
        number: name.data
        for func in module.ops
        if isinstance(func, FuncOp) and func.sym_name.data == "main"
        for number, attributes in enumerate(argument_attributes(func))
        if isinstance(name := attributes.get(NAME), StringAttr)
    }


def set_result_attributes(
    func: FuncOp, attributes: Sequence[Mapping[str, Attribute]]
) -> None:
    _store(func, "res_attrs", attributes)


def _dictionaries(
    attrs: ArrayAttr[DictionaryAttr] | None, count: int
) -> list[Attributes]:
    if attrs is None:
        return [{} for _ in range(count)]
    return [dict(attr.data) for attr in attrs]


def _store(
    func: FuncOp, name: str, attributes: Sequence[Mapping[str, Attribute]]
) -> None:
    if any(attributes):
        func.properties[name] = ArrayAttr([DictionaryAttr(a) for a in attributes])
    else:
        func.properties.pop(name, None)
