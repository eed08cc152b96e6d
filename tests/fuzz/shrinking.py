"""Shrinks a failing program while it fails in the same way.

    small = shrink(module, lambda m: kind_of_failure(m) == kind)

Tries three kinds of change until none helps: erase an operation and replace its results
by earlier values of the same types; replace an operand by an earlier value; drop a
result or an argument of the function.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from time import process_time

from xdsl.dialects.builtin import ArrayAttr, FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from tensorplan.passes import driver

Change = Callable[[ModuleOp], bool]
"""Changes a module in place; returns whether it did."""


def shrink(
    module: ModuleOp, fails: Callable[[ModuleOp], bool], seconds: float = 30
) -> ModuleOp:
    """The smallest failing program found within `seconds` of CPU time."""
    deadline = process_time() + seconds
    is_smaller = True
    while is_smaller:
        is_smaller = False
        # Changes go from back to front, so they keep the indices of earlier operations.
        for change in _changes(module):
            if process_time() > deadline:
                return module
            candidate = module.clone()
            if change(candidate) and _is_valid(candidate) and fails(candidate):
                module, is_smaller = candidate, True
    return module


def _is_valid(module: ModuleOp) -> bool:
    try:
        driver.check(module)
    except Exception:
        return False
    return True


def _changes(module: ModuleOp) -> Iterator[Change]:
    ops = list(module.walk())
    for index, op in reversed(list(enumerate(ops))):
        if isinstance(op, ReturnOp):
            for at in reversed(range(len(op.operands))):
                yield partial(_drop_result, index=index, at=at)
        elif isinstance(op, FuncOp):
            for at in reversed(range(len(op.function_type.inputs))):
                yield partial(_drop_argument, index=index, at=at)
        elif op.parent and not op.has_trait(IsTerminator, value_if_unregistered=False):
            yield partial(_drop_operation, index=index, choice=0)
            yield partial(_drop_operation, index=index, choice=1)
    for index, op in reversed(list(enumerate(ops))):
        for at in range(len(op.operands)):
            yield partial(_earlier_operand, index=index, at=at)


def _at(module: ModuleOp, index: int) -> Operation | None:
    return next(islice(module.walk(), index, None), None)


def _before(op: Operation) -> list[SSAValue]:
    """The values of the block of `op` that are defined before it."""
    block = op.parent
    assert isinstance(block, Block)
    values: list[SSAValue] = list(block.args)
    for other in block.ops:
        if other is op:
            break
        values += other.results
    return values


def _drop_operation(module: ModuleOp, index: int, choice: int) -> bool:
    op = _at(module, index)
    if op is None or op.parent is None:
        return False
    there = _before(op)
    for result in op.results:
        if not result.uses.get_length():
            continue
        fits = [v for v in there if v.type == result.type]
        if choice >= len(fits):
            return False
        result.replace_all_uses_with(fits[choice])
    if choice and not op.results:
        return False
    op.detach()
    op.erase()
    return True


def _earlier_operand(module: ModuleOp, index: int, at: int) -> bool:
    op = _at(module, index)
    if op is None or op.parent is None or at >= len(op.operands):
        return False
    old = op.operands[at]
    for value in _before(op):
        if value is old:
            return False
        if value.type == old.type:
            op.operands[at] = value
            return True
    return False


def _function_of(op: Operation) -> FuncOp:
    parent = op.parent_op()
    assert isinstance(parent, FuncOp)
    return parent


def _drop_result(module: ModuleOp, index: int, at: int) -> bool:
    op = _at(module, index)
    if not isinstance(op, ReturnOp) or at >= len(op.operands):
        return False
    op.operands = [v for n, v in enumerate(op.operands) if n != at]
    _retype(_function_of(op), [v.type for v in op.operands])
    return True


def _drop_argument(module: ModuleOp, index: int, at: int) -> bool:
    function = _at(module, index)
    if not isinstance(function, FuncOp) or function.is_declaration:
        return False
    argument = function.body.blocks[0].args[at]
    if argument.uses.get_length():
        return False
    function.body.blocks[0].erase_arg(argument)
    if function.arg_attrs is not None:
        kept = [a for n, a in enumerate(function.arg_attrs.data) if n != at]
        function.arg_attrs = ArrayAttr(kept)
    _retype(function, list(function.function_type.outputs))
    return True


def _retype(function: FuncOp, outputs: Sequence[Attribute]) -> None:
    inputs = [argument.type for argument in function.body.blocks[0].args]
    function.function_type = FunctionType.from_lists(inputs, outputs)
