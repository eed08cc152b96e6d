"""Operations that read or write at indices.

Attributes and semantics are those of StableHLO. `gather` and `scatter` take an operand
and a tensor of indices. An index vector lies along `index_vector_dim` of the indices,
or is a single element if `index_vector_dim` is their rank.
"""

from collections.abc import Sequence
from typing import ClassVar

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
    types: PartialTypes,
    indices: int,
    index_vector_dim: IntegerAttr,
    slices: int,
    window_dims: Sequence[int],
) -> None:
    """States that slices and index vectors have equal batch sizes."""
    vector_dim = index_vector_dim.value.data
    of_indices = [d for d in range(types.rank(indices)) if d != vector_dim]
    of_slices = [d for d in range(types.rank(slices)) if d not in window_dims]
    types.check_rank(slices, len(of_indices) + len(window_dims))
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

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        operand, indices = (shape_of(type) for type in inputs)
        sizes = self.sizes_in("slice_sizes")
        start_map = self.start_index_map.get_values()
        dropped = (
            *self.collapsed_slice_dims.get_values(),
            *self.operand_batching_dims.get_values(),
        )
        vector_dim = self.index_vector_dim.value.data
        check_length("slice_sizes", sizes, len(operand))
        check_dimensions("start_index_map", start_map, len(operand))
        check_dimensions("collapsed and batching dims", dropped, len(operand))
        check_index_vector(indices, vector_dim, len(start_map))
        for d, (slice_size, size) in enumerate(zip(sizes, operand, strict=True)):
            is_within = not exceeds(0, slice_size) and not exceeds(slice_size, size)
            if not is_within or (d in dropped and slice_size != 1):
                raise VerifyException(
                    f"slice has size {slice_size} along dimension {d} of size {size}, "
                    f"expected {'1' if d in dropped else f'at most {size}'}"
                )
        window = [size for d, size in enumerate(sizes) if d not in dropped]
        batch = index_shape(indices, vector_dim)
        offset_dims = self.offset_dims.get_values()
        rank = len(window) + len(batch)
        check_length("offset_dims", offset_dims, len(window))
        check_dimensions("offset_dims", offset_dims, rank)
        from_window, from_batch = iter(window), iter(batch)
        shape = [
            next(from_window if d in offset_dims else from_batch) for d in range(rank)
        ]
        return [with_shape(inputs[0], shape)]

    def refine(self, types: PartialTypes) -> None:
        types.same_element(0, 2)
        operand, indices, result = range(3)
        dropped = (
            *self.collapsed_slice_dims.get_values(),
            *self.operand_batching_dims.get_values(),
        )
        sizes = self.sizes_in("slice_sizes")
        check_length("slice_sizes", sizes, types.rank(operand))
        offset_dims = self.offset_dims.get_values()
        window = [size for d, size in enumerate(sizes) if d not in dropped]
        check_length("offset_dims", offset_dims, len(window))
        check_dimensions("offset_dims", offset_dims, types.rank(result))
        for dim, size in zip(sorted(offset_dims), window, strict=True):
            types.set_size((result, dim), size)
        _same_batch(types, indices, self.index_vector_dim, result, offset_dims)


@irdl_op_definition
class ScatterOp(TensorOp):
    """The first operand, combined with slices of the third at indices from the second.

    The operands are operand, indices, and updates. `kind` is the combiner: "replace",
    or a reduction. Slices that are not completely within the operand are ignored.
    """

    name = "tgraph.scatter"
    ARITY: ClassVar = 3

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
        to_operand = self.scatter_dims_to_operand_dims.get_values()
        vector_dim = self.index_vector_dim.value.data
        check_dimensions("scatter_dims_to_operand_dims", to_operand, len(operand))
        check_index_vector(indices, vector_dim, len(to_operand))
        dropped = (
            *self.inserted_window_dims.get_values(),
            *self.input_batching_dims.get_values(),
        )
        check_dimensions("inserted and batching dims", dropped, len(operand))
        window_dims = self.update_window_dims.get_values()
        check_dimensions("update_window_dims", window_dims, len(updates))
        check_length("update_window_dims", window_dims, len(operand) - len(dropped))
        batch = [size for d, size in enumerate(updates) if d not in window_dims]
        if tuple(batch) != index_shape(indices, vector_dim):
            raise VerifyException(
                f"operand 2 has type {bare(inputs[2])}, expected the sizes "
                f"{list(index_shape(indices, vector_dim))} in its dimensions that are "
                "not update_window_dims, like the indices"
            )
        return [inputs[0]]

    def refine(self, types: PartialTypes) -> None:
        operand, indices, updates, result = range(4)
        types.same_element(operand, updates, result)
        types.same_shape(operand, result)
        window_dims = self.update_window_dims.get_values()
        _same_batch(types, indices, self.index_vector_dim, updates, window_dims)


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
