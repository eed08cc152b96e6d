"""What is asked about a block again and again is found once, as long as it is the same.

    with asked_once():                      # around a run of passes
        once(block, storage_of, block)      # computes it
        once(block, storage_of, block)      # compares the block with what it was

MLIR's analysis manager keeps what a pass says it has preserved. Here, passes need not
say anything: what the block and the operation around it consist of is compared
(dialects/contents.py), which takes a tenth of the time of an analysis.

    once_by(key, search)                    # computes it, and then gives it for the key

is for answers that follow from plain values. What a deadline cut short is not kept.
"""

from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from xdsl.ir import Block

from ..dialects.contents import Contents, contents_of
from ..planning import deadline
from ..support.remembering import remembering

MOST = 8
"""Blocks, those that were asked about last: passes try many copies of a program."""

_P = ParamSpec("_P")
_T = TypeVar("_T")

_Answers = dict[object, Any]

_known: ContextVar[dict[Block, tuple[Contents, _Answers]] | None] = ContextVar(
    "_known", default=None
)


_by_key: ContextVar[dict[Hashable, Any] | None] = ContextVar("_by_key", default=None)


@contextmanager
def asked_once() -> Generator[None]:
    """Within it, `once` and `once_by` keep what they find."""
    with remembering(_known), remembering(_by_key):
        yield


def once_by(key: Hashable, ask: Callable[[], _T]) -> _T:
    """`ask()`, which follows from the key. Nobody may change the answer."""
    known = _by_key.get()
    if known is None:
        return ask()
    if key in known:
        return known[key]
    answer = ask()
    if not deadline.passed():
        known[key] = answer
    return answer


def once(
    block: Block, ask: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    """`ask(*args, **kwargs)`, which follows from a block and the operation around it.
    Nobody may change the answer."""
    known, around = _known.get(), block.parent_op()
    if known is None or around is None:
        return ask(*args, **kwargs)
    contents = contents_of(around)
    before, answers = known.pop(block, (None, _Answers()))
    if contents != before:
        answers = _Answers()
    known[block] = contents, answers
    if len(known) > MOST:
        del known[next(iter(known))]
    key = ask, args, *kwargs.items()
    if key not in answers:
        answers[key] = ask(*args, **kwargs)
    return answers[key]
