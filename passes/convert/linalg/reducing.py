"""Writes reductions and products as `linalg.generic` with reduction iterators.

Sums have a wider type than the elements (`code.sum_type`, `code.dot_type`). They lie in
workspace if the result has another type.
"""

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, SSAValue

from ....dialects.tgraph.base import tensor_type_of
from ....dialects.tgraph.elements import identity
from ....dialects.tgraph.reducing import ConvolutionOp, DotGeneralOp, ReduceOp
from . import named
from .code import MlirCode, dot_type, is_float, signless, sum_type
from .memory import Stored
from .nests import GenericBody, Values, assign, copy
from .scalars import combined


def accumulated(
    values: Values,
    target: Stored,
    kind: str,
    kept_in: Attribute,
    add_up: Callable[[Stored], None],
) -> None:
    """Fills memory of the type `kept_in`, lets `add_up` combine elements into it, and
    brings it to the target, if it is not the target's own."""
    in_place = kept_in == signless(target.element)
    total = target if in_place else values.memory.allocate(kept_in, target.shape)
    values.memory.fill(total, identity(kind, target.element))
    add_up(total)
    copy(values, total, target)


def kept_in(kind: str, element: Attribute) -> Attribute:
    is_sum = kind in ("add", "multiply") and is_float(element)
    return sum_type(element) if is_sum else signless(element)


def combine(
    code: MlirCode, kind: str, element: Attribute, old: SSAValue, new: SSAValue
) -> SSAValue:
    """The elements combined. Sums may be in another float type than the elements."""
    if is_float(element) and old.type != new.type:
        new = code.convert(new, element, old.type)
        element = old.type
    return combined(kind, code, element, old, new)


def reduce(values: Values, op: ReduceOp, target: Stored) -> None:
    source, kind = op.inputs[0], op.kind.data
    type = tensor_type_of(source.type)
    shape, reduced = type.get_shape(), op.dimensions.get_values()
    if not reduced:
        assign(values, source, target)
        return
    if 0 in target.shape:
        return

    def add_up(total: Stored) -> None:
        if 0 in shape:
            return
        nest = GenericBody(values, shape)
        new = nest.value(source, nest.dims)
        kept = tuple(e for d, e in enumerate(nest.dims) if d not in reduced)
        nest.finish(
            total,
            kept,
            lambda old: combine(nest.code, kind, type.element_type, old, new),
            reduced,
        )

    accumulated(values, target, kind, kept_in(kind, type.element_type), add_up)


PANEL = 128
"""Columns of a product that are computed together, while the operand's are in cache."""


def dot_general(values: Values, op: DotGeneralOp, target: Stored) -> None:
    """Iterates over batch, panels of columns, rows, what is summed, and the columns of
    a panel: so the innermost loop runs along rows of the right operand and the result.
    Where neighbours in the right operand are summed, that loop is the innermost."""
    if 0 in target.shape:
        return
    element = op.declared[0].element_type
    left_type = tensor_type_of(op.inputs[0].type)
    right = values.store(op.inputs[1])
    left_labels = _labels(op, 0, left_type.get_num_dims(), "m")
    right_labels = _labels(op, 1, len(right.shape), "n")
    result_labels = [
        *sorted(label for label in left_labels if label[0] == "b"),
        *(label for label in left_labels if label[0] == "m"),
        *(label for label in right_labels if label[0] == "n"),
    ]
    sizes = dict(zip(left_labels, left_type.get_shape(), strict=True))
    sizes |= zip(right_labels, right.shape, strict=True)
    columns = [label for label in right_labels if label[0] == "n"]

    def add_up(total: Stored) -> None:
        if 0 in sizes.values():
            return
        if values.named and named.matmul(
            values,
            [values.store(op.inputs[0]), right],
            [left_labels, right_labels],
            total,
        ):
            return
        if not columns or sizes[columns[-1]] < 2 * PANEL:
            multiply(values, right, right_labels, total, result_labels, sizes)
            return
        last = columns[-1]
        dim = right_labels.index(last)
        count, rest = divmod(sizes[last], PANEL)
        end = len(total.shape) - 1
        panels, others = (0, 1, count * PANEL), (count * PANEL, 1, rest)
        right_panels = right.part({dim: panels}).split(dim, count)
        total_panels = total.part({end: panels}).split(end, count)
        in_panel = {**sizes, last: PANEL}
        if _nearest(right, right_labels) == "k" and not right.repeats:
            packed_labels = [
                *(label for label in right_labels if label[0] != "n"),
                *columns,
            ]
            shape = tuple(in_panel[label] for label in packed_labels)
            packed = values.memory.allocate(right.element, shape)
            order = [packed_labels.index(label) for label in right_labels]

            def one_panel(code: MlirCode, index: SSAValue, _: Sequence[SSAValue]):
                inner = values.inside(code)
                part = inner.memory.moving(right_panels, dim, index)
                copy(inner, part, packed.viewed(packed.layout.transposed(order)))
                sums = inner.memory.moving(total_panels, end, index)
                multiply(inner, packed, packed_labels, sums, result_labels, in_panel)
                inner.memory.free()
                return ()

            values.code.loop(count, one_panel)
        else:
            multiply(
                values,
                right_panels,
                [*right_labels[:dim], "p", *right_labels[dim:]],
                total_panels,
                [*result_labels[:-1], "p", last],
                {**in_panel, "p": count},
            )
        if rest:
            multiply(
                values,
                right.part({dim: others}),
                right_labels,
                total.part({end: others}),
                result_labels,
                {**sizes, last: rest},
            )

    def multiply(
        values: Values,
        right: Stored,
        right_labels: Sequence[str],
        total: Stored,
        result_labels: Sequence[str],
        sizes: Mapping[str, int],
    ) -> None:
        innermost = _nearest(right, right_labels)
        parts = "bpmnk" if innermost == "k" else "bpmkn"
        order = sorted(sizes, key=lambda label: (parts.index(label[0]), label))
        nest = GenericBody(values, [sizes[label] for label in order])
        at = dict(zip(order, nest.dims, strict=True))
        factors = [
            nest.value(op.inputs[0], tuple(at[label] for label in left_labels)),
            nest.read(right, tuple(at[label] for label in right_labels)),
        ]
        nest.finish(
            total,
            tuple(at[label] for label in result_labels),
            lambda old: multiply_add(nest.code, op, old, factors),
            [d for d, label in enumerate(order) if label[0] == "k"],
        )

    accumulated(values, target, "add", dot_type(element), add_up)


def _labels(op: DotGeneralOp, side: int, rank: int, free: str) -> list[str]:
    """A name for each of an operand's dimensions: b0, b1, ... for batches, k0, ... for
    what is summed, and the others in order."""
    labels = {dim: f"b{n:02}" for n, dim in enumerate(op.batching[side])}
    labels |= {dim: f"k{n:02}" for n, dim in enumerate(op.contracting[side])}
    others = [dim for dim in range(rank) if dim not in labels]
    labels |= {dim: f"{free}{n:02}" for n, dim in enumerate(others)}
    return [labels[dim] for dim in range(rank)]


def _nearest(stored: Stored, labels: Sequence[str]) -> str:
    """The kind of the dimension along which neighbours lie in memory."""
    layout = stored.layout
    steps = [
        (abs(stride), label)
        for stride, size, label in zip(
            layout.strides, layout.shape, labels, strict=True
        )
        if size > 1 and stride
    ]
    return min(steps)[1][0] if steps else ""


_CONTRACT = arith.FastMathFlagsAttr([FastMathFlag.ALLOW_CONTRACT])
"""A product and a sum may be one operation, which rounds once."""


def multiply_add(
    code: MlirCode,
    op: DotGeneralOp | ConvolutionOp,
    old: SSAValue,
    factors: Sequence[SSAValue],
) -> SSAValue:
    """`old` with a product of two elements of the operands added, in its own type."""
    element = op.declared[0].element_type
    kept = dot_type(element)
    x, y = (
        code.convert(factor, tensor_type_of(value.type).element_type, kept)
        for factor, value in zip(factors, op.inputs, strict=True)
    )
    if is_float(element):
        product = code.add(arith.MulfOp(x, y, _CONTRACT))
        return code.add(arith.AddfOp(old, product, _CONTRACT))
    product = combined("multiply", code, element, x, y)
    return combined("add", code, element, old, product)
