"""Differences between the versions of xDSL that tensorplan works with.

pyproject.toml states the versions; `.ci/run` tests the oldest and the newest. All other
code is written for the newest version. A name that older versions lack or call
otherwise is here, with the version that introduced it, until tensorplan drops those
versions.
"""

from typing import TYPE_CHECKING, TypeAlias

from xdsl.dialects import memref
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.utils.lexer import Span

if TYPE_CHECKING:
    from xdsl.dialects.memref import AssumeAlignmentOp

    AnySpan: TypeAlias = Span[str] | Span[bytes]
else:
    AnySpan = Span  # 0.74: spans of text or of bytes
    # since 0.72; before that, a class without instances
    AssumeAlignmentOp = getattr(memref, "AssumeAlignmentOp", type("Unknown", (), {}))

# 0.69 has these methods under other names.
if TYPE_CHECKING or hasattr(PatternRewriter, "replace"):
    insert, replace = PatternRewriter.insert, PatternRewriter.replace
    erase = PatternRewriter.erase
else:
    insert, replace = PatternRewriter.insert_op, PatternRewriter.replace_op
    erase = PatternRewriter.erase_op

__all__ = ["AnySpan", "AssumeAlignmentOp", "erase", "insert", "replace"]
