"""`tgraph-scatter-into`: what is scattered into zeros and added is scattered at once.

    %0 = tgraph.scatter %zeros, %indices, %updates {kind = "add", ...} : ...
    %1 = tgraph.add %y, %0 : tensor<4x256x50257xf32>

    %1 = tgraph.scatter %y, %indices, %updates {kind = "add", ...} : ...

So %y is changed where something is added, in place, and the mostly empty tensor is not
stored with it: the gradient of a cross entropy is the probabilities, with one number
per token changed. Where others read %0 as well it stays for them, but is not kept.

Done where no element is hit twice, so that the sums are the same (zeros may change
their sign), and where nobody else reads %y.

Needs: level 1, before fusion. Leaves: the same.
Does not: look through views, or into fusions.
"""

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from ...analysis.functions import tensor_blocks
from ...dialects.tgraph.base import TensorOp, is_static, shape_of, tensor_type_of
from ...dialects.tgraph.elementwise import AddOp
from ...dialects.tgraph.indexing import ScatterOp
from ...dialects.tgraph.shaping import ConstantOp
from ..optional import OptionalPass


@dataclass(frozen=True)
class TGraphScatterInto(OptionalPass):
    """Scatters into what the scattered would be added to."""

    name = "tgraph-scatter-into"
    LOWERS_PEAK = True
    TOPIC = "in place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            for add in list(block.ops):
                if isinstance(add, AddOp) and not add.outs:
                    _rewrite(add)


def _rewrite(add: AddOp) -> None:
    for scattered, value in (add.inputs, reversed(add.inputs)):
        scatter = scattered.owner
        if not isinstance(scatter, ScatterOp) or not _is_into_zeros(scatter):
            continue
        if not _hits_once(scatter) or not value.has_one_use():
            continue
        new = scatter.clone()
        new.operands[0] = value
        new.result.name_hint = add.result.name_hint
        zeros = scatter.inputs[0].owner
        Rewriter.replace_op(add, new)
        for op in (scatter, zeros):
            if isinstance(op, TensorOp) and not op.result.uses:
                Rewriter.erase_op(op)
        return


def _is_into_zeros(scatter: ScatterOp) -> bool:
    into = scatter.inputs[0].owner
    return (
        scatter.kind.data == "add"
        and not scatter.outs
        and isinstance(into, ConstantOp)
        and into.splat is not None
        and into.splat.value.data == 0
    )


def _hits_once(scatter: ScatterOp) -> bool:
    """Whether no element is added to twice: there is one slice, in each batch."""
    type = tensor_type_of(scatter.inputs[1].type)
    if not is_static(type):
        return False
    dropped = {
        *scatter.scatter_indices_batching_dims.get_values(),
        scatter.index_vector_dim.value.data,
    }
    return prod(n for d, n in enumerate(shape_of(type)) if d not in dropped) == 1
