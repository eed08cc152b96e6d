"""Calls of Python functions in a program, and the effects that they have.

    tgraph.host_callback %loss {callback = 0 : i64, has_side_effect}
        : (tensor<f32>) -> ()
    %y = tgraph.host_callback %x {callback = 1 : i64}
        : (tensor<4xf32>) -> tensor<4xf32>

The IR has only the number of a function; `Model.callbacks` has the functions. A call
with the attribute `has_side_effect`, as in StableHLO, happens exactly as often as the
program says, and in the program's order: no pass erases, merges, repeats or reorders
such calls. Without the attribute, the function is pure: a call is erased if nothing
reads its results, and equal calls become one. Neither kind of call is repeated or moved
to where it might not have happened, because it may take any time, and raise.

All passes ask the two functions below, which look into loops and branches, or the
memory effects of xDSL, which follow from them.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, TypeAlias

from xdsl.dialects.builtin import IntegerAttr, IntegerType, UnitAttr, i64
from xdsl.ir import Operation
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, traits_def
from xdsl.traits import EffectInstance, MemoryEffectKind
from xdsl.utils.exceptions import VerifyException

from ..diagnostics import LocatedError
from .base import AnyTensor, TensorOp, TensorOpEffects
from .partial import PartialTypes


class CallbackEffects(TensorOpEffects):
    """The effects of a tensor operation, and those of the callbacks in it: writes to
    something that is no value."""

    @classmethod
    def get_effects(cls, op: Operation):
        effects = super().get_effects(op)
        if has_side_effect(op):
            effects |= {EffectInstance(MemoryEffectKind.WRITE)}
        return effects


@irdl_op_definition
class HostCallbackOp(TensorOp):
    """Calls a Python function with copies of the operands; returns copies of its
    results.

        %y = tgraph.host_callback %x {callback = 0 : i64}
             : (tensor<4xf32>) -> tensor<4xf32>

    `callback` is the number of the function in `Model.callbacks`. The types of the
    results can't be inferred. With `has_side_effect`, the call happens even if nothing
    reads its results, and in the program's order among such calls.
    """

    name = "tgraph.host_callback"
    RESULTS: ClassVar = None
    MAY_LACK_RESULTS: ClassVar = True

    traits = traits_def(CallbackEffects())

    callback = prop_def(IntegerAttr[IntegerType].constr(i64))
    has_side_effect = opt_prop_def(UnitAttr)

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        if (number := self.callback.value.data) < 0:
            raise VerifyException(f"callback is {number}, expected 0 or more")
        return self.declared

    def refine(self, types: PartialTypes) -> None:
        pass


Callbacks: TypeAlias = Sequence[Callable[..., Sequence[object]]]
"""The Python functions of a program, by number."""


def function_of(op: HostCallbackOp, callbacks: Callbacks) -> Callable[..., Any]:
    """The function that `op` calls. Raises `LocatedError` if there is none."""
    number = op.callback.value.data
    if number < len(callbacks):
        return callbacks[number]
    raise LocatedError(
        f"{op.name} calls Python function {number}, and the program comes without it: "
        "a Model of from_jax has its functions, but text and files of programs do not",
        op,
    )


def callbacks_in(op: Operation) -> Iterator[HostCallbackOp]:
    """The callbacks that an operation makes: it, or those in its regions."""
    if isinstance(op, HostCallbackOp):
        yield op
    elif op.regions and (not isinstance(op, TensorOp) or op.has_trait(CallbackEffects)):
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    yield from callbacks_in(inner)


def has_side_effect(op: Operation) -> bool:
    """Whether an operation does more than compute values and write its operands. Such
    operations must not be erased, merged, repeated or reordered."""
    return any(call.has_side_effect for call in callbacks_in(op))


def may_repeat(op: Operation) -> bool:
    """Whether a program may compute an operation again, or where it might not have been
    computed: it makes no callback."""
    return next(callbacks_in(op), None) is None


CALLBACK_OPS = (HostCallbackOp,)
