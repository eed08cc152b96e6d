"""Finds the parts of concatenations of rows, that is, along the first dimension."""

from collections.abc import Iterator
from typing import NamedTuple

from xdsl.ir import SSAValue

from ....dialects.tgraph.base import is_static, shape_of, tensor_type_of
from ....dialects.tgraph.shaping import ConcatenateOp


class Part(NamedTuple):
    """A value that is some rows of a concatenation."""

    value: SSAValue
    start: int  # the first row

    @property
    def rows(self) -> int:
        return shape_of(tensor_type_of(self.value.type))[0]

    @property
    def end(self) -> int:
        return self.start + self.rows


def parts(joined: ConcatenateOp, start: int = 0) -> Iterator[Part]:
    """Yields the parts of a concatenation of rows, in order, also of nested ones."""
    for value in joined.inputs:
        inner = value.owner
        if isinstance(inner, ConcatenateOp) and is_of_rows(inner):
            yield from parts(inner, start)
        elif Part(value, start).rows:
            yield Part(value, start)
        start = Part(value, start).end


def nested(joined: ConcatenateOp) -> Iterator[ConcatenateOp]:
    """Yields a concatenation of rows, and those that are nested in it."""
    yield joined
    for value in joined.inputs:
        if isinstance(inner := value.owner, ConcatenateOp) and is_of_rows(inner):
            yield from nested(inner)


def is_of_rows(op: ConcatenateOp) -> bool:
    return (
        not op.dimension.value.data
        and not op.outs
        and is_static(tensor_type_of(op.result.type))
    )
