"""What is asked about a block again and again is found once, as long as it is the same.

    with asked_once():                      # around a run of passes
        once(block, storage_of, block)      # computes it
        once(block, storage_of, block)      # compares the block with what it was

MLIR's analysis manager keeps what a pass says it has preserved. Here, passes need not
say anything: what the block and the operation around it consist of is compared
(dialects/contents.py), which takes a tenth of the time of an analysis.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from xdsl.ir import Block

from ..dialects.contents import Contents, contents_of
from ..support.remembering import remembering

MOST = 8
"""Blocks, those that were asked about last: passes try many copies of a program."""

_P = ParamSpec("_P")
_T = TypeVar("_T")

_Answers = dict[object, Any]

_known: ContextVar[dict[Block, tuple[Contents, _Answers]] | None] = ContextVar(
    "_known", default=None
)


def asked_once() -> AbstractContextManager[None]:
    """Within it, `once` keeps what it finds."""
    return remembering(_known)


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
