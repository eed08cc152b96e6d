"""`cse` for functions that are not planned yet, in plan-pipeline.

In a planned function, each buffer in an arena or in a result has its own view. `cse`
would merge equal views into one value, and so into one buffer, which unordered streams
must not share. Planned functions therefore stay as they are.
"""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.transforms.common_subexpression_elimination import (
    CommonSubexpressionElimination,
    cse,
)

from ..analysis.allocations import has_plan


class UnplannedCommonSubexpressionElimination(CommonSubexpressionElimination):
    """Merges equal operations, except in functions whose buffers are placed."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.ops:
            if not isinstance(inner, FuncOp) or not has_plan(inner):
                cse(inner)
