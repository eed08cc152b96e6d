"""`tgraph-fold-scale-axis`: folds per-feature scales into the weights.

    %0 = tgraph.convolution %x, %w {dim_labels = "b01f_01io->b01f", ...}
    %1 = tgraph.add %0, %bias                  (broadcast along the features)
    %2 = tgraph.multiply %1, %scale            (broadcast along the features)

    %v = tgraph.multiply %w, %scale            (broadcast along o)
    %b = tgraph.multiply %bias, %scale         (of the size of the features)
    %0 = tgraph.convolution %x, %v
    %2 = tgraph.add %0, %b

The pass folds a multiplication or division that scales the result of a convolution or
`dot_general`, either by a single number or along dimensions that the result takes from
the weight. Additions of per-channel parameters may come between the two, and so may
`maximum` with 0 if the scale is a positive constant. The pass likewise folds a scale of
the other operand along its input features.

Weight and scale must be parameters: arguments marked `tgraph.parameter`, constants, or
values computed from them. `tgraph-precompute` can then compute the new products ahead
of time.

Numerics: reorders floating-point operations, so results differ by rounding.

Needs: level 1 before fusion, preferably after `canonicalize` and
`tgraph-simplify-inference`.
Leaves: level 1.
Does not: fold through values with several uses, through padding or pooling, or along
the input features of a grouped convolution.

NNVM's FoldScaleAxis propagates scales in the same two directions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypeGuard

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import Rewriter

from ...analysis.functions import erase_unused, tensor_functions
from ...dialects.tgraph.base import TensorOp, tensor_type_of
from ...dialects.tgraph.elementwise import (
    AddOp,
    DivideOp,
    MaximumOp,
    MultiplyOp,
    SubtractOp,
)
from ...dialects.tgraph.reducing import ConvolutionOp, DotGeneralOp
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

Contraction: TypeAlias = ConvolutionOp | DotGeneralOp


@dataclass(frozen=True)
class TGraphFoldScaleAxis(OptionalPass):
    """Folds per-feature scales into the weights of contractions.

    always: also fold when the weight or the scale is not a parameter; every run then
        scales the weight.
    """

    name = "tgraph-fold-scale-axis"
    EXACT = False

    always: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func, block in tensor_functions(op):
            _Folding(parameter_values(func, block), self.always).run(block)


class _Scale(NamedTuple):
    """`data` is multiplied, or divided, by `factor`."""

    op: MultiplyOp | DivideOp
    data: SSAValue
    factor: Channels


class _Between(NamedTuple):
    """An operation that a scale moves past, and the number of its scaled operand."""

    op: TensorOp
    data: int


class _Folding:
    def __init__(self, parameters: set[SSAValue], always: bool):
        self.parameters = parameters
        self.always = always

    def run(self, block: Block) -> None:
        erase_unused(block)  # an unused reader would count as a use
        for op in list(block.ops):
            if isinstance(op, MultiplyOp | DivideOp):
                self._scaled_result(op)
            elif isinstance(op, ConvolutionOp | DotGeneralOp):
                self._scaled_operand(op)
        erase_unused(block)

    def _is_weight(self, value: SSAValue) -> bool:
        return self.always or value in self.parameters

    def _scale(self, op: object) -> _Scale | None:
        """`op` as a scale, if it multiplies or divides by a weight; else None."""
        if not isinstance(op, MultiplyOp | DivideOp) or op.outs:
            return None
        if not isinstance(tensor_type_of(op.result.type).element_type, AnyFloat):
            return None
        for data, other in ((0, 1), (1, 0))[: 1 if isinstance(op, DivideOp) else 2]:
            factor = channels_of(op.inputs[other])
            if factor and self._is_weight(op.inputs[other]):
                return _Scale(op, op.inputs[data], factor)
        return None

    def _scaled_result(self, op: MultiplyOp | DivideOp) -> None:
        """contraction(x, w) * s -> contraction(x, w * s)"""
        if op.result in self.parameters or (scale := self._scale(op)) is None:
            return
        path: list[_Between] = []
        value = scale.data
        while value.has_one_use():
            owner = value.owner
            if isinstance(owner, ConvolutionOp | DotGeneralOp):
                self._fold_result(scale, owner, path[::-1])
                return
            if (between := self._between(owner, scale.factor)) is None:
                return
            path.append(between)
            value = between.op.inputs[between.data]

    def _between(self, op: object, factor: Channels) -> _Between | None:
        """`op` as an operation that a scale by `factor` may move up past; else None."""
        if _is_relu(op):
            return _Between(op, _data_of_relu(op)) if factor.is_positive else None
        if not isinstance(op, AddOp | SubtractOp) or op.outs:
            return None
        for data, other in ((0, 1), (1, 0)):
            shift = channels_of(op.inputs[other])
            if shift and self._is_weight(op.inputs[other]):
                fits = compatible(shift, factor)
                return _Between(op, data) if fits else None
        return None

    def _fold_result(
        self, scale: _Scale, contraction: Contraction, path: Sequence[_Between]
    ) -> None:
        if contraction.result in self.parameters:
            return
        target = self._target(contraction)
        for side in (target, 1 - target):
            places = _places_of_result(contraction, side)
            if not self._fits(contraction, side, scale.factor, places):
                continue
            emitter = Emitter(scale.op, self.parameters)
            value = _contract_scaled(emitter, scale, contraction, side, places)
            for op, data in path:
                other = op.inputs[1 - data]
                if not _is_relu(op):
                    shift = channels_of(other)
                    assert shift is not None
                    shift = emitter.combine(type(scale.op), shift, scale.factor)
                    other = emitter.spread(
                        shift, tensor_type_of(other.type), shift.dims
                    )
                value = emitter.copy(
                    op, (value, other) if data == 0 else (other, value)
                )
            replace(scale.op, value)
            return

    def _scaled_operand(self, op: Contraction) -> None:
        """contraction(x * s, w) -> contraction(x, w * s), one scale after another"""
        found: Contraction | None = op
        while found is not None:
            found = self._fold_operand(found)

    def _fold_operand(self, op: Contraction) -> Contraction | None:
        """Folds a scale of the other operand. Returns the new contraction, or None if
        there is no such scale."""
        if op.outs or op.result in self.parameters:
            return None
        side = self._target(op)
        places = _places_of_operand(op, side)
        relus: list[MaximumOp] = []
        value = op.inputs[1 - side]
        while value.has_one_use() and _is_relu(value.owner):
            relus.append(value.owner)
            value = value.owner.inputs[_data_of_relu(value.owner)]
        if (
            not value.has_one_use()
            or (scale := self._scale(value.owner)) is None
            or (relus and not scale.factor.is_positive)
            or not self._fits(op, side, scale.factor, places)
        ):
            return None
        emitter = Emitter(op, self.parameters)
        data = scale.data
        for relu in reversed(relus):
            inputs = list(relu.inputs)
            inputs[_data_of_relu(relu)] = data
            data = emitter.copy(relu, inputs)
        result = _contract_scaled(emitter, scale, op, side, places, data)
        replace(op, result)
        for dead in (*relus, scale.op):  # or it would count as a reader
            Rewriter.erase_op(dead)
        new = result.owner
        assert isinstance(new, ConvolutionOp | DotGeneralOp)
        return new

    def _target(self, op: Contraction) -> int:
        """The operand that takes the scales: the first if it alone is a scaled
        parameter, else the second. Scales never move back from it."""
        first, second = map(self._is_scaled_parameter, op.inputs)
        return 0 if first and not second else 1

    def _is_scaled_parameter(self, value: SSAValue) -> bool:
        while (scale := self._scale(value.owner)) is not None:
            value = scale.data
        return value in self.parameters

    def _fits(
        self,
        contraction: Contraction,
        side: int,
        factor: Channels,
        places: Mapping[int, int],
    ) -> bool:
        """Whether operand `side` is a weight that has all dimensions of the factor."""
        types = map(tensor_type_of, (v.type for v in contraction.inputs))
        elements = {type.element_type for type in (*types, *contraction.declared)}
        return (
            not contraction.outs
            and len(elements) == 1
            and self._is_weight(contraction.inputs[side])
            and places.keys() >= set(factor.dims)
            and (side == 1 or isinstance(contraction, DotGeneralOp))
        )


def _is_relu(op: object) -> TypeGuard[MaximumOp]:
    return (
        isinstance(op, MaximumOp)
        and not op.outs
        and any(_is_zero(value) for value in op.inputs)
    )


def _is_zero(value: SSAValue) -> bool:
    channels = channels_of(value)
    owner = channels.source.owner if channels else None
    return isinstance(owner, ConstantOp) and (
        owner.splat is not None and owner.splat.value.data == 0
    )


def _data_of_relu(op: MaximumOp) -> int:
    return 0 if _is_zero(op.inputs[1]) else 1


def _places_of_result(op: Contraction, side: int) -> Mapping[int, int]:
    """Maps the result's dimensions to those of operand `side` that they come from."""
    if isinstance(op, ConvolutionOp):
        _, kernel, result = op.labels
        return {result.index("f"): kernel.index("o")}
    batch, contracted = op.batching[side], op.contracting[side]
    ranks = [tensor_type_of(value.type).get_num_dims() for value in op.inputs]
    free = [d for d in range(ranks[side]) if d not in batch and d not in contracted]
    left = ranks[0] - len(op.contracting[0])  # batch and free dimensions
    first = left if side == 1 else len(batch)
    return dict(enumerate(batch)) | dict(enumerate(free, first))


def _places_of_operand(op: Contraction, side: int) -> Mapping[int, int]:
    """Maps dimensions of the other operand to the corresponding dimensions of operand
    `side`."""
    if isinstance(op, ConvolutionOp):
        image, kernel, _ = op.labels
        grouped = op.feature_group_count.value.data > 1
        return {} if grouped else {image.index("f"): kernel.index("i")}
    pairs = (op.batching, op.contracting)
    return {
        theirs: ours
        for dims in pairs
        for theirs, ours in zip(dims[1 - side], dims[side], strict=True)
    }


def _contract_scaled(
    emitter: Emitter,
    scale: _Scale,
    contraction: Contraction,
    side: int,
    places: Mapping[int, int],
    data: SSAValue | None = None,
) -> SSAValue:
    """The contraction with operand `side` scaled, and the other replaced by `data`."""
    inputs = list(contraction.inputs)
    weight_type = tensor_type_of(inputs[side].type)
    dims = tuple(places[d] for d in scale.factor.dims)
    spread = emitter.spread(scale.factor, weight_type, dims)
    inputs[side] = emitter.emit(type(scale.op), (inputs[side], spread), weight_type)
    if data is not None:
        inputs[1 - side] = data
    return emitter.copy(contraction, inputs)
