"""Converts linear algebra: StableHLO's operations, and JAX's calls of LAPACK.

The last result of a routine is a status for each matrix. For factorizations it is
always 0 here, because the operations return NaN for a matrix on which LAPACK fails, as
JAX does in that case.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from xdsl.dialects.builtin import ComplexType, IntegerAttr, StringAttr
from xdsl.ir import Attribute

from ...dialects.sizes.dims import is_dynamic
from ...dialects.tgraph import elementwise, matrices
from ...dialects.tgraph.base import (
    TensorOp,
    shape_of,
    tensor_type_of,
    with_element,
    with_shape,
)
from ...dialects.tgraph.matrices import NO, YES
from ..builder import TensorBuilder
from ..linear_algebra import reflected, tridiagonal_solved
from ..unsupported import Unsupported
from .conversion import Conversion, Converter, Values, type_of

ROUTINE = r"lapack_[sdcz](\w+)_ffi"
"""Matches custom calls of LAPACK's routines."""

_TRANSPOSES = dict(zip("NTC", matrices.TRANSPOSES, strict=True))


def _cholesky(c: Conversion) -> Values:
    lower = c.attribute("lower") or NO
    return (c.emit(matrices.CholeskyOp, c.inputs, lower=lower),)


def _triangular_solve(c: Conversion) -> Values:
    transpose = c.text("transpose_a")
    flags = {n: c.attribute(n) or NO for n in ("left_side", "lower", "unit_diagonal")}
    return _solved(c, transpose_a=StringAttr(transpose or "NO_TRANSPOSE"), **flags)


def _solved(c: Conversion, **properties: Attribute) -> Values:
    _, b = c.inputs
    return (c.emit(matrices.TriangularSolveOp, c.inputs, type_of(b), **properties),)


# LAPACK's routines


def _option(c: Conversion, name: str) -> str:
    """An option of the routine, as a letter: `U` for the upper triangle."""
    number = c.option(name)
    return chr(number.value.data) if isinstance(number, IntegerAttr) else ""


def _flag(c: Conversion, name: str, letter: str) -> Attribute:
    return YES if _option(c, name) == letter else NO


def _succeeded(c: Conversion) -> Values:
    """The status result: 0 for each matrix."""
    return (c.number(0, tensor_type_of(c.op.results[-1].type)),)


def _factors(
    c: Conversion, op_type: type[TensorOp], numbers: Sequence[int], **flags: Attribute
) -> Values:
    """Emits the factorization with the types of results `numbers` of the routine."""
    types = [c.op.results[number].type for number in numbers]
    return c.emit_all(op_type, c.inputs, types, **flags)


def _potrf(c: Conversion) -> Values:
    lower = _flag(c, "uplo", "L")
    return (*_factors(c, matrices.CholeskyOp, [0], lower=lower), *_succeeded(c))


def _trsm(c: Conversion) -> Values:
    return _solved(
        c,
        left_side=_flag(c, "side", "L"),
        lower=_flag(c, "uplo", "L"),
        unit_diagonal=_flag(c, "diag", "U"),
        transpose_a=StringAttr(_TRANSPOSES[_option(c, "trans_x")]),
    )


def _getrf(c: Conversion) -> Values:
    packed, pivots = (tensor_type_of(c.op.results[n].type) for n in (0, 1))
    order = with_shape(pivots, shape_of(packed)[:-1])
    found = c.emit_all(matrices.LuOp, c.inputs, [packed, pivots, order])
    return (*found[:2], *_succeeded(c))


def _geqrf(c: Conversion) -> Values:
    return _factors(c, matrices.QrOp, [0, 1])


def _orgqr(c: Conversion) -> Values:
    return _factors(c, matrices.HouseholderProductOp, [0])


def _ormqr(c: Conversion) -> Values:
    left, adjoint = (c.option(name) == YES for name in ("left", "transpose"))
    b = TensorBuilder(c.into, c.op.location)
    return (reflected(b, *c.inputs, left=left, adjoint=adjoint),)


def _syevd(c: Conversion) -> Values:
    lower = _flag(c, "uplo", "L")
    return (*_factors(c, matrices.EighOp, [0, 1], lower=lower), *_succeeded(c))


def _gesdd(c: Conversion) -> Values:
    """The first result, the operand as the routine overwrites it, is unused."""
    rows, columns = shape_of(type_of(c.inputs[0]))[-2:]
    u, vh = (shape_of(tensor_type_of(c.op.results[n].type)) for n in (2, 3))
    full = YES if (u[-1], vh[-2]) == (rows, columns) else NO
    u, s, vh = _factors(c, matrices.SvdOp, [2, 1, 3], full_matrices=full)
    return (c.inputs[0], s, u, vh, *_succeeded(c))


def _geev(c: Conversion) -> Values:
    """For real matrices, eigenvalues have separate real and imaginary parts."""
    *values, left, right = (tensor_type_of(r.type) for r in c.op.results[:-1])
    element = cast(ComplexType, left.element_type)
    found, *vectors = c.emit_all(
        matrices.EigOp, c.inputs, [with_element(values[0], element), left, right]
    )
    parts = (found,)
    if len(values) == 2:
        kinds = (elementwise.RealOp, elementwise.ImagOp)
        parts = tuple(c.emit(kind, (found,), values[0]) for kind in kinds)
    return (*parts, *vectors, *_succeeded(c))


def _gehrd(c: Conversion) -> Values:
    return (*_factors(c, matrices.HessenbergOp, [0, 1]), *_succeeded(c))


def _gees(c: Conversion) -> Values:
    """JAX does not read the eigenvalues, nor the number of selected ones."""
    unused = c.op.results[2:-1]
    if any(result.uses for result in unused):
        raise Unsupported("with its eigenvalues")
    found = _factors(c, matrices.SchurOp, [0, 1])
    return (*found, *(c.inputs[0] for _ in unused), *_succeeded(c))


def _gtsv(c: Conversion) -> Values:
    """The first three results, the overwritten diagonals, are unused."""
    if any(map(is_dynamic, shape_of(type_of(c.inputs[-1])))):
        raise Unsupported("with symbolic sizes")
    b = TensorBuilder(c.into, c.op.location)
    solution, sound = tridiagonal_solved(b, *c.inputs)
    failed = b.apply(elementwise.NotOp, sound)
    status = b.convert(failed, tensor_type_of(c.op.results[-1].type).element_type)
    return (*c.inputs[:3], solution, status)


class Routine(NamedTuple):
    """How calls of a routine are converted.

    results: the numbers of results that calls may have. For real matrices, some
        routines return the real and the imaginary parts of eigenvalues.
    """

    convert: Converter
    operands: int
    results: Sequence[int]

    def converted(self, c: Conversion) -> Values:
        counts = len(c.op.operands), len(c.op.results)
        if counts[0] != self.operands or counts[1] not in self.results:
            results = " or ".join(map(str, self.results))
            raise Unsupported(
                f": operands and results number {counts[0]} and {counts[1]}, expected "
                f"{self.operands} and {results}"
            )
        return self.convert(c)


ROUTINES: Mapping[str, Routine] = {
    "gees": Routine(_gees, 1, (5, 6)),
    "geev": Routine(_geev, 1, (4, 5)),
    "gehrd": Routine(_gehrd, 1, (3,)),
    "geqrf": Routine(_geqrf, 1, (2,)),
    "gesdd": Routine(_gesdd, 1, (5,)),
    "getrf": Routine(_getrf, 1, (3,)),
    "gtsv": Routine(_gtsv, 4, (5,)),
    "heevd": Routine(_syevd, 1, (3,)),
    "orgqr": Routine(_orgqr, 2, (1,)),
    "ormqr": Routine(_ormqr, 3, (1,)),
    "potrf": Routine(_potrf, 1, (2,)),
    "syevd": Routine(_syevd, 1, (3,)),
    "trsm": Routine(_trsm, 2, (1,)),
    "ungqr": Routine(_orgqr, 2, (1,)),
    "unmqr": Routine(_ormqr, 3, (1,)),
}

CONVERSIONS: Mapping[str, Converter] = {
    "stablehlo.cholesky": _cholesky,
    "stablehlo.triangular_solve": _triangular_solve,
}
