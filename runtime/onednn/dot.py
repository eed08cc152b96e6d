"""`dot_general` as oneDNN's matmul, whatever memory the operands lie in."""

from collections.abc import Callable, Sequence
from functools import partial

from tensorplan.dialects.tgraph.reducing import DotGeneralOp
from tensorplan.runtime.dtypes import Array
from tensorplan.runtime.kernels.base import Call, try_reshape
from tensorplan.runtime.kernels.dot import matrices
from tensorplan.runtime.onednn.epilogue import Epilogue
from tensorplan.runtime.onednn.library import MAX_DIMS, Refused, library
from tensorplan.runtime.onednn.primitives import (
    SOURCE,
    TARGET,
    WEIGHTS,
    compiled,
    describe,
)
from tensorplan.runtime.pool import Scratch


def dot(
    op: DotGeneralOp,
    inputs: Sequence[Array],
    out: Array,
    epilogue: Epilogue,
    scratch: Scratch,
) -> list[Callable[[], object]]:
    """Raises `Refused` where oneDNN has only its reference."""
    lhs, made_lhs = matrices(op, 0, inputs[0], scratch)
    rhs, made_rhs = matrices(op, 1, inputs[1], scratch)
    shape = (*lhs.shape[:-1], rhs.shape[-1])
    target = try_reshape(out, shape)
    if target is None or len(shape) > MAX_DIMS:
        raise Refused
    attributes = epilogue.attributes(lambda x: try_reshape(x, shape))
    lib = library()
    made = attributes.made()
    descriptions = [describe(x) for x in (lhs, rhs, target)]
    source, weights, result = (d.value for d in descriptions)
    name = "matmul_primitive_desc_create"
    description = lib.make(
        *("primitive_desc", name, lib.engine),
        *(source, weights, None, result, made.value),
    )
    arrays = {SOURCE: lhs, WEIGHTS: rhs, TARGET: target}
    before = [_bound(call) for call in (*made_lhs, *made_rhs)]
    return [*before, *compiled(description, arrays, attributes, scratch)]


def _bound(call: Call) -> Callable[[], object]:
    function, arguments = call
    return partial(function, *arguments)
