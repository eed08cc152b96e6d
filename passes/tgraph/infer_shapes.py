"""`tgraph-infer-shapes`: infers unknown sizes and element types from the known ones.

    func.func @main(%x: tensor<?x8xf32>, %y: tensor<4x?xf32>) -> tensor<?x?xf32> {
      %0 = tgraph.add %x, %y : (tensor<?x8xf32>, tensor<4x?xf32>) -> tensor<?x?xf32>
      func.return %0 : tensor<?x?xf32>
    }

    func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %0 = tgraph.add %x, %y : tensor<4x8xf32>
      func.return %0 : tensor<4x8xf32>
    }

An unknown size is written `?`, and an unknown element type `none`. The rule of each
operation (`TensorOp.refine`) propagates types in both directions, from operands to
results and back, and through variables. The pass reapplies a rule whenever one of its
types becomes better known, until it reaches a fixed point. Each size is resolved only
once, so the pass takes linear time.

A remark counts the values whose type remains partially unknown; with `require-static`,
such values are an error. If two types contradict each other, the pass reports an error
at the operation that relates them, with the source locations where the types originate.

Needs: level 1.
Leaves: level 1, with the function's signature updated to match its values. A size may
be symbolic (`#tgraph.dims<n>`); equal sizes are the same expression.
Does not: infer unknown ranks, look into fusions, name sizes, or change programs whose
types are all known (which cost a single scan).

NNVM's InferShape and InferType instead alternate forward and backward sweeps over all
nodes.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from ...analysis.functions import is_tensor, tensor_functions
from ...dialects.diagnostics import LocatedError, place_of, remark
from ...dialects.tgraph.base import (
    TensorOp,
    VariableType,
    tensor_type_of,
    with_element,
    with_shape,
)
from ...dialects.tgraph.differentiation import GradientOp
from ...dialects.tgraph.partial import PartialTypes, is_complete
from ...dialects.tgraph.structure import AssignOp, OnDeviceOp, ReadOp
from ..optional import OptionalPass

_SHOWN = 10
"""How many unknown values a message lists."""


@dataclass(frozen=True)
class TGraphInferShapes(OptionalPass):
    """Infers unknown sizes and element types in both directions.

    require_static: report types that remain unknown as an error.
    """

    name = "tgraph-infer-shapes"

    require_static: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func, block in tensor_functions(op):
            if not (incomplete := _incomplete(block)):
                continue
            _Inference(block).run(incomplete)
            func.update_function_type()
            if unknown := _incomplete(block):
                self._report(func, unknown)

    def _report(self, func: FuncOp, unknown: Sequence[SSAValue]) -> None:
        shown = ", ".join(_describe(value) for value in unknown[:_SHOWN])
        more = ", ..." if len(unknown) > _SHOWN else ""
        are = "1 type stays" if len(unknown) == 1 else f"{len(unknown)} types stay"
        message = f"{are} unknown in @{func.sym_name.data}: {shown}{more}"
        owner = unknown[0].owner
        place = owner if isinstance(owner, Operation) else func
        if self.require_static:
            raise LocatedError(message, place)
        remark(message, place)


def _incomplete(block: Block) -> list[SSAValue]:
    """The tensors whose type is not completely known, in program order."""
    return [
        value
        for values in (block.args, *(op.results for op in block.ops))
        for value in values
        if is_tensor(value.type) and not is_complete(tensor_type_of(value.type))
    ]


def _describe(value: SSAValue) -> str:
    if isinstance(value, BlockArgument):
        return f"argument {value.index} of type {value.type}"
    assert isinstance(value.owner, Operation)
    return f"{value.owner.name} of type {value.type}"


def _same_types(op: Operation) -> list[tuple[SSAValue, SSAValue]]:
    """Pairs of the operation's values that have the same type (but for the device)."""
    match op:
        case ReadOp():
            return [(op.variable, op.result)]
        case AssignOp():
            return [(op.variable, op.value)]
        case OnDeviceOp():
            return [(op.value, op.result)]
        case GradientOp():
            heads = zip(op.of, op.heads, strict=False)  # none for scalars
            return [*zip(op.wrt, op.res, strict=True), *heads]
        case TensorOp():
            return list(zip(op.outs, op.res, strict=False))
        case _:
            return []


class _Inference:
    """Applies the rules of one block's operations until it reaches a fixed point."""

    def __init__(self, block: Block):
        self.block = block
        self.queue: deque[Operation] = deque()
        self.queued: set[Operation] = set()
        self.inferred_at: dict[SSAValue, Operation] = {}

    def run(self, incomplete: Sequence[SSAValue]) -> None:
        for value in incomplete:
            self._push(value)
        while self.queue:
            op = self.queue.popleft()
            self.queued.discard(op)
            self._apply(op)

    def _push(self, value: SSAValue) -> None:
        """Queues the operations that have `value` as a result or operand."""
        uses = [use.operation for use in value.uses]
        owner = value.owner
        owners = [owner] if isinstance(owner, Operation) else []
        for op in (*owners, *reversed(uses)):  # uses are listed latest first
            if op not in self.queued and op.parent is self.block:
                self.queued.add(op)
                self.queue.append(op)

    def _apply(self, op: Operation) -> None:
        try:
            if any(self._equal(op, *pair) for pair in _same_types(op)):
                return  # its values were replaced; it is queued again
            if isinstance(op, TensorOp):
                types = PartialTypes(
                    [tensor_type_of(value.type) for value in op.inputs], op.declared
                )
                op.refine(types)
                self._update(op, (*op.inputs, *op.res), types)
        except VerifyException as error:
            raise LocatedError(f"{op.name}: {error}{self._origins(op)}", op) from None

    def _equal(self, op: Operation, first: SSAValue, second: SSAValue) -> bool:
        """Gives two tensors, or contents of variables, the same type.

        Returns whether a type changed.
        """
        pair = [tensor_type_of(value.type) for value in (first, second)]
        types = PartialTypes(pair, ())
        types.same_shape(0, 1)
        types.same_element(0, 1)
        self._update(op, (first, second), types)
        return bool(types.changed)

    def _update(
        self, op: Operation, values: Sequence[SSAValue], types: PartialTypes
    ) -> None:
        done: set[SSAValue] = set()
        for index in sorted(types.changed):
            value = values[index]
            if value in done:  # the same operand again; `op` is queued again
                continue
            done.add(value)
            old = tensor_type_of(value.type)
            new = with_shape(
                with_element(old, types.elements[index]), types.shapes[index]
            )
            is_variable = isinstance(value.type, VariableType)
            type: Attribute = VariableType(new) if is_variable else new
            value = Rewriter.replace_value_with_new_type(value, type)
            self.inferred_at[value] = op
            self._push(value)

    def _origins(self, op: Operation) -> str:
        """Notes on where the types that meet at `op` were inferred."""
        notes = [
            f"\n{place_of(origin) or '-'}: note: the type of {what} {index} was "
            f"inferred by {origin.name}"
            for what, values in (("operand", op.operands), ("result", op.results))
            for index, value in enumerate(values)
            if (origin := self.inferred_at.get(value)) and origin is not op
        ]
        return "".join(notes)
