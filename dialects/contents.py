"""Snapshots of operations, which show whether they have changed.

A cache keeps the contents of an operation and compares them with its current contents,
so nobody has to report changes.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar

from xdsl.ir import Operation, SSAValue

_OperationT = TypeVar("_OperationT", bound=Operation)
_T = TypeVar("_T")

Contents: TypeAlias = dict[int, Sequence[Any]]
"""Maps the `id` of an operation, and of each operation nested in it, to the operation,
its operands, results, attributes, and nested blocks and operations in order; names of
values are left out. If contents are equal, so is everything derived from them, such as
whether operations are valid, or where values are stored. Keys are ids because hashing
an operation runs Python code. Attributes and types of values never change."""

operands_of: Callable[[Operation], Sequence[SSAValue]] = attrgetter("_operands")
"""The tuple behind `op.operands`, which takes five times as long to iterate over."""

_next_of: Callable[[Operation], Operation | None] = attrgetter("_next_op")
"""`op.next_op`, in half of the time."""


def contents_of(op: Operation) -> Contents:
    """Returns the contents of `op` and of every operation nested in it.

    Raises `VerifyException` for an empty block, or a block or operation whose parent is
    not the one that holds it.
    """
    contents = Contents()
    _add(op, contents, op.next_op is None)
    return contents


def cached_by_contents(ask: Callable[[_OperationT], _T]) -> Callable[[_OperationT], _T]:
    """A method of an operation whose answer depends only on the operation's contents.
    The operation keeps the answer until its contents change."""

    name = f"_{ask.__name__}"  # of the attribute that keeps the contents and the answer

    @wraps(ask)
    def answer(op: _OperationT) -> _T:
        contents = contents_of(op)
        known: tuple[Contents, _T] | None = getattr(op, name, None)
        if known is None or known[0] != contents:
            known = contents, ask(op)
            setattr(op, name, known)
        return known[1]

    return answer


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
        own.append(None)  # ends the region
    contents[id(op)] = own
