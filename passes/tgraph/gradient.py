"""`tgraph-gradient`: reverse-mode differentiation, written out as operations.

    %y = tgraph.multiply %w, %w : tensor<f32>
    %g = tgraph.gradient %y wrt %w : tensor<f32> wrt tensor<f32>
    func.return %g : tensor<f32>

    %y = tgraph.multiply %w, %w : tensor<f32>
    %one = tgraph.constant<1.0 : f32> : tensor<f32>
    %0 = tgraph.multiply %one, %w : tensor<f32>
    %1 = tgraph.multiply %one, %w : tensor<f32>
    %g = tgraph.add %0, %1 : tensor<f32>
    func.return %g : tensor<f32>

Every `tgraph.gradient` is expanded where it stands, in program order, so that gradients
of gradients work. With `of` or `wrt`, a function gets its gradients as further results:
those of its results `of` with respect to its arguments `wrt`. If one of `of` is not a
scalar, each is weighted by a head gradient, a further argument (MXNet's `head_grads`).

What is written carries the device, group and stream of the operation that it is the
gradient of (MXNet's rule for backward operations), and its place in the source.

`mirror` says which operations are computed again for the gradient rather than kept
(MXNet's mirroring): `attribute`, those with the attribute `tgraph.mirror`; `cheap`,
also all elementwise operations, broadcasts and views; `none`. Repetitions carry the
attribute `tgraph.recomputed`, so that `cse` does not take them for the originals.

Needs: level 1 with static shapes, before tgraph-fuse.
Leaves: level 1 without `tgraph.gradient`.
Does not: remove what is computed twice (`cse`) or not needed (`canonicalize`).

Gradients with respect to what has no path to the value are zeros, with a remark (NNVM
refuses); so are those through integers, comparisons and rounding.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...analysis.functions import (
    tensor_functions,
)
from ...choices import ChoiceError
from ...dialects.tgraph.differentiation import MIRRORS, GradientOp


@dataclass(frozen=True)
class TGraphGradient(ModulePass):
    """Writes out the gradients that a program asks for.

    of: numbers of the returned values to differentiate; if only wrt is given, 0.
    wrt: numbers or names of the arguments; if only of is given, all of float type.
    function: what of and wrt are about.
    mirror: what is computed again rather than kept: none, cheap or attribute.
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
                # Here, so that programs without gradients do not load the rules.
                from .gradients.reverse import expand

                expand(gradient, self.mirror)
