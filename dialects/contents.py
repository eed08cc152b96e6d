"""What operations consist of, to see whether they have changed.

Whoever kept the contents of an operation compares them with those that it has now, so
nobody has to report changes.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

from xdsl.ir import Operation, SSAValue

Contents: TypeAlias = dict[int, Sequence[Any]]
"""For an operation and each within it: it, what it consists of, and what is within, in
order, but for the names of values. If contents are equal, so is what follows from them:
whether operations are valid, or where values are stored. By `id`, as operations are
hashed in Python. Attributes and types of values never change."""

operands_of: Callable[[Operation], Sequence[SSAValue]] = attrgetter("_operands")
"""What `op.operands` is a view of, which takes five times as long to go through."""

_next_of: Callable[[Operation], Operation | None] = attrgetter("_next_op")
"""`op.next_op`, in half of the time."""


def contents_of(op: Operation) -> Contents:
    """Those of an operation and of all within.

    Raises `VerifyException` where a block is empty, or something is not where it says.
    """
    contents = Contents()
    _add(op, contents, op.next_op is None)
    return contents


def _add(op: Operation, contents: Contents, is_last: bool) -> None:
    own: list[object] = [op, operands_of(op), op.results]
    for named in (op.attributes, op.properties):
        if named:
            own += named
            own += named.values()
    if is_last:
        own += op.successors
    for region in op.regions:
        for block in region.blocks:
            each = block.first_op
            if block.parent is not region or each is None:
                region.verify()
            own += (block, *block.args)
            while each is not None:
                if each.parent is not block:
                    block.verify()
                own.append(each)
                following = _next_of(each)
                _add(each, contents, following is None)
                each = following
        own.append(None)  # which operations are within
    contents[id(op)] = own
