"""Simplifies parts of a program, for passes that have changed them."""

from collections.abc import Iterable

from xdsl.context import Context
from xdsl.ir import Region
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriteWalker
from xdsl.transforms.canonicalize import CanonicalizationRewritePattern
from xdsl.transforms.common_subexpression_elimination import cse
from xdsl.transforms.dead_code_elimination import region_dce


def simplify(ctx: Context, regions: Iterable[Region]) -> None:
    """Canonicalizes regions, with the loops and branches in them, and eliminates common
    subexpressions. Regions within others are simplified with these."""
    pattern = GreedyRewritePatternApplier(
        [CanonicalizationRewritePattern()], ctx=ctx, folding_enabled=True
    )
    walker = PatternRewriteWalker(pattern, post_walk_func=region_dce)
    given = list(regions)
    for region in given:
        if not any(each is not region and each.is_ancestor(region) for each in given):
            walker.rewrite_region(region)
            cse(region)
