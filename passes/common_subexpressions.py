"""`cse` of what is not planned yet, for plan-pipeline.

Each life in bytes of an arena, or of a result, is a view of its own. To `cse` equal
views are one, but one value is one buffer, which streams that nothing orders could not
share: planned functions stay as they are.
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
    """Merges equal operations, but not where buffers are placed."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.ops:
            if not isinstance(inner, FuncOp) or not has_plan(inner):
                cse(inner)
