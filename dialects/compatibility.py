"""What differs between the versions of xDSL that tensorplan works with.

pyproject.toml says which these are; `.ci/run` tests the oldest and the newest.
Everything else is written for the newest. What an older one lacks, or calls by another
name, is here with the version that brought it; it goes when no older one is left.
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
    # 0.72; before, an operation that nobody knows
    AssumeAlignmentOp = getattr(memref, "AssumeAlignmentOp", type("Unknown", (), {}))

# In 0.69 the same under other names.
if TYPE_CHECKING or hasattr(PatternRewriter, "replace"):
    insert, replace = PatternRewriter.insert, PatternRewriter.replace
    erase = PatternRewriter.erase
else:
    insert, replace = PatternRewriter.insert_op, PatternRewriter.replace_op
    erase = PatternRewriter.erase_op

__all__ = ["AnySpan", "AssumeAlignmentOp", "erase", "insert", "replace"]
