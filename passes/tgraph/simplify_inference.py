"""`tgraph-simplify-inference`: folds batch norm into a scale and a shift; removes
dropout.

    %0 = tgraph.subtract %x, %mean        : tensor<8x4x4x16xf32>   (each broadcast from
    %1 = tgraph.multiply %0, %inverse_std                           tensor<16xf32>)
    %2 = tgraph.multiply %1, %gamma
    %3 = tgraph.add %2, %beta

    %scale = tgraph.multiply %inverse_std, %gamma : tensor<16xf32>
    %shift = ((-%mean) * %inverse_std) * %gamma + %beta
    %0 = tgraph.multiply %x, %scale : tensor<8x4x4x16xf32>         (again broadcast)
    %3 = tgraph.add %0, %shift

The pass folds any chain of additions, subtractions, multiplications, and divisions by
per-channel parameters, if this reduces the number of full-size operations. Computations
on broadcast parameters are moved from full size to per-channel size. Parameters are
arguments marked `tgraph.parameter`, constants, and values computed from them. To remove
dropout with rate 0, the pass replaces a `select` whose mask is a uniform constant by
the selected operand, and removes multiplications and divisions by 1.

Numerics: reorders floating-point operations, so results differ by rounding.

Needs: level 1 before fusion, preferably after `canonicalize`.
Leaves: level 1.
Does not: change statistics that depend on other arguments (as in training), or integer
operations.

NNVM's SimplifyInference rewrites its own `batch_norm` and `dropout` operators. This
pass recognizes the arithmetic, however the program spells it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, FloatAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from ...analysis.functions import erase_unused, tensor_functions
from ...dialects.tgraph.base import TensorOp, tensor_type_of, with_shape
from ...dialects.tgraph.elementwise import (
    AddOp,
    DivideOp,
    ElementwiseOp,
    MultiplyOp,
    NegateOp,
    SelectOp,
    SubtractOp,
)
from ...dialects.tgraph.shaping import ConstantOp
from ..optional import OptionalPass
from .shared.channels import (
    Channels,
    Emitter,
    channels_of,
    compatible,
    parameter_values,
    replace,
)


@dataclass(frozen=True)
class TGraphSimplifyInference(OptionalPass):
    """Folds chains of per-channel scales and shifts, and removes dropout."""

    name = "tgraph-simplify-inference"
    EXACT = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func, block in tensor_functions(op):
            erase_unused(block)  # an unused reader would count as a use
            parameters = parameter_values(func, block)
            _drop_identities(block)
            _sink_broadcasts(block, parameters)
            _fold_chains(block, parameters)
            erase_unused(block)


def _drop_identities(block: Block) -> None:
    for op in list(block.ops):
        if not isinstance(op, SelectOp | MultiplyOp | DivideOp) or op.outs:
            continue
        for index, value in enumerate(op.inputs):
            if (number := _number(value)) is None:
                continue
            if (kept := _kept(op, index, number)) is not None:
                replace(op, kept)
                break


def _number(value: SSAValue) -> float | None:
    """The number that all elements of `value` equal; None if it is not known."""
    channels = channels_of(value)
    owner = channels.source.owner if channels else None
    if not isinstance(owner, ConstantOp) or owner.splat is None:
        return None
    return owner.splat.value.data


def _kept(op: TensorOp, index: int, number: float) -> SSAValue | None:
    """The operand that `op` equals if all elements of operand `index` are `number`;
    None if there is none."""
    if isinstance(op, SelectOp):
        return op.inputs[1 if number else 2] if index == 0 else None
    if number == 1 and (index == 1 or isinstance(op, MultiplyOp)):
        return op.inputs[1 - index]
    return None


def _sink_broadcasts(block: Block, parameters: set[SSAValue]) -> None:
    """Computes elementwise operations on broadcast parameters before the broadcast."""
    for op in list(block.ops):
        if (
            not isinstance(op, ElementwiseOp)
            or op.outs
            or op.result not in parameters
            or (operands := _all_channels(op)) is None
        ):
            continue
        emitter = Emitter(op, parameters)
        larger = max(operands, key=lambda operand: len(operand.dims))
        result_type = tensor_type_of(op.result.type)
        small = emitter.apply(type(op), operands, larger, result_type, **op.properties)
        replace(op, emitter.spread(small, result_type, small.dims))


def _all_channels(op: ElementwiseOp) -> list[Channels] | None:
    """The values that the operands broadcast; None unless at least one is not a single
    number, and all such values have the same dimensions."""
    found: list[Channels] = []
    for value in op.inputs:
        if (channels := channels_of(value)) is None:
            return None
        found.append(channels)
    dims = {channels.dims for channels in found if channels.dims}
    return found if len(dims) == 1 else None


class _Step(NamedTuple):
    """One operation of a chain: what it does to its data operand, and with what."""

    op: TensorOp
    data: SSAValue
    channels: Channels


def _step(op: object, parameters: set[SSAValue]) -> _Step | None:
    if (
        not isinstance(op, AddOp | SubtractOp | MultiplyOp | DivideOp)
        or op.outs
        or op.result in parameters
        or not isinstance(tensor_type_of(op.result.type).element_type, AnyFloat)
    ):
        return None
    for data, other in ((0, 1), (1, 0)):
        if data == 1 and isinstance(op, SubtractOp | DivideOp):
            break
        if op.inputs[other] in parameters and (
            channels := channels_of(op.inputs[other])
        ):
            return _Step(op, op.inputs[data], channels)
    return None


def _fold_chains(block: Block, parameters: set[SSAValue]) -> None:
    done: set[Operation] = set()
    for op in reversed(list(block.ops)):
        if op in done or (step := _step(op, parameters)) is None:
            continue
        chain = [step]
        along = step.channels
        while step.data.has_one_use() and (step := _step(step.data.owner, parameters)):
            if not compatible(along, step.channels):
                break
            along = along if along.dims else step.channels
            chain.append(step)
        done.update(step.op for step in chain)
        if along.dims and len(chain) > _cost(chain):
            _fold(chain[::-1], along, parameters)


def _cost(chain: Sequence[_Step]) -> int:
    """The number of full-size operations in the folded chain."""
    shifts = any(isinstance(step.op, AddOp | SubtractOp) for step in chain)
    scales = any(isinstance(step.op, MultiplyOp | DivideOp) for step in chain)
    return shifts + scales


def _fold(chain: Sequence[_Step], along: Channels, parameters: set[SSAValue]) -> None:
    """Replaces the chain, first operation first, by one scale and one shift."""
    last = chain[-1].op
    emitter = Emitter(last, parameters)
    result_type = tensor_type_of(last.result.type)
    scale: Channels | None = None
    shift: Channels | None = None
    for op, _, factor in chain:
        if isinstance(op, MultiplyOp | DivideOp):
            shift = shift and emitter.combine(type(op), shift, factor)
            if scale is None and isinstance(op, DivideOp):
                scale = Channels(_one(emitter, factor), ())
            scale = emitter.combine(type(op), scale, factor) if scale else factor
        elif shift is not None:
            shift = emitter.combine(type(op), shift, factor)
        elif isinstance(op, SubtractOp):
            shift = emitter.apply(NegateOp, [factor], factor)
        else:
            shift = factor
    value = chain[0].data
    for op_type, channels in ((MultiplyOp, scale), (AddOp, shift)):
        if channels is not None:
            spread = emitter.spread(channels, result_type, channels.dims)
            value = emitter.emit(op_type, (value, spread), result_type)
    replace(last, value)


def _one(emitter: Emitter, like: Channels) -> SSAValue:
    """The number 1 in the element type of `like`."""
    type = with_shape(tensor_type_of(like.source.type), ())
    assert isinstance(type.element_type, AnyFloat)
    return emitter.emit(ConstantOp, (), type, value=FloatAttr(1.0, type.element_type))
