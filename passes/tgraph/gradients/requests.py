"""Adds the gradients of results with respect to arguments that options request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import AnyFloat
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....analysis.functions import (
    argument_attributes,
    is_tensor,
    result_attributes,
    set_argument_attributes,
    set_result_attributes,
)
from ....dialects.diagnostics import LocatedError
from ....dialects.tgraph.base import tensor_type_of
from ....dialects.tgraph.differentiation import GradientOp
from ....support.ranges import indices


@dataclass(frozen=True)
class Request:
    """A request of tgraph-gradient's options: the results `of` a function, with respect
    to its arguments `wrt`.

    `append` raises `LocatedError` for a function, result or argument that does not
    exist, and for an argument that is not of float type.
    """

    function: str
    of: Sequence[int] | None
    wrt: Sequence[int | str] | None

    def _find(self, functions: Mapping[FuncOp, Block]) -> FuncOp:
        for func in functions:
            if func.sym_name.data == self.function:
                return func
        names = ", ".join(f"@{func.sym_name.data}" for func in functions) or "none"
        raise LocatedError(
            f"no function @{self.function} on tensors; those on tensors are {names}"
        )

    def append(self, functions: Mapping[FuncOp, Block]) -> None:
        """Makes the function return the gradients, after its own results."""
        func = self._find(functions)
        block = functions[func]
        terminator = block.last_op
        if not isinstance(terminator, ReturnOp):
            raise LocatedError(f"@{self.function} does not end with func.return", func)
        of = [
            self._value(terminator.arguments, number, "result", func)
            for number in (self.of or (0,))
        ]
        wrt = self._arguments(func, block)
        heads: list[SSAValue] = []
        if any(tensor_type_of(value.type).get_shape() for value in of):
            for value in of:
                heads.append(block.insert_arg(value.type, len(block.args)))
                heads[-1].name_hint = "head"
        argument_attrs = argument_attributes(func)
        result_attrs = result_attributes(func)
        gradient = GradientOp(of, wrt, heads)
        gradient.location = func.location
        Rewriter.insert_op(gradient, InsertPoint.before(terminator))
        terminator.operands = [*terminator.arguments, *gradient.res]
        func.update_function_type()
        set_argument_attributes(func, argument_attrs + [{} for _ in heads])
        set_result_attributes(func, result_attrs + [{} for _ in wrt])

    def _arguments(self, func: FuncOp, block: Block) -> list[SSAValue]:
        if self.wrt is None:
            return [argument for argument in block.args if _is_float(argument)]
        named = {a.name_hint: a for a in block.args if a.name_hint}
        arguments: list[SSAValue] = []
        for which in self.wrt:
            if isinstance(which, int):
                argument = self._value(block.args, which, "argument", func)
            elif not (argument := named.get(which)):
                names = ", ".join(named) or "none"
                raise LocatedError(
                    f"@{self.function} has no argument {which!r}; the arguments are "
                    f"{names}",
                    func,
                )
            if not _is_float(argument):
                raise LocatedError(
                    f"argument {which} has type {argument.type}, expected elements of "
                    "a float type",
                    func,
                )
            arguments.append(argument)
        return arguments

    def _value(
        self, values: Sequence[SSAValue], number: int, what: str, func: FuncOp
    ) -> SSAValue:
        if 0 <= number < len(values):
            return values[number]
        raise LocatedError(
            f"@{self.function} has no {what} {number}, expected {indices(len(values))}",
            func,
        )


def _is_float(value: SSAValue) -> bool:
    return is_tensor(value.type) and isinstance(
        tensor_type_of(value.type).element_type, AnyFloat
    )
