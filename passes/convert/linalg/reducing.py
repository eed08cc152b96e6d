"""Writes reductions and products as `linalg.generic` with reduction iterators.

Sums have a wider type than the elements (`code.sum_type`, `code.dot_type`). They lie in
workspace if the result has another type.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

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
    """Fills memory of the element type `kept_in`, lets `add_up` combine elements into
    it, and copies it to the target, unless it is the target's own."""
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
    """Combines two elements. `old` may have another float type than `element`."""
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
"""The number of columns of a product that are computed together, while those of the
operand are in the cache."""


def dot_general(values: Values, op: DotGeneralOp, target: Stored) -> None:
    """The loops are over the batch, panels of columns, rows, contracted dimensions, and
    the columns of a panel, so that the innermost loop runs along rows of the right
    operand and the result. If adjacent elements of the right operand are summed, the
    loop over contracted dimensions is the innermost."""
    if 0 in target.shape:
        return
    product = _Product(op)
    right = _Labeled(values.store(op.inputs[1]), product.right_labels)

    def add_up(total: Stored) -> None:
        if 0 in product.sizes.values():
            return
        if values.named and named.matmul(
            values,
            [values.store(op.inputs[0]), right.memory],
            [product.left_labels, right.labels],
            total,
        ):
            return
        result = _Labeled(total, product.result_labels)
        columns = product.columns
        if not columns or product.sizes[columns[-1]] < 2 * PANEL:
            product.add_up(values, right, result)
        else:
            product.add_up_by_panels(values, right, result)

    element = op.declared[0].element_type
    accumulated(values, target, "add", dot_type(element), add_up)


class _Labeled(NamedTuple):
    """Memory, and a label for each of its dimensions."""

    memory: Stored
    labels: Sequence[str]

    def part(self, label: str, first: int, size: int) -> "_Labeled":
        dim = self.labels.index(label)
        return _Labeled(self.memory.part({dim: (first, 1, size)}), self.labels)

    def split(self, label: str, count: int) -> "_Labeled":
        """Splits the dimension `label` into `count` equal parts, along a new dimension
        labeled `p` before it."""
        dim = self.labels.index(label)
        labels = [*self.labels[:dim], "p", *self.labels[dim:]]
        return _Labeled(self.memory.split(dim, count), labels)

    def moving(self, values: Values, index: SSAValue) -> "_Labeled":
        """The part at an index along `p`."""
        dim = self.labels.index("p")
        labels = [label for label in self.labels if label != "p"]
        return _Labeled(values.memory.moving(self.memory, dim, index), labels)

    def nearest(self) -> str:
        """The kind of the dimension along which elements are closest in memory."""
        layout = self.memory.layout
        steps = [
            (abs(stride), label)
            for stride, size, label in zip(
                layout.strides, layout.shape, self.labels, strict=True
            )
            if size > 1 and stride
        ]
        return min(steps)[1][0] if steps else ""


class _Product:
    """A product whose dimensions have labels: b00, b01, ... for batches, m00, ... for
    rows, n00, ... for columns, k00, ... for contracted dimensions, and p for panels."""

    def __init__(self, op: DotGeneralOp) -> None:
        self._op = op
        left, right = (tensor_type_of(operand.type) for operand in op.inputs)
        self.left_labels = _labels(op, 0, left.get_num_dims(), "m")
        self.right_labels = _labels(op, 1, right.get_num_dims(), "n")
        self.columns = [label for label in self.right_labels if label[0] == "n"]
        self.result_labels = [
            *sorted(label for label in self.left_labels if label[0] == "b"),
            *(label for label in self.left_labels if label[0] == "m"),
            *self.columns,
        ]
        self.sizes = dict(zip(self.left_labels, left.get_shape(), strict=True))
        self.sizes |= zip(self.right_labels, right.get_shape(), strict=True)

    def add_up(self, values: Values, right: _Labeled, result: _Labeled) -> None:
        """Adds the product with `right`, all or some columns of the right operand."""
        sizes = self.sizes | dict(zip(right.labels, right.memory.shape, strict=True))
        parts = "bpmnk" if right.nearest() == "k" else "bpmkn"
        order = sorted(sizes, key=lambda label: (parts.index(label[0]), label))
        nest = GenericBody(values, [sizes[label] for label in order])
        at = dict(zip(order, nest.dims, strict=True))
        left = self._op.inputs[0]
        factors = [
            nest.value(left, tuple(at[label] for label in self.left_labels)),
            nest.read(right.memory, tuple(at[label] for label in right.labels)),
        ]
        nest.finish(
            result.memory,
            tuple(at[label] for label in result.labels),
            lambda old: multiply_add(nest.code, self._op, old, factors),
            [d for d, label in enumerate(order) if label[0] == "k"],
        )

    def add_up_by_panels(
        self, values: Values, right: _Labeled, result: _Labeled
    ) -> None:
        last = self.columns[-1]
        count, rest = divmod(self.sizes[last], PANEL)
        whole = count * PANEL
        panels, sums = (
            stored.part(last, 0, whole).split(last, count) for stored in (right, result)
        )
        if right.nearest() == "k" and not right.memory.repeats:
            self._pack_panels(values, panels, sums, count)
        else:
            self.add_up(values, panels, sums)
        if rest:
            others = (stored.part(last, whole, rest) for stored in (right, result))
            self.add_up(values, *others)

    def _pack_panels(
        self, values: Values, panels: _Labeled, sums: _Labeled, count: int
    ) -> None:
        """Copies each panel first, so that its columns are adjacent."""
        rows = [label for label in self.right_labels if label[0] != "n"]
        labels = [*rows, *self.columns]
        sizes = {**self.sizes, self.columns[-1]: PANEL}
        shape = tuple(sizes[label] for label in labels)
        packed = values.memory.allocate(panels.memory.element, shape)
        order = [labels.index(label) for label in self.right_labels]

        def one_panel(code: MlirCode, index: SSAValue, _: Sequence[SSAValue]):
            inner = values.inside(code)
            panel = panels.moving(inner, index).memory
            copy(inner, panel, packed.viewed(packed.layout.transposed(order)))
            self.add_up(inner, _Labeled(packed, labels), sums.moving(inner, index))
            inner.memory.free()
            return ()

        values.code.loop(count, one_panel)


def _labels(op: DotGeneralOp, side: int, rank: int, free: str) -> list[str]:
    """The labels of an operand's dimensions: b00, b01, ... for batches, k00, ... for
    contracted dimensions, and the prefix `free` for the others, in order."""
    labels = {dim: f"b{n:02}" for n, dim in enumerate(op.batching[side])}
    labels |= {dim: f"k{n:02}" for n, dim in enumerate(op.contracting[side])}
    others = [dim for dim in range(rank) if dim not in labels]
    labels |= {dim: f"{free}{n:02}" for n, dim in enumerate(others)}
    return [labels[dim] for dim in range(rank)]


_CONTRACT = arith.FastMathFlagsAttr([FastMathFlag.ALLOW_CONTRACT])
"""Allows a product and a sum to become one operation, which rounds once."""


def multiply_add(
    code: MlirCode,
    op: DotGeneralOp | ConvolutionOp,
    old: SSAValue,
    factors: Sequence[SSAValue],
) -> SSAValue:
    """Adds a product of one element of each operand to `old`, in its type."""
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
