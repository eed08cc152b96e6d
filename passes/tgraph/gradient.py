"""`tgraph-gradient`: expands reverse-mode differentiation into operations.

    %y = tgraph.multiply %w, %w : tensor<f32>
    %g = tgraph.gradient %y wrt %w : tensor<f32> wrt tensor<f32>
    func.return %g : tensor<f32>

    %y = tgraph.multiply %w, %w : tensor<f32>
    %one = tgraph.constant<1.0 : f32> : tensor<f32>
    %0 = tgraph.multiply %one, %w : tensor<f32>
    %1 = tgraph.multiply %one, %w : tensor<f32>
    %g = tgraph.add %0, %1 : tensor<f32>
    func.return %g : tensor<f32>

The pass expands each `tgraph.gradient` where it stands, in program order, so gradients
of gradients work. With `of` or `wrt`, the pass appends gradients to the results of the
function: those of the results `of` with respect to the arguments `wrt`. If one of the
results `of` is not a scalar, the function also takes a head gradient for each of them
as a further argument (MXNet's `head_grads`).

The new operations inherit the device, group, and stream of the operation that they
differentiate (MXNet's rule for backward operations), and its source location.

`mirror` selects the operations to recompute for the gradient instead of keeping their
results (MXNet's mirroring): `attribute` selects operations with the attribute
`tgraph.mirror`; `cheap` adds all elementwise operations, broadcasts, and views; `none`
selects nothing. Recomputed operations carry the attribute `tgraph.recomputed`, which
keeps `cse` from merging them with the originals.

Needs: level 1 with static shapes, before tgraph-fuse.
Leaves: level 1 without `tgraph.gradient`.
Does not: remove duplicate operations (`cse` does) or unused ones (`canonicalize` does).

If no path leads from a value to its `wrt`, the gradient is zero, and the pass emits a
remark (NNVM reports an error). Gradients through integers, comparisons, and rounding
are zero as well.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...analysis.functions import (
    tensor_functions,
)
from ...dialects.tgraph.differentiation import MIRRORS, GradientOp
from ...support.choices import ChoiceError


@dataclass(frozen=True)
class TGraphGradient(ModulePass):
    """Expands the gradients that a program asks for.

    of: indices of the returned values to differentiate; 0 if only wrt is given.
    wrt: indices or names of the arguments; all arguments of float type if only of is
        given.
    function: the function that of and wrt refer to.
    mirror: which operations to recompute instead of keeping their results: none, cheap
        or attribute.
    """

    name = "tgraph-gradient"

    of: tuple[int, ...] | None = None
    wrt: tuple[int | str, ...] | None = None
    function: str = "main"
    mirror: str = "attribute"

    def __post_init__(self) -> None:
        if self.mirror not in MIRRORS:
            raise ChoiceError("mirror", self.mirror, MIRRORS)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = dict(tensor_functions(op))
        if self.of is not None or self.wrt is not None:
            from .gradients.requests import Request

            Request(self.function, self.of, self.wrt).append(functions)
        for block in functions.values():
            for gradient in [o for o in block.ops if isinstance(o, GradientOp)]:
                # Imported here: programs without gradients do not load the rules.
                from .gradients.reverse import expand

                expand(gradient, self.mirror)
