"""`tgraph-gradient`: reverse-mode differentiation, written out as operations.

    %y = tgraph.multiply %w, %w : tensor<f32>
    %g = tgraph.gradient %y wrt %w : tensor<f32> wrt tensor<f32>
    func.return %g : tensor<f32>

    %y = tgraph.multiply %w, %w : tensor<f32>
    %one = tgraph.constant<1.0 : f32> : tensor<f32>
    %0 = tgraph.multiply %one, %w : tensor<f32>
    %1 = tgraph.multiply %one, %w : tensor<f32>
    %g = tgraph.add %0, %1 : tensor<f32>
    func.return %g : tensor<f32>

Every `tgraph.gradient` is expanded where it stands, in program order, so that gradients
of gradients work. With `of` or `wrt`, a function gets its gradients as further results:
those of its results `of` with respect to its arguments `wrt`. If one of `of` is not a
scalar, each is weighted by a head gradient, a further argument (MXNet's `head_grads`).

What is written carries the device, group and stream of the operation that it is the
gradient of (MXNet's rule for backward operations), and its place in the source.

`mirror` says which operations are computed again for the gradient rather than kept
(MXNet's mirroring): `attribute`, those with the attribute `tgraph.mirror`; `cheap`,
also all elementwise operations, broadcasts and views; `none`. Repetitions carry the
attribute `tgraph.recomputed`, so that `cse` does not take them for the originals.

Needs: level 1 with static shapes, before tgraph-fuse.
Leaves: level 1 without `tgraph.gradient`.
Does not: remove what is computed twice (`cse`) or not needed (`canonicalize`).

Gradients with respect to what has no path to the value are zeros, with a remark (NNVM
refuses); so are those through integers, comparisons and rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.functions import (
    argument_attributes,
    is_tensor,
    result_attributes,
    set_argument_attributes,
    set_result_attributes,
    tensor_functions,
)
from ...choices import ChoiceError
from ...dialects.diagnostics import LocatedError
from ...dialects.tgraph.base import tensor_type_of
from ...dialects.tgraph.differentiation import MIRRORS, GradientOp


@dataclass(frozen=True)
class TGraphGradient(ModulePass):
    """Writes out the gradients that a program asks for.

    of: numbers of the returned values to differentiate; if only wrt is given, 0.
    wrt: numbers or names of the arguments; if only of is given, all of float type.
    function: what of and wrt are about.
    mirror: what is computed again rather than kept: none, cheap or attribute.
    """

    name = "tgraph-gradient"

    of: tuple[int, ...] | None = None
    wrt: tuple[int | str, ...] | None = None
    function: str = "main"
    mirror: str = "attribute"

    def __post_init__(self) -> None:
        if self.mirror not in MIRRORS:
            raise ChoiceError("mirror", self.mirror, MIRRORS)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = dict(tensor_functions(op))
        if self.of is not None or self.wrt is not None:
            func = self._find(functions)
            self._append(func, functions[func])
        for block in functions.values():
            for gradient in [o for o in block.ops if isinstance(o, GradientOp)]:
                # Here, so that programs without gradients do not load the rules.
                from .gradients.reverse import expand

                expand(gradient, self.mirror)

    def _find(self, functions: dict[FuncOp, Block]) -> FuncOp:
        for func in functions:
            if func.sym_name.data == self.function:
                return func
        names = ", ".join(f"@{func.sym_name.data}" for func in functions) or "none"
        raise LocatedError(
            f"no function @{self.function} on tensors; there are {names}"
        )

    def _append(self, func: FuncOp, block: Block) -> None:
        """Lets the function return its gradients, after its own results."""
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
                    f"@{self.function} has no argument {which!r}; its names are "
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
            f"@{self.function} has {len(values)} {what}s, expected more than {number}",
            func,
        )


def _is_float(value: SSAValue) -> bool:
    return is_tensor(value.type) and isinstance(
        tensor_type_of(value.type).element_type, AnyFloat
    )
