"""Finds the role of memory (parameter, activation, gradient, ...) from data flow.

    %h = exp(x @ %w)    activation: the loss depends on it, and so does %g, on which the
                        loss does not depend
    %t = reduce(%h)     temporary: only operations that lead to the loss read it
    %loss = sum(%t)
    %g = %h @ ...       gradient: the loss does not depend on it
    %w -= %g            %w is a parameter; a variable that the loss does not depend on,
                        such as Adam's moments, is optimizer state

A loss is a result that is a single float, in a program that also returns or updates
other values. In a program without a loss, all buffers are temporaries.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple, cast

from xdsl.dialects.builtin import AnyFloat, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from ..analysis.forwarding import moves
from ..analysis.functions import argument_attributes
from ..dialects.memory import effects_on, overwrites
from ..dialects.tgraph.base import PARAMETER, RESULT, VARIABLE, AnyMemRef


class Role(StrEnum):
    PARAMETER = "parameter"
    STATE = "optimizer state"
    VARIABLE = "variable"
    INPUT = "input"
    RESULT = "result"
    CONSTANT = "constant"
    ACTIVATION = "activation"
    GRADIENT = "gradient"
    TEMPORARY = "temporary"
    SCRATCH = "kernel scratch"


class Access(NamedTuple):
    op: Operation
    reads: bool
    writes: bool
    is_whole: bool
    """Whether the operation overwrites the whole buffer and reads none of it."""


def accesses(buffer: SSAValue) -> Iterator[Access]:
    """The operations that read or write the buffer or a view of it. Operations that
    only make views or forward the buffer are left out.
    """
    aliases = {buffer: None}
    pending = [buffer]
    while pending:
        alias = pending.pop()
        for use in alias.uses:
            if (targets := moves(use)) is None:
                op = use.operation
                is_whole = alias is buffer and overwrites(op, alias)
                yield Access(op, *effects_on(op, alias), is_whole)
                continue
            new = [target for target in targets if target not in aliases]
            aliases.update(dict.fromkeys(new))
            pending += new


class Roles:
    """The roles of a function's buffers and arguments."""

    def __init__(self, func: FuncOp, buffers: Sequence[SSAValue]):
        self._block = func.body.blocks[0]
        self._arguments = argument_attributes(func)
        memory = [arg for arg in func.args if isinstance(arg.type, MemRefType)]
        self._accesses = {
            value: list(accesses(value)) for value in dict.fromkeys((*buffers, *memory))
        }
        losses = [argument for argument in func.args if self._is_loss(argument)]
        others = any(
            (RESULT in own or VARIABLE in own) and argument not in losses
            for own, argument in zip(self._arguments, func.args, strict=True)
        )
        self._forward = self._leads_to(losses) if losses and others else None
        """The operations that the loss depends on; None without a loss."""

    def of(self, value: SSAValue) -> Role:
        """The role of an argument, or of a buffer that is not a workspace."""
        if isinstance(value, BlockArgument) and value.block is self._block:
            return self._of_argument(value)
        return self._of_buffer(value)

    def _of_buffer(self, buffer: SSAValue) -> Role:
        if self._forward is None:
            return Role.TEMPORARY
        found = self._accesses[buffer]
        if not any(a.writes and a.op in self._forward for a in found):
            return Role.GRADIENT
        is_saved = any(a.reads and a.op not in self._forward for a in found)
        return Role.ACTIVATION if is_saved else Role.TEMPORARY

    def _of_argument(self, argument: BlockArgument) -> Role:
        attributes = self._arguments[argument.index]
        if PARAMETER in attributes:
            return Role.PARAMETER
        if VARIABLE not in attributes:
            return Role.RESULT if RESULT in attributes else Role.INPUT
        if self._forward is None:
            return Role.VARIABLE
        is_read = any(
            a.reads and a.op in self._forward for a in self._accesses[argument]
        )
        return Role.PARAMETER if is_read else Role.STATE

    def _leads_to(self, values: Sequence[SSAValue]) -> set[Operation]:
        """The operations that `values` depend on, also through iterations of loops."""
        touched: dict[Operation, list[tuple[SSAValue, Access]]] = {}
        for value, found in self._accesses.items():
            for access in found:
                touched.setdefault(access.op, []).append((value, access))
        needed, leading = set(values), set[Operation]()
        for outer in reversed(list(self._block.ops)):
            inner = [op for op in outer.walk(reverse=True) if op in touched]
            after, before = needed, -1
            while before < len(leading):
                before, needed = len(leading), needed | after
                for op in inner:
                    written = {value for value, a in touched[op] if a.writes}
                    if not needed.isdisjoint(written):
                        leading.add(op)
                        needed -= {value for value, a in touched[op] if a.is_whole}
                        needed |= {value for value, a in touched[op] if a.reads}
        return leading

    def _is_loss(self, argument: BlockArgument) -> bool:
        attributes = self._arguments[argument.index]
        if RESULT not in attributes or VARIABLE in attributes:
            return False
        type: Attribute = argument.type
        if not isinstance(type, MemRefType):
            return False
        type = cast(AnyMemRef, type)
        return not type.get_shape() and isinstance(type.element_type, AnyFloat)
