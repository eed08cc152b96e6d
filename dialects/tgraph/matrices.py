"""Linear algebra: matrix factorizations and triangular solves.

Matrices are the last two dimensions; the others are batches. Results are those of
LAPACK. If LAPACK fails on a matrix, its result is NaN, as in XLA; others in the batch
are not affected.

    %s = tgraph.svd %x {wanted = array<i64: 1>}
        : (tensor<5x3xf32>) -> tensor<3xf32>

With the attribute `wanted`, a factorization returns only these factors. LAPACK then
computes no eigenvectors that are not wanted, and no singular vectors if neither `u` nor
`v^H` is wanted.
"""

from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    BoolAttr,
    ComplexType,
    DenseArrayBase,
    Float32Type,
    Float64Type,
    StringAttr,
    i32,
    i64,
)
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def
from xdsl.utils.exceptions import VerifyException

from ...support.choices import one_of
from ..sizes.dims import is_dynamic
from ..sizes.symbolic import minimum
from .base import AnyTensor, Shape, TensorOp, bare, shape_of, with_element, with_shape
from .elements import real_element

YES, NO = BoolAttr.from_bool(True), BoolAttr.from_bool(False)
TRANSPOSES = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


class MatrixOp(TensorOp):
    """An operation on matrices of f32 or f64, or of complex numbers of these."""

    FACTORS: ClassVar = 1

    @property
    def numbers(self) -> Sequence[int]:
        """The number of the factor that each result is."""
        return range(self.FACTORS)

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        for index, type in enumerate(inputs):
            element = real_element(type.element_type)
            if not isinstance(element, Float32Type | Float64Type):
                raise VerifyException(
                    f"operand {index} has type {bare(type)}, expected elements of "
                    "type f32, f64, or complex numbers of these"
                )
        if inputs[0].get_num_dims() < 2:
            raise VerifyException(
                f"operand 0 has type {bare(inputs[0])}, expected two dimensions or more"
            )
        return self.factors(*inputs)

    def factors(self, x: AnyTensor, *others: AnyTensor) -> Sequence[AnyTensor]:
        """The shape rule for matrices."""
        raise NotImplementedError


class FactorizationOp(MatrixOp):
    """An operation with several factors.

    `wanted` has the ascending numbers of the factors that are results; default: all.
    """

    RESULTS: ClassVar = None

    wanted = opt_prop_def(DenseArrayBase.constr(i64))

    @property
    def numbers(self) -> Sequence[int]:
        return super().numbers if self.wanted is None else self.wanted.get_values()

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        numbers, known = list(self.numbers), list(range(self.FACTORS))
        if not numbers or numbers != sorted({*numbers}.intersection(known)):
            raise VerifyException(
                f"wanted has {numbers}, expected some of {known}, in this order"
            )
        factors = super().result_types_of(inputs)
        return [factors[number] for number in numbers]


def _square(x: AnyTensor) -> AnyTensor:
    if x.get_shape()[-1] != x.get_shape()[-2]:
        raise VerifyException(f"operand 0 has type {bare(x)}, expected square matrices")
    return x


def _vectors(x: AnyTensor) -> AnyTensor:
    """The type of the diagonal: one number per row, or column if there are fewer."""
    *batch, rows, columns = shape_of(x)
    return with_shape(x, cast(Shape, (*batch, minimum(rows, columns))))


def _expect(index: int, type: AnyTensor, expected: AnyTensor) -> None:
    if shape_of(type) != shape_of(expected) or type.element_type != (
        expected.element_type
    ):
        raise VerifyException(
            f"operand {index} has type {bare(type)}, expected {bare(expected)}"
        )


@irdl_op_definition
class CholeskyOp(MatrixOp):
    """The triangular factor `l` of Hermitian matrices `l l^H`, or `u` of `u^H u`.

    Reads only the triangle that it computes. The other triangle of the result is zero.
    """

    name = "tgraph.cholesky"
    ARITY: ClassVar = 1
    DEFAULTS: ClassVar = {"lower": YES}

    lower = prop_def(BoolAttr)

    def factors(self, x: AnyTensor, *others: AnyTensor) -> Sequence[AnyTensor]:
        return [_square(x)]


@irdl_op_definition
class TriangularSolveOp(MatrixOp):
    """`x` in `op(a) x = b`, or in `x op(a) = b`, for triangular `a`, as in StableHLO.

    Reads only the triangle selected by `lower`, and takes its diagonal to be ones if
    `unit_diagonal`.
    """

    name = "tgraph.triangular_solve"
    ARITY: ClassVar = 2
    DEFAULTS: ClassVar = {
        "left_side": YES,
        "lower": YES,
        "unit_diagonal": NO,
        "transpose_a": StringAttr("NO_TRANSPOSE"),
    }

    left_side = prop_def(BoolAttr)
    lower = prop_def(BoolAttr)
    unit_diagonal = prop_def(BoolAttr)
    transpose_a = prop_def(StringAttr)

    def factors(self, x: AnyTensor, *others: AnyTensor) -> Sequence[AnyTensor]:
        (b,) = others
        if self.transpose_a.data not in TRANSPOSES:
            chosen = one_of(self.transpose_a.data, TRANSPOSES)
            raise VerifyException(f"transpose_a is {chosen}")
        *batch, rows, columns = shape_of(b) if b.get_num_dims() > 1 else (0, 0)
        size = rows if self.left_side.value.data else columns
        _expect(0, _square(x), with_shape(b, (*batch, size, size)))
        return [b]


@irdl_op_definition
class LuOp(FactorizationOp):
    """The factors `l` and `u` of `p l u` in one matrix, without the unit diagonal of
    `l`; the row that each row was exchanged with, counted from 1; and the rows of the
    operand in the order of `l u`, counted from 0."""

    name = "tgraph.lu"
    ARITY: ClassVar = 1
    FACTORS: ClassVar = 3

    def factors(self, x: AnyTensor, *others: AnyTensor) -> Sequence[AnyTensor]:
        order = with_shape(x, shape_of(x)[:-1])
        return [x, with_element(_vectors(x), i32), with_element(order, i32)]


@irdl_op_definition
class QrOp(FactorizationOp):
    """The factor `r` of `q r`, with the Householder vectors of `q` below the diagonal;
    and their scales."""

    name = "tgraph.qr"
    ARITY: ClassVar = 1
    FACTORS: ClassVar = 2

    def factors(self, x: AnyTensor, *others: AnyTensor) -> Sequence[AnyTensor]:
        return [x, _vectors(x)]


@irdl_op_definition
class HouseholderProductOp(MatrixOp):
    """The first columns of a product of Householder reflections: the factor `q` for the
    results of `tgraph.qr`."""

    name = "tgraph.householder_product"
    ARITY: ClassVar = 2

    def factors(self, x: AnyTensor, *others: AnyTensor) -> Sequence[AnyTensor]:
        (scales,) = others
        *batch, rows, columns = x.get_shape()
        counts = scales.get_shape()[-1:] or (0,)
        if rows < columns or counts[0] > columns:
            raise VerifyException(
                f"operands have types {bare(x)} and {bare(scales)}, expected no more "
                "scales than columns, and no more columns than rows"
            )
        _expect(1, scales, with_shape(x, (*batch, *counts)))
        return [x]


@irdl_op_definition
class EighOp(FactorizationOp):
    """The eigenvectors of Hermitian matrices, in columns, and the eigenvalues, in
    ascending order. Reads only the triangle selected by `lower`."""

    name = "tgraph.eigh"
    ARITY: ClassVar = 1
    FACTORS: ClassVar = 2
    DEFAULTS: ClassVar = {"lower": YES}

    lower = prop_def(BoolAttr)

    def factors(self, x: AnyTensor, *others: AnyTensor) -> Sequence[AnyTensor]:
        return [_square(x), with_element(_vectors(x), real_element(x.element_type))]


@irdl_op_definition
class EigOp(FactorizationOp):
    """The eigenvalues of matrices, and the left and the right eigenvectors, in columns;
    all complex."""

    name = "tgraph.eig"
    ARITY: ClassVar = 1
    FACTORS: ClassVar = 3

    def factors(self, x: AnyTensor, *others: AnyTensor) -> Sequence[AnyTensor]:
        part = cast(Float32Type | Float64Type, real_element(x.element_type))
        element = ComplexType(part)
        vectors = with_element(_square(x), element)
        return [_vectors(vectors), vectors, vectors]


@irdl_op_definition
class HessenbergOp(FactorizationOp):
    """The factor `h` of `q h q^H`, which is zero below the diagonal's lower neighbor,
    with the Householder vectors of `q` in place of these zeros; and their scales."""

    name = "tgraph.hessenberg"
    ARITY: ClassVar = 1
    FACTORS: ClassVar = 2

    def factors(self, x: AnyTensor, *others: AnyTensor) -> Sequence[AnyTensor]:
        *batch, size, _ = shape_of(_square(x))
        if is_dynamic(size) or size < 1:
            raise VerifyException(
                f"operand 0 has type {bare(x)}, expected a static size of 1 or more"
            )
        return [x, with_shape(x, (*batch, size - 1))]


@irdl_op_definition
class SchurOp(FactorizationOp):
    """The factors `t` and `z` of `z t z^H`, with a unitary `z` and an upper triangular
    `t`. For a pair of complex eigenvalues of a real matrix, `t` has a block of two
    rows on the diagonal."""

    name = "tgraph.schur"
    ARITY: ClassVar = 1
    FACTORS: ClassVar = 2

    def factors(self, x: AnyTensor, *others: AnyTensor) -> Sequence[AnyTensor]:
        return [_square(x), x]


@irdl_op_definition
class SvdOp(FactorizationOp):
    """`u`, `s` and `v^H` of the singular value decomposition `u s v^H`, with `s` in
    descending order; `u` and `v` are square if `full_matrices`."""

    name = "tgraph.svd"
    ARITY: ClassVar = 1
    FACTORS: ClassVar = 3
    DEFAULTS: ClassVar = {"full_matrices": NO}

    full_matrices = prop_def(BoolAttr)

    def factors(self, x: AnyTensor, *others: AnyTensor) -> Sequence[AnyTensor]:
        *batch, rows, columns = shape_of(x)
        values = _vectors(x)
        fewer: Shape = shape_of(values)[-1:]
        left, right = (
            ((rows,), (columns,)) if self.full_matrices.value.data else (fewer, fewer)
        )
        return [
            with_shape(x, (*batch, rows, *left)),
            with_element(values, real_element(x.element_type)),
            with_shape(x, (*batch, *right, columns)),
        ]


MATRIX_OPS = (
    CholeskyOp,
    EigOp,
    EighOp,
    HessenbergOp,
    HouseholderProductOp,
    LuOp,
    QrOp,
    SchurOp,
    SvdOp,
    TriangularSolveOp,
)
