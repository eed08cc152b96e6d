"""Operations that combine many operand elements into one result element."""

from collections.abc import Sequence
from math import prod
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, prop_def
from xdsl.utils.exceptions import VerifyException

from ...support.choices import one_of
from .base import (
    AnyTensor,
    Pattern,
    Shape,
    TensorOp,
    bare,
    ints,
    shape_of,
    with_element,
    with_shape,
)
from .elements import holds
from .elementwise import COMBINERS
from .partial import UNKNOWN, PartialTypes, Place
from .shaping import check_dimensions, check_length
from .windows import Window, places_of, refine_places, window_of

KINDS = tuple(COMBINERS)
"""The kinds of reductions, each named after the elementwise operation it repeats."""


def check_kind(kind: StringAttr, allowed: Sequence[str] = KINDS) -> None:
    if kind.data not in allowed:
        raise VerifyException(f"kind is {one_of(kind.data, allowed)}")


def check_same_element(inputs: Sequence[AnyTensor], index: int) -> None:
    if inputs[index].element_type != inputs[0].element_type:
        raise VerifyException(
            f"operand {index} has type {bare(inputs[index])}, expected elements of "
            f"type {inputs[0].element_type} like operand 0"
        )


def sum_element(op: TensorOp, inputs: Sequence[AnyTensor]) -> Attribute:
    """The type in which a contraction adds products: that of the result's elements. It
    must represent all numbers of the operands' types, such as i32 for s8 and u8."""
    declared = op.declared  # empty while the operation is constructed
    element = (declared or inputs)[0].element_type
    for index, type in enumerate(inputs):
        if type.element_type != element and not holds(element, type.element_type):
            raise VerifyException(
                f"operand {index} has type {bare(type)}, expected elements that "
                f"{element} represents exactly"
            )
    return element


@irdl_op_definition
class ReduceOp(TensorOp):
    """Reduces all elements along `dimensions`, which are removed from the result.

    The result of an empty reduction is the identity of `kind` (0, 1, -inf, inf, true,
    false).
    """

    name = "tgraph.reduce"
    ARITY: ClassVar = 1
    COMPUTES: ClassVar = True
    PATTERN: ClassVar = Pattern.REDUCTION

    kind = prop_def(StringAttr)
    dimensions = prop_def(DenseArrayBase.constr(i64))

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        check_kind(self.kind)
        shape = shape_of(inputs[0])
        dims = self.dimensions.get_values()
        check_dimensions("dimensions", dims, len(shape))
        kept = [size for d, size in enumerate(shape) if d not in dims]
        return [with_shape(inputs[0], kept)]

    def refine(self, types: PartialTypes) -> None:
        types.same_element(0, 1)
        dims = self.dimensions.get_values()
        check_dimensions("dimensions", dims, types.rank(0))
        kept = [d for d in range(types.rank(0)) if d not in dims]
        types.check_rank(1, len(kept))
        for target, source in enumerate(kept):
            types.same_size((0, source), (1, target))


class ContractionOp(TensorOp):
    """Sums of products, computed in the result's element type."""

    ARITY: ClassVar = 2
    PATTERN: ClassVar = Pattern.OUT_ELEMENTWISE_FUSABLE

    def elements_computed(self) -> Sequence[Attribute]:
        return [self.declared[0].element_type]


@irdl_op_definition
class DotGeneralOp(ContractionOp):
    """Products of two tensors summed over the contracting dimensions.

    The elements of operands may be narrower than those of the result, in whose type
    products are computed.

    The result's dimensions are the batch dimensions, then the left operand's other
    dimensions, then the right operand's (StableHLO's `dot_general`).
    """

    name = "tgraph.dot_general"

    DEFAULTS: ClassVar = {
        "lhs_batching_dimensions": ints(()),
        "rhs_batching_dimensions": ints(()),
    }

    lhs_batching_dimensions = prop_def(DenseArrayBase.constr(i64))
    rhs_batching_dimensions = prop_def(DenseArrayBase.constr(i64))
    lhs_contracting_dimensions = prop_def(DenseArrayBase.constr(i64))
    rhs_contracting_dimensions = prop_def(DenseArrayBase.constr(i64))

    @property
    def batching(self) -> tuple[Shape, Shape]:
        """The batch dimensions of the left and the right operand."""
        return (
            self.lhs_batching_dimensions.get_values(),
            self.rhs_batching_dimensions.get_values(),
        )

    @property
    def contracting(self) -> tuple[Shape, Shape]:
        """The contracting dimensions of the left and the right operand."""
        return (
            self.lhs_contracting_dimensions.get_values(),
            self.rhs_contracting_dimensions.get_values(),
        )

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        element = sum_element(self, inputs)
        shapes = [shape_of(type) for type in inputs]
        free: list[list[int]] = []
        for side in (0, 1):
            batch, contracting = self.batching[side], self.contracting[side]
            name = ("lhs", "rhs")[side] + " dimensions"
            check_dimensions(name, (*batch, *contracting), len(shapes[side]))
            free.append(
                [
                    size
                    for d, size in enumerate(shapes[side])
                    if d not in batch and d not in contracting
                ]
            )
        for what, dims in (("batch", self.batching), ("contract", self.contracting)):
            sizes = [[shapes[s][d] for d in dims[s]] for s in (0, 1)]
            if sizes[0] != sizes[1]:
                raise VerifyException(
                    f"{what}s dimensions of sizes {sizes[0]} with {sizes[1]}, "
                    "expected equal sizes"
                )
        batch = [shapes[0][d] for d in self.batching[0]]
        result = with_shape(inputs[0], [*batch, *free[0], *free[1]])
        return [with_element(result, element)]

    def refine(self, types: PartialTypes) -> None:
        types.wider_element(2, 0, 1)
        batching, contracting = self.batching, self.contracting
        check_length("rhs_batching_dimensions", batching[1], len(batching[0]))
        check_length("rhs_contracting_dimensions", contracting[1], len(contracting[0]))
        free: list[Place] = []
        for side in (0, 1):
            used = (*batching[side], *contracting[side])
            check_dimensions(
                ("lhs", "rhs")[side] + " dimensions", used, types.rank(side)
            )
            free += [(side, d) for d in range(types.rank(side)) if d not in used]
        batch = list(zip(*batching, strict=True))
        types.check_rank(2, len(batch) + len(free))
        for target, (left, right) in enumerate(batch):
            types.same_size((0, left), (1, right), (2, target))
        for left, right in zip(*contracting, strict=True):
            types.same_size((0, left), (1, right))
        for target, place in enumerate(free, len(batch)):
            types.same_size(place, (2, target))


@irdl_op_definition
class ConvolutionOp(ContractionOp):
    """Convolution of operands image and kernel, in any layout.

    The elements of operands may be narrower than those of the result, in whose type
    products are computed.

    `dim_labels` is XLA's notation: `b01f_01io->b01f` means that the image has the
    dimensions batch, two spatial ones, and feature; the kernel two spatial ones, input
    and output feature; and the result the same as the image. The kernel is not flipped.
    """

    name = "tgraph.convolution"

    DEFAULTS: ClassVar = {
        "feature_group_count": IntegerAttr(1, i64),
        "batch_group_count": IntegerAttr(1, i64),
    }

    dim_labels = prop_def(StringAttr)
    window_strides = prop_def(DenseArrayBase.constr(i64))
    padding_low = prop_def(DenseArrayBase.constr(i64))
    padding_high = prop_def(DenseArrayBase.constr(i64))
    lhs_dilation = prop_def(DenseArrayBase.constr(i64))
    rhs_dilation = prop_def(DenseArrayBase.constr(i64))
    feature_group_count = prop_def(IntegerAttr)
    batch_group_count = prop_def(IntegerAttr)

    @property
    def groups(self) -> int:
        """The number of groups of features or batches that are convolved separately."""
        counts = self.feature_group_count, self.batch_group_count
        return prod(count.value.data for count in counts)

    @property
    def labels(self) -> tuple[str, str, str]:
        """The dimension labels of image, kernel and result."""
        operands, arrow, result = self.dim_labels.data.partition("->")
        image, underscore, kernel = operands.partition("_")
        rank = len(image)
        spatial = "".join(str(d) for d in range(rank - 2))
        if (
            not arrow
            or not underscore
            or sorted(image) != sorted("bf" + spatial)
            or sorted(kernel) != sorted("io" + spatial)
            or sorted(result) != sorted("bf" + spatial)
        ):
            raise VerifyException(
                f"dim_labels is {self.dim_labels.data!r}, expected the form "
                "'b01f_01io->b01f'"
            )
        return image, kernel, result

    @property
    def spatial(self) -> str:
        """The labels of the spatial dimensions, in order."""
        return "".join(map(str, range(len(self.labels[0]) - 2)))

    def window(self, kernel: Shape) -> Window:
        """The window along each spatial dimension, for a kernel of this shape."""
        return window_of(
            len(self.spatial),
            [kernel[self.labels[1].index(label)] for label in self.spatial],
            self.window_strides.get_values(),
            self.padding_low.get_values(),
            self.padding_high.get_values(),
            self.lhs_dilation.get_values(),
            self.rhs_dilation.get_values(),
        )

    def multiplied(
        self, image: Shape, kernel: Shape, result: Shape
    ) -> tuple[str, str] | None:
        """The spatial dimensions in which each position sees one position of the image,
        and those in which a single position sees the whole image, for arrays of these
        shapes. The convolution is then a product of two matrices. None if there are
        other dimensions, or groups."""
        if self.groups > 1:
            return None
        points, sums = "", ""
        for dim, label in zip(self.window(kernel), self.spatial, strict=True):
            size = image[self.labels[0].index(label)]
            places = result[self.labels[2].index(label)]
            if dim.low or dim.base_dilation > 1:
                return None
            if dim.size == dim.stride == 1 and places == size:
                points += label
            elif places == dim.window_dilation == 1 and dim.size == size:
                sums += label
            else:
                return None
        return points, sums

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        element = sum_element(self, inputs)
        image_labels, kernel_labels, result_labels = self.labels
        for name, labels, type in (
            ("image", image_labels, inputs[0]),
            ("kernel", kernel_labels, inputs[1]),
        ):
            check_length(f"the shape of the {name}", shape_of(type), len(labels))
        image = dict(zip(image_labels, shape_of(inputs[0]), strict=True))
        kernel = dict(zip(kernel_labels, shape_of(inputs[1]), strict=True))
        features = self.feature_group_count.value.data
        batches = self.batch_group_count.value.data
        if min(features, batches) < 1 or (features > 1 and batches > 1):
            raise VerifyException(
                f"feature_group_count is {features} and batch_group_count {batches}, "
                "expected 1 or more, and 1 for one of the two"
            )
        if image["f"] != kernel["i"] * features:
            raise VerifyException(
                f"image has {image['f']} features, expected {kernel['i'] * features}: "
                f"the kernel's {kernel['i']} times {features} groups"
            )
        if kernel["o"] % (features * batches) or image["b"] % batches:
            raise VerifyException(
                f"kernel has {kernel['o']} output features and the batch is "
                f"{image['b']}, expected multiples of {features * batches} groups"
            )
        window = self.window(shape_of(inputs[1]))
        sizes = places_of(tuple(image[d] for d in self.spatial), window)
        result = dict(zip(self.spatial, sizes, strict=True))
        result |= {"b": image["b"] // batches, "f": kernel["o"]}
        shape = [result[label] for label in result_labels]
        return [with_element(with_shape(inputs[0], shape), element)]

    def refine(self, types: PartialTypes) -> None:
        types.wider_element(2, 0, 1)
        for value, labels in enumerate(self.labels):
            types.check_rank(value, len(labels))
        image, kernel, result = (
            {label: (value, dim) for dim, label in enumerate(labels)}
            for value, labels in enumerate(self.labels)
        )
        types.same_size(kernel["o"], result["f"])
        types.multiple(image["f"], self.feature_group_count.value.data, kernel["i"])
        types.multiple(image["b"], self.batch_group_count.value.data, result["b"])
        shape = tuple(types.size((1, d)) for d in range(types.rank(1)))
        if any(shape[kernel[d][1]] == UNKNOWN for d in self.spatial):
            return
        sources, targets = (
            [places[d] for d in self.spatial] for places in (image, result)
        )
        refine_places(types, sources, targets, self.window(shape))


@irdl_op_definition
class ReduceWindowOp(TensorOp):
    """Reduces the elements of each window; padding holds the identity."""

    name = "tgraph.reduce_window"
    ARITY: ClassVar = 1
    COMPUTES: ClassVar = True

    kind = prop_def(StringAttr)
    window_dimensions = prop_def(DenseArrayBase.constr(i64))
    window_strides = prop_def(DenseArrayBase.constr(i64))
    padding_low = prop_def(DenseArrayBase.constr(i64))
    padding_high = prop_def(DenseArrayBase.constr(i64))
    base_dilations = prop_def(DenseArrayBase.constr(i64))
    window_dilations = prop_def(DenseArrayBase.constr(i64))

    def window(self, rank: int) -> Window:
        """The window over an operand with `rank` dimensions."""
        return window_of(
            rank,
            self.window_dimensions.get_values(),
            self.window_strides.get_values(),
            self.padding_low.get_values(),
            self.padding_high.get_values(),
            self.base_dilations.get_values(),
            self.window_dilations.get_values(),
        )

    def scan(self, shape: Shape) -> tuple[int, int] | None:
        """For a scan such as a cumulative sum, the dimension, and 1 if each result
        combines all elements up to its position, or -1 from it on. None for other
        windows. `shape` is the operand's."""
        ones = (1,) * len(shape)
        steps = self.window_strides, self.base_dilations, self.window_dilations
        windows = self.window_dimensions.get_values()
        axes = [dim for dim, size in enumerate(windows) if size != 1]
        if len(axes) != 1 or any(step.get_values() != ones for step in steps):
            return None
        (axis,) = axes
        window = windows[axis]
        low, high = (
            list(self.padding_low.get_values()),
            list(self.padding_high.get_values()),
        )
        ends = low.pop(axis), high.pop(axis)
        if window < shape[axis] or any(low) or any(high):
            return None
        return {(window - 1, 0): (axis, 1), (0, window - 1): (axis, -1)}.get(ends)

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        check_kind(self.kind)
        shape = shape_of(inputs[0])
        places = places_of(shape, self.window(len(shape)))
        return [with_shape(inputs[0], places)]

    def refine(self, types: PartialTypes) -> None:
        rank = types.rank(0)
        types.same_element(0, 1)
        types.check_rank(1, rank)
        sources, targets = ([(value, d) for d in range(rank)] for value in (0, 1))
        refine_places(types, sources, targets, self.window(rank))


@irdl_op_definition
class SelectAndScatterOp(TensorOp):
    """The gradient of max (or min) pooling; the operands are the pooled tensor and the
    gradient.

    In each window, the operation selects the first largest (`kind` "maximum") or
    smallest element, and adds the gradient of the window to it. It scans the window in
    row-major order. An element replaces the selected one unless that is at least as
    large (small). NaN therefore replaces it, and any element replaces NaN.
    """

    name = "tgraph.select_and_scatter"
    ARITY: ClassVar = 2
    COMPUTES: ClassVar = True

    kind = prop_def(StringAttr)
    window_dimensions = prop_def(DenseArrayBase.constr(i64))
    window_strides = prop_def(DenseArrayBase.constr(i64))
    padding_low = prop_def(DenseArrayBase.constr(i64))
    padding_high = prop_def(DenseArrayBase.constr(i64))

    def window(self, rank: int) -> Window:
        """The window over an operand with `rank` dimensions."""
        return window_of(
            rank,
            self.window_dimensions.get_values(),
            self.window_strides.get_values(),
            self.padding_low.get_values(),
            self.padding_high.get_values(),
        )

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        check_kind(self.kind, ("maximum", "minimum"))
        check_same_element(inputs, 1)
        shape = shape_of(inputs[0])
        places = places_of(shape, self.window(len(shape)))
        if shape_of(inputs[1]) != tuple(places):
            raise VerifyException(
                f"operand 1 has type {bare(inputs[1])}, expected "
                f"{bare(with_shape(inputs[1], places))}: one element for each place "
                "of the window"
            )
        return [inputs[0]]

    def refine(self, types: PartialTypes) -> None:
        operand, source, result = range(3)
        rank = types.rank(operand)
        types.same_element(operand, source, result)
        types.same_shape(operand, result)
        types.check_rank(source, rank)
        sources, targets = ([(v, d) for d in range(rank)] for v in (operand, source))
        refine_places(types, sources, targets, self.window(rank))


REDUCING_OPS = (
    ConvolutionOp,
    DotGeneralOp,
    ReduceOp,
    ReduceWindowOp,
    SelectAndScatterOp,
)
