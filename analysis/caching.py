"""Caches the answers about a block for as long as the block stays the same.

    with caching():                      # around a run of passes
        cached(block, storage_of, block)      # computes it
        cached(block, storage_of, block)      # cached, if the block has not changed

MLIR's analysis manager keeps the analyses that a pass declares as preserved. Here,
passes declare nothing: the contents of the block and of its parent operation are
compared with those at the time of the answer (dialects/contents.py), which takes a
tenth of the time of an analysis.

    cached_by(key, search)                    # computes it once for the key

is for answers that follow from plain values. Answers that a deadline cut short are not
kept.
"""

from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from xdsl.ir import Block

from ..dialects.contents import Contents, contents_of
from ..planning import deadline
from ..support.memoization import memoized_within

MOST = 8
"""The number of blocks in the cache, which drops the least recently used one: passes
try many copies of a program."""

_P = ParamSpec("_P")
_T = TypeVar("_T")

_Answers = dict[object, Any]

_known: ContextVar[dict[Block, tuple[Contents, _Answers]] | None] = ContextVar(
    "_known", default=None
)


_by_key: ContextVar[dict[Hashable, Any] | None] = ContextVar("_by_key", default=None)


@contextmanager
def caching() -> Generator[None]:
    """Within the block, `cached` and `cached_by` cache their answers."""
    with memoized_within(_known), memoized_within(_by_key):
        yield


def cached_by(key: Hashable, ask: Callable[[], _T]) -> _T:
    """Returns `ask()`, which must depend only on `key`, and must not be modified."""
    known = _by_key.get()
    if known is None:
        return ask()
    if key in known:
        return known[key]
    answer = ask()
    if not deadline.passed():
        known[key] = answer
    return answer


def cached(
    block: Block, ask: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    """Returns `ask(*args, **kwargs)`, which must depend only on a block and its parent
    operation, and on the arguments. The answer must not be modified."""
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
