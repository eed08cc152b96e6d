"""Converts StableHLO to tgraph on tensors, with explicit state (level 0 → level 1).

    func.func public @main(%arg0: tensor<4xf32> {tf.aliasing_output = 0 : i32})
        -> tensor<4xf32> {
      %0 = "stablehlo.negate"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %0 : tensor<4xf32>
    }
→
    func.func public @main(
        %arg0: !tgraph.variable<tensor<4xf32>> {tgraph.result = 0 : i32}) {
      %0 = tgraph.read %arg0 : tensor<4xf32>
      %1 = tgraph.negate %0 : tensor<4xf32>
      tgraph.assign %arg0, %1 : tensor<4xf32>
      func.return
    }

A donated argument becomes a variable. With `tf.aliasing_output = N`, the variable holds
result N. With `jax.buffer_donor`, it holds the first result of the same type that no
other argument has been donated to. If there is no such result, the argument remains an
argument with the attribute `tgraph.donated`, and the pass emits a remark.

Unknown sizes (`?`) stay unknown, and `tgraph-infer-shapes` resolves them later. If the
program computes with a size, the pass writes it as an expression over the sizes of the
arguments (frontends/stablehlo/symbols.py, frontends/stablehlo/sizes.py).

Needs: ranked tensors, single-block functions, no recursion.
Leaves: the public functions, with all calls inlined and all private functions removed.
Functions and the module lose the attributes of JAX and MHLO. Source locations are
preserved. Operations on elements of storage types (f8, i4) become operations on f32 or
i8, between conversions. Tokens are removed: operations with effects keep their order
without them. The pass leaves a module unchanged if it has no StableHLO, no donated
arguments, and no attributes of MHLO, which JAX writes even for identities.
Does not: stop at the first unsupported operation. A single error lists all of them.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from ...analysis.functions import argument_attributes
from ...dialects.diagnostics import name_of

_DONATED = {"tf.aliasing_output", "jax.buffer_donor"}


@dataclass(frozen=True)
class ConvertStablehloToTGraph(ModulePass):
    """Converts StableHLO to tgraph; donated arguments become variables."""

    name = "convert-stablehlo-to-tgraph"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not _is_level_0(op):
            return
        # Imported here: programs at other levels do not load the conversions.
        from ...frontends.stablehlo.functions import convert

        convert(op)


def _is_level_0(module: ModuleOp) -> bool:
    if any(name.startswith("mhlo.") for name in module.attributes):
        return True
    return any(
        _DONATED & attributes.keys()
        for op in module.ops
        if isinstance(op, FuncOp)
        for attributes in argument_attributes(op)
    ) or any(name_of(op).startswith(("stablehlo.", "chlo.")) for op in module.walk())
