"""Writes the gradient of a program backwards, from values to those they depend on.

Like NNVM's Gradient pass, it calls the rule of an operation once the gradient of its
result is complete, and adds up the gradients of several paths to a value as they
arrive. Unlike that pass, it writes neither zeros nor gradients of operands that need
none, and an operation that does not lie between `wrt` and `of` needs no rule.
"""

from collections.abc import Iterable, Sequence
from typing import cast

from xdsl.dialects.builtin import AnyFloat, TensorType, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....analysis.functions import Attributes, argument_attributes
from ....dialects.diagnostics import LocatedError, remark
from ....dialects.tgraph.base import (
    DEVICE,
    GROUP,
    STREAM,
    AnyTensor,
    Pattern,
    TensorOp,
    VariableType,
    is_static,
    segments,
    tensor_type_of,
)
from ....dialects.tgraph.callbacks import may_repeat
from ....dialects.tgraph.differentiation import MIRROR, RECOMPUTED, GradientOp
from ....dialects.tgraph.elements import number_of, real_element
from ....dialects.tgraph.elementwise import AddOp
from ....dialects.tgraph.shaping import ConstantOp, DeviceCopyOp, ViewOp
from ....dialects.tgraph.structure import AssignOp, FusionOp, OnDeviceOp, ReadOp
from ....dialects.tgraph.widening import widened
from .site import RULES, GradientSite, backward


def expand(op: GradientOp, mirror: str) -> None:
    """Replaces `op`, in place, by operations that compute its results.

    `mirror` applies if the operation has no such attribute itself.

    Raises `LocatedError` for an operation between `wrt` and `of` that is not
    differentiable.
    """
    _Reverse(op, op.mirror.data if op.mirror else mirror).run()


class _Reverse:
    """The expansion of one gradient operation."""

    def __init__(self, target: GradientOp, mirror: str):
        self.target = target
        self.point = InsertPoint.before(target)
        self.mirror = mirror
        self.before: dict[Operation, int] = {}  # earlier operations -> their positions
        # The result of a read or an annotation -> the value (or variable) behind it.
        self.held: dict[SSAValue, SSAValue] = {}
        self.placement: dict[SSAValue, Attributes] = {}
        self.gradients: dict[SSAValue, SSAValue] = {}
        self.copies: dict[SSAValue, SSAValue] = {}  # recomputed values
        self.active = {  # values of `wrt`, and values that depend on them
            value
            for value, result in zip(target.wrt, target.res, strict=True)
            if result.first_use
        }

    def run(self) -> None:
        self._forward()
        for index, value in enumerate(self.target.of):
            if value in self.active:
                heads = self.target.heads
                head = heads[index] if heads else self._splat(1.0, value)
                self._add(value, head, self.target)
        for op in reversed(self.before):
            self._backward(op)
        for value, result in zip(self.target.wrt, self.target.res, strict=True):
            if result.first_use:
                result.replace_all_uses_with(self._gradient(value))
        self.target.detach()
        self.target.erase()

    def _forward(self) -> None:
        """Finds the operations before the target, and the values that depend on `wrt`;
        follows variables and placement."""
        contents: dict[SSAValue, SSAValue] = {}
        block = self.target.parent
        assert block is not None
        func = block.parent_op()
        if isinstance(func, FuncOp):
            for argument, attrs in zip(
                block.args, argument_attributes(func), strict=True
            ):
                self.placement[argument] = _placement(attrs)
        for op in block.ops:
            if op is self.target:
                return
            self.before[op] = len(self.before)
            self._place(op)
            sources = _read(op)
            if isinstance(op, ReadOp):
                sources = [contents.get(op.variable, op.variable)]
                self.held[op.result] = sources[0]
            elif isinstance(op, OnDeviceOp):
                self.held[op.result] = op.value
            if any(value in self.active for value in sources):
                self.active.update(r for r in op.results if _is_float(r.type))
            contents.update(_written(op))

    def _place(self, op: Operation) -> None:
        """Places an operation as tgraph-place-devices does: where it says, or else
        where its first placed operand is."""
        if isinstance(op, OnDeviceOp):
            self.placement[op.value] = self.placement[op.result] = {DEVICE: op.device}
            return
        placement = _placement(op.attributes)
        if not (DEVICE in placement or GROUP in placement):
            inherited = (self.placement.get(value) for value in op.operands)
            first = next((p for p in inherited if p), Attributes())
            placement |= {k: v for k, v in first.items() if k != STREAM}
        if placement:
            self.placement.update(dict.fromkeys(op.results, placement))

    def _backward(self, op: Operation) -> None:
        if isinstance(op, ReadOp | OnDeviceOp):
            if gradient := self.gradients.get(op.result):
                self._add(self.held[op.result], gradient, op)
            return
        gradient = next((g for r in op.results if (g := self.gradients.get(r))), None)
        wanted = [value in self.active for value in _read(op)]
        if gradient is None or not any(wanted):
            return
        rule = RULES.get(type(op))
        if rule is None or not isinstance(op, TensorOp):
            raise _not_differentiable(op)
        for value in (*op.inputs, *op.res):
            if not is_static(tensor_type_of(value.type)):
                raise LocatedError(
                    f"{op.name} has a value of type {value.type}, expected a static "
                    "shape: run tgraph-infer-shapes before tgraph-gradient",
                    op,
                )
        like = op.inputs[0] if isinstance(op, DeviceCopyOp) else op.results[0]
        placement = self.placement.get(like, {})
        site = GradientSite(op, gradient, self.point, placement, self._available)
        for index, is_wanted in enumerate(wanted):
            if is_wanted and (part := rule(site, index)):
                self._add(op.inputs[index], part.value, op)

    def _add(self, value: SSAValue, part: SSAValue, op: Operation) -> None:
        """Adds a part to the gradient with respect to `value`, found at `op`."""
        if value not in self.active:
            return
        sum_so_far = self.gradients.get(value)
        if sum_so_far is None:
            self.gradients[value] = part
            return
        add = AddOp((sum_so_far, part), result_types=(part.type,))
        add.location = backward(op.location)
        ops = widened(add)
        # The sum is where both parts are, or where `value` is if they differ.
        both = [_placement_of(sum_so_far), _placement_of(part)]
        if both[0] != both[1]:
            both = [self.placement.get(value, {})]
        for each in ops:
            each.attributes.update(both[0])
        Rewriter.insert_op(ops, self.point)
        self.gradients[value] = ops[-1].result

    def _splat(self, number: float, like: SSAValue) -> SSAValue:
        type = tensor_type_of(like.type)
        constant = ConstantOp(number_of(number, type.element_type), type)
        constant.location = self.target.location
        constant.attributes.update(self.placement.get(like, {}))
        Rewriter.insert_op(constant, self.point)
        return constant.result

    def _gradient(self, value: SSAValue) -> SSAValue:
        if gradient := self.gradients.get(value):
            return gradient
        name = f"%{value.name_hint}" if value.name_hint else f"a {value.type}"
        remark(
            f"gradient with respect to {name} is zero: no differentiable path leads "
            "from it to the value",
            self.target,
        )
        return self._splat(0.0, value)

    # Recomputation

    def _available(self, value: SSAValue) -> SSAValue:
        """`value`, or a copy of it if its operation is one to recompute.

        A copy needs copies of all values that it depends on, back to those that are
        kept.
        """
        if not self._is_mirrored(value):
            return value
        found: set[TensorOp] = set()
        pending = [value]
        while pending:
            needed = pending.pop()
            if needed in self.copies or not self._is_mirrored(needed):
                continue
            op = cast(TensorOp, needed.owner)
            if op not in found:
                found.add(op)
                pending += op.inputs
        for op in sorted(found, key=self.before.__getitem__):
            self._repeat(op)
        return self.copies[value]

    def _is_mirrored(self, value: SSAValue) -> bool:
        op = value.owner
        if self.mirror == "none" or op not in self.before:
            return False
        if not isinstance(op, TensorOp) or not may_repeat(op):
            return False
        return MIRROR in op.attributes or (self.mirror == "cheap" and _is_cheap(op))

    def _repeat(self, op: TensorOp) -> None:
        copy = type(op).create(
            operands=[self.copies.get(value, value) for value in op.inputs],
            result_types=op.res.types,
            properties=op.properties | {"operandSegmentSizes": segments(op.inputs, ())},
            attributes=op.attributes | {RECOMPUTED: UnitAttr()},
            regions=[region.clone() for region in op.regions],
            location=op.location,
        )
        copy.attributes.pop(MIRROR, None)
        copy.attributes.update(self.placement.get(op.res[0], {}))
        Rewriter.insert_op(copy, self.point)
        self.copies.update(zip(op.res, copy.results, strict=True))


def _placement(attributes: Attributes) -> Attributes:
    return {k: v for k in (DEVICE, GROUP, STREAM) if (v := attributes.get(k))}


def _placement_of(value: SSAValue) -> Attributes:
    op = value.owner
    return _placement(op.attributes) if isinstance(op, Operation) else {}


def _read(op: Operation) -> Sequence[SSAValue]:
    """The operands that a gradient may flow to: for a tensor operation, its inputs."""
    if isinstance(op, TensorOp):
        return [] if 0 in op.SHAPE_ONLY else op.inputs
    return op.operands


def _written(op: Operation) -> Iterable[tuple[SSAValue, SSAValue]]:
    """The variables that the operation writes, each with its new contents."""
    if isinstance(op, AssignOp):
        return [(op.variable, op.value)]
    if isinstance(op, TensorOp) and any(
        isinstance(value.type, VariableType) for value in op.operands
    ):
        return zip(op.outs, op.res, strict=True)
    return ()


def _is_float(type: Attribute) -> bool:
    if not isinstance(type, TensorType):
        return False
    return isinstance(real_element(cast(AnyTensor, type).element_type), AnyFloat)


def _is_cheap(op: TensorOp) -> bool:
    """Whether recomputing the result costs no more than reading it: the default rule of
    MXNet's mirroring."""
    return bool(op.inputs) and (
        isinstance(op, ViewOp) or op.PATTERN in (Pattern.ELEMENTWISE, Pattern.BROADCAST)
    )


def _not_differentiable(op: Operation) -> LocatedError:
    if isinstance(op, FusionOp):
        return LocatedError(
            f"{op.name} is not differentiable: run tgraph-gradient before tgraph-fuse",
            op,
        )
    return LocatedError(f"{op.name} is not differentiable", op)
