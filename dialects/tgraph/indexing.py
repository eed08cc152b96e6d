"""Operations that read or write at indices.

Attributes and semantics are those of StableHLO. `gather` and `scatter` take an operand
and a tensor of indices. An index vector lies along `index_vector_dim` of the indices,
or is a single element if `index_vector_dim` is their rank.
"""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, prop_def
from xdsl.utils.exceptions import VerifyException

from ..sizes.symbolic import exceeds
from .base import (
    AnyTensor,
    Pattern,
    Shape,
    TensorOp,
    bare,
    ints,
    shape_of,
    value_shape,
    with_shape,
)
from .partial import PartialTypes
from .reducing import KINDS, check_kind, check_same_element
from .shaping import ConcatenateOp, check_dimensions, check_length


class DimensionNumbers(NamedTuple):
    """How the dimensions of operand, indices, and slices correspond: StableHLO's
    dimension numbers, with the same names for gather and scatter. The slices of a
    gather lie in its result, those of a scatter in its updates."""

    window: Shape
    """The dimensions of the slices that are dimensions of the operand."""
    omitted: Shape
    """The operand's dimensions that slices lack, batch dimensions included."""
    operand_batching: Shape
    indices_batching: Shape
    """The corresponding dimensions of the indices."""
    indexed: Shape
    """The operand's dimension for each entry of an index vector."""
    vector: int
    """The dimension of the indices along which index vectors lie."""

    def kept(self, rank: int) -> list[int]:
        """The dimensions of the operand, of rank `rank`, that slices have."""
        return [d for d in range(rank) if d not in self.omitted]

    def batch(self, rank: int) -> list[int]:
        """The dimensions of the slices, a tensor of rank `rank`, that are dimensions of
        the indices."""
        return [d for d in range(rank) if d not in self.window]

    @property
    def batching(self) -> dict[int, int]:
        """For each batch dimension of the operand, the dimension of the indices,
        numbered without the dimension of the index vectors."""
        return {
            dim: other - (other > self.vector)
            for dim, other in zip(
                self.operand_batching, self.indices_batching, strict=True
            )
        }


def index_shape(indices: Shape, index_vector_dim: int) -> Shape:
    """The shape of the indices without the dimension of the index vectors."""
    return (*indices[:index_vector_dim], *indices[index_vector_dim + 1 :])


def check_index_vector(indices: Shape, index_vector_dim: int, length: int) -> None:
    if not 0 <= index_vector_dim <= len(indices):
        raise VerifyException(
            f"index_vector_dim is {index_vector_dim}, expected 0 to {len(indices)}"
        )
    size = (*indices, 1)[index_vector_dim]
    if size != length:
        raise VerifyException(
            f"index vectors have {size} entries, expected {length}: one for each "
            "operand dimension that is indexed"
        )


def are_entries(joined: ConcatenateOp, vector_dim: int) -> bool:
    """Whether each operand of a concatenation is one entry of the index vectors."""
    return (
        not joined.outs
        and joined.dimension.value.data == vector_dim
        and all(value_shape(entry)[vector_dim] == 1 for entry in joined.inputs)
    )


def _same_batch(
    types: PartialTypes, indices: int, slices: int, numbers: DimensionNumbers
) -> None:
    """States that slices and index vectors have equal batch sizes."""
    of_indices = [d for d in range(types.rank(indices)) if d != numbers.vector]
    of_slices = numbers.batch(types.rank(slices))
    types.check_rank(slices, len(of_indices) + len(numbers.window))
    for pair in zip(of_indices, of_slices, strict=True):
        types.same_size((indices, pair[0]), (slices, pair[1]))


@irdl_op_definition
class GatherOp(TensorOp):
    """Slices of the first operand, at starts from the second operand (clamped)."""

    name = "tgraph.gather"
    ARITY: ClassVar = 2
    PATTERN: ClassVar = Pattern.INJECTIVE

    SIZED: ClassVar = ("slice_sizes",)

    DEFAULTS: ClassVar = {
        "operand_batching_dims": ints(()),
        "start_indices_batching_dims": ints(()),
    }

    offset_dims = prop_def(DenseArrayBase.constr(i64))
    collapsed_slice_dims = prop_def(DenseArrayBase.constr(i64))
    operand_batching_dims = prop_def(DenseArrayBase.constr(i64))
    start_indices_batching_dims = prop_def(DenseArrayBase.constr(i64))
    start_index_map = prop_def(DenseArrayBase.constr(i64))
    index_vector_dim = prop_def(IntegerAttr)
    slice_sizes = prop_def(DenseArrayBase.constr(i64))

    @property
    def dimension_numbers(self) -> DimensionNumbers:
        batching = self.operand_batching_dims.get_values()
        return DimensionNumbers(
            self.offset_dims.get_values(),
            (*self.collapsed_slice_dims.get_values(), *batching),
            batching,
            self.start_indices_batching_dims.get_values(),
            self.start_index_map.get_values(),
            self.index_vector_dim.value.data,
        )

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        operand, indices = (shape_of(type) for type in inputs)
        sizes = self.sizes_in("slice_sizes")
        numbers = self.dimension_numbers
        dropped = numbers.omitted
        check_length("slice_sizes", sizes, len(operand))
        check_dimensions("start_index_map", numbers.indexed, len(operand))
        check_dimensions("collapsed and batching dims", dropped, len(operand))
        check_index_vector(indices, numbers.vector, len(numbers.indexed))
        for d, (slice_size, size) in enumerate(zip(sizes, operand, strict=True)):
            is_within = not exceeds(0, slice_size) and not exceeds(slice_size, size)
            if not is_within or (d in dropped and slice_size != 1):
                raise VerifyException(
                    f"slice has size {slice_size} along dimension {d} of size {size}, "
                    f"expected {'1' if d in dropped else f'at most {size}'}"
                )
        window = [sizes[d] for d in numbers.kept(len(operand))]
        batch = index_shape(indices, numbers.vector)
        rank = len(window) + len(batch)
        check_length("offset_dims", numbers.window, len(window))
        check_dimensions("offset_dims", numbers.window, rank)
        from_window, from_batch = iter(window), iter(batch)
        shape = [
            next(from_window if d in numbers.window else from_batch)
            for d in range(rank)
        ]
        return [with_shape(inputs[0], shape)]

    def refine(self, types: PartialTypes) -> None:
        types.same_element(0, 2)
        operand, indices, result = range(3)
        numbers = self.dimension_numbers
        sizes = self.sizes_in("slice_sizes")
        check_length("slice_sizes", sizes, types.rank(operand))
        window = [sizes[d] for d in numbers.kept(len(sizes))]
        check_length("offset_dims", numbers.window, len(window))
        check_dimensions("offset_dims", numbers.window, types.rank(result))
        for dim, size in zip(sorted(numbers.window), window, strict=True):
            types.set_size((result, dim), size)
        _same_batch(types, indices, result, numbers)


@irdl_op_definition
class ScatterOp(TensorOp):
    """The first operand, combined with slices of the third at indices from the second.

    The operands are operand, indices, and updates. `kind` is the combiner: "replace",
    or a reduction. Slices that are not completely within the operand are ignored.
    """

    name = "tgraph.scatter"
    ARITY: ClassVar = 3
    PATTERN: ClassVar = Pattern.REDUCTION

    DEFAULTS: ClassVar = {
        "input_batching_dims": ints(()),
        "scatter_indices_batching_dims": ints(()),
    }

    kind = prop_def(StringAttr)
    update_window_dims = prop_def(DenseArrayBase.constr(i64))
    inserted_window_dims = prop_def(DenseArrayBase.constr(i64))
    input_batching_dims = prop_def(DenseArrayBase.constr(i64))
    scatter_indices_batching_dims = prop_def(DenseArrayBase.constr(i64))
    scatter_dims_to_operand_dims = prop_def(DenseArrayBase.constr(i64))
    index_vector_dim = prop_def(IntegerAttr)

    @property
    def dimension_numbers(self) -> DimensionNumbers:
        batching = self.input_batching_dims.get_values()
        return DimensionNumbers(
            self.update_window_dims.get_values(),
            (*self.inserted_window_dims.get_values(), *batching),
            batching,
            self.scatter_indices_batching_dims.get_values(),
            self.scatter_dims_to_operand_dims.get_values(),
            self.index_vector_dim.value.data,
        )

    def elements_computed(self) -> Sequence[Attribute]:
        moves = self.kind.data == "replace"
        return () if moves else [self.declared[0].element_type]

    def overwritable(self) -> Sequence[int]:
        return (0,)

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        check_kind(self.kind, ("replace", *KINDS))
        if inputs[2].element_type != inputs[0].element_type:
            check_same_element(inputs, 2)
        operand, indices, updates = (shape_of(type) for type in inputs)
        window, omitted, _, _, indexed, vector_dim = numbers = self.dimension_numbers
        check_dimensions("scatter_dims_to_operand_dims", indexed, len(operand))
        check_index_vector(indices, vector_dim, len(indexed))
        check_dimensions("inserted and batching dims", omitted, len(operand))
        check_dimensions("update_window_dims", window, len(updates))
        check_length("update_window_dims", window, len(operand) - len(omitted))
        batch = index_shape(indices, vector_dim)
        if tuple(updates[d] for d in numbers.batch(len(updates))) != batch:
            raise VerifyException(
                f"operand 2 has type {bare(inputs[2])}, expected the sizes "
                f"{list(batch)} in its dimensions that are not update_window_dims, "
                "like the indices"
            )
        return [inputs[0]]

    def refine(self, types: PartialTypes) -> None:
        operand, indices, updates, result = range(4)
        types.same_element(operand, updates, result)
        types.same_shape(operand, result)
        _same_batch(types, indices, updates, self.dimension_numbers)


def check_starts(operand: AnyTensor, starts: Sequence[AnyTensor]) -> None:
    """Checks that there is an integer scalar for each dimension of `operand`."""
    check_length("the start indices", starts, operand.get_num_dims())
    for index, type in enumerate(starts):
        if shape_of(type) or not isinstance(type.element_type, IntegerType):
            raise VerifyException(
                f"start index {index} has type {bare(type)}, expected an integer scalar"
            )


@irdl_op_definition
class DynamicSliceOp(TensorOp):
    """A slice of the first operand; the other operands, which are scalars, are its
    start.

    Starts are clamped, so that the slice lies within the operand.
    """

    name = "tgraph.dynamic_slice"
    PATTERN: ClassVar = Pattern.INJECTIVE

    slice_sizes = prop_def(DenseArrayBase.constr(i64))

    @property
    def starts(self) -> Sequence[SSAValue]:
        return self.inputs[1:]

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        sizes = self.slice_sizes.get_values()
        shape = shape_of(inputs[0])
        check_starts(inputs[0], inputs[1:])
        check_length("slice_sizes", sizes, len(shape))
        for dim, (part, size) in enumerate(zip(sizes, shape, strict=True)):
            if part < 0 or exceeds(part, size):
                raise VerifyException(
                    f"slice has size {part} along dimension {dim} of size {size}, "
                    f"expected 0 to {size}"
                )
        return [with_shape(inputs[0], sizes)]

    def refine(self, types: PartialTypes) -> None:
        result = types.values[-1]
        types.same_element(0, result)
        types.check_rank(result, types.rank(0))
        for dim, size in enumerate(self.slice_sizes.get_values()):
            types.set_size((result, dim), size)


@irdl_op_definition
class DynamicUpdateSliceOp(TensorOp):
    """The first operand, with a slice of it replaced by the second operand.

    The other operands, which are scalars, are the start of the slice. They are clamped,
    so that the slice lies within the operand.
    """

    name = "tgraph.dynamic_update_slice"
    PATTERN: ClassVar = Pattern.INJECTIVE

    @property
    def starts(self) -> Sequence[SSAValue]:
        return self.inputs[2:]

    def overwritable(self) -> Sequence[int]:
        return (0,)

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        if len(inputs) < 2:
            raise VerifyException(f"has {len(inputs)} inputs, expected 2 or more")
        operand, update, *starts = inputs
        check_same_element(inputs, 1)
        check_starts(operand, starts)
        shapes = shape_of(operand), shape_of(update)
        if len(shapes[0]) != len(shapes[1]) or any(map(exceeds, *shapes[::-1])):
            raise VerifyException(
                f"operand 1 has type {bare(update)}, expected a slice of "
                f"{bare(operand)}"
            )
        return [operand]

    def refine(self, types: PartialTypes) -> None:
        result = types.values[-1]
        types.same_element(0, 1, result)
        types.same_shape(0, result)


INDEXING_OPS = (DynamicSliceOp, DynamicUpdateSliceOp, GatherOp, ScatterOp)
