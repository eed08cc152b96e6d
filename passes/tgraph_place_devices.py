"""`tgraph-place-devices`: every tensor gets a device, and copies cross between them.

    func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32> {tgraph.device = "gpu:0"})
                 -> tensor<4xf32> {
      %0 = tgraph.exponential %a {tgraph.device = "cpu:0"} : tensor<4xf32>
      %1 = tgraph.add %b, %0 : tensor<4xf32>
      func.return %1 : tensor<4xf32>

    func.func @f(%a: tensor<4xf32, "cpu:0">, %b: tensor<4xf32, "gpu:0">)
                 -> tensor<4xf32, "gpu:0"> {
      %0 = tgraph.exponential %a : tensor<4xf32, "cpu:0">
      %c = tgraph.device_copy %0 : (tensor<4xf32, "cpu:0">) -> tensor<4xf32, "gpu:0">
      %1 = tgraph.add %b, %c : tensor<4xf32, "gpu:0">
      func.return %1 : tensor<4xf32, "gpu:0">

An operation runs where its attribute `tgraph.device` says; else where its first placed
operand is (forward through the program); else where its first placed user runs (then
backward); else on `default` (MXNet's PlaceDevice). Arguments say it by their attribute
or type, else they follow their first placed user. Results stay where they are computed,
or go where the result attribute `tgraph.device` says.

Needs: level 1. Leaves: every tensor type with a device, every operation on one device,
one `tgraph.device_copy` per value and target, behind the value's definition.
Does not: choose devices by cost, move variables (assigning one from another device
copies the value).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.base import (
    DEVICE,
    TensorOp,
    VariableType,
    device_of,
    on_device,
    tensor_type_of,
)
from tensorplan.dialects.tgraph.shaping import DeviceCopyOp
from tensorplan.dialects.tgraph.structure import AssignOp, ReadOp
from tensorplan.passes.functions import (
    argument_attributes,
    is_tensor,
    result_attributes,
    set_argument_attributes,
    set_result_attributes,
    tensor_functions,
)


@dataclass(frozen=True)
class TGraphPlaceDevices(ModulePass):
    """Gives every tensor a device.

    default: the device of what is not placed otherwise; without it, such an operation
    is an error.
    """

    name = "tgraph-place-devices"

    default: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func, block in tensor_functions(op):
            _Placement(func, block, self.default).run()


class _Placement:
    """The devices of one function's values and operations, and how they are found."""

    def __init__(self, func: FuncOp, block: Block, default: str | None):
        self.func = func
        self.block = block
        self.default = default
        self.argument_attrs = argument_attributes(func)
        self.result_attrs = result_attributes(func)
        self.position = {op: index for index, op in enumerate(self.block.ops)}
        self.devices: dict[SSAValue, str] = {}  # of arguments and results
        self.runs_on: dict[Operation, str] = {}
        self.copies: dict[tuple[SSAValue, str], SSAValue] = {}

    def run(self) -> None:
        ops = [op for op in self.block.ops if _handles_tensors(op)]
        for argument, attrs in zip(self.block.args, self.argument_attrs, strict=True):
            if device := _named(attrs.get(DEVICE)) or _typed(argument):
                self.devices[argument] = device
        for op in ops:
            self._from_operands(op)
        for op in reversed(ops):
            if op not in self.runs_on:
                self._from_users(op)
        # What the backward scan found may place what comes after it.
        for op in ops:
            if op not in self.runs_on:
                self._from_operands(op)
        for argument in self.block.args:
            if is_tensor(argument.type) and argument not in self.devices:
                self.devices[argument] = self._of_users(argument) or self._fallback(
                    f"argument {argument.index}", self.func
                )
        for op in ops:
            if op not in self.runs_on:
                self._set(op, self._fallback(op.name, op))
        for op in ops:
            self._bring_operands(op)
        self._retype()

    def _fallback(self, what: str, op: Operation) -> str:
        if self.default is not None:
            return self.default
        raise LocatedError(
            f"{what} has no device: none is named, none follows from its operands or "
            "users, and the pass has no default",
            op,
        )

    def _set(self, op: Operation, device: str) -> None:
        self.runs_on[op] = device
        for result in op.results:
            self.devices[result] = device

    def _from_operands(self, op: Operation) -> None:
        if isinstance(op, ReturnOp):
            return
        if isinstance(op, DeviceCopyOp) and (device := _typed(op.result)):
            self._set(op, device)
            return
        named = _named(op.attributes.get(DEVICE)) or next(
            (device for r in op.results if (device := _typed(r))), None
        )
        operands: Iterable[SSAValue] = op.operands
        if isinstance(op, ReadOp | AssignOp):  # they happen where the variable is
            operands, named = (op.variable,), None
        elif isinstance(op, TensorOp) and op.outs:
            operands = op.outs
        device = named or next(
            (d for v in operands if (d := self.devices.get(v))), None
        )
        if device:
            self._set(op, device)

    def _from_users(self, op: Operation) -> None:
        device = next((d for r in op.results if (d := self._of_users(r))), None)
        if device:
            self._set(op, device)
            if isinstance(op, ReadOp):
                self.devices.setdefault(op.variable, device)

    def _of_users(self, value: SSAValue) -> str | None:
        """Where the first placed user in program order runs."""
        users = (use.operation for use in value.uses)
        placed = [op for op in users if op in self.runs_on]
        if not placed:
            return None
        return self.runs_on[min(placed, key=lambda op: self.position[op])]

    def _bring_operands(self, op: Operation) -> None:
        """Replaces operands on other devices by copies."""
        if isinstance(op, DeviceCopyOp | ReadOp):
            return
        for index, operand in enumerate(op.operands):
            if isinstance(operand.type, VariableType) or operand not in self.devices:
                continue
            target = self._target(op, index)
            if target is None or self.devices[operand] == target:
                continue
            op.operands[index] = self._copy(operand, target)

    def _target(self, op: Operation, operand: int) -> str | None:
        if not isinstance(op, ReturnOp):
            return self.runs_on[op]
        declared = self.func.function_type.outputs.data[operand]
        return _named(self.result_attrs[operand].get(DEVICE)) or (
            device_of(declared) if is_tensor(declared) else None
        )

    def _copy(self, value: SSAValue, device: str) -> SSAValue:
        if copied := self.copies.get((value, device)):
            return copied
        copy = DeviceCopyOp(value, on_device(tensor_type_of(value.type), device))
        if isinstance(value.owner, Operation):
            copy.location = value.owner.location
            Rewriter.insert_op(copy, InsertPoint.after(value.owner))
        else:
            Rewriter.insert_op(copy, InsertPoint.at_start(self.block))
        copy.result.name_hint = value.name_hint
        self.devices[copy.result] = device
        self.copies[value, device] = copy.result
        return copy.result

    def _retype(self) -> None:
        cache: dict[tuple[Attribute, str], Attribute] = {}

        def place(value: SSAValue, device: str) -> None:
            type = value.type
            if not is_tensor(type) or device_of(type) == device:
                return
            if (placed := cache.get((type, device))) is None:
                placed = on_device(tensor_type_of(type), device)
                if isinstance(type, VariableType):
                    placed = VariableType(placed)
                cache[type, device] = placed
            Rewriter.replace_value_with_new_type(value, placed)

        for argument in self.block.args:
            if argument in self.devices:
                place(argument, self.devices[argument])
        for op in self.block.ops:
            device = self.runs_on.get(op)
            if device is None:
                continue
            op.attributes.pop(DEVICE, None)
            for result in op.results:
                place(result, device)
            for region in op.regions:  # a fusion's body is where the fusion is
                for inner in region.walk():
                    for result in inner.results:
                        place(result, device)
                for argument in region.block.args:
                    place(argument, device)
        for attrs in (*self.argument_attrs, *self.result_attrs):
            attrs.pop(DEVICE, None)
        set_argument_attributes(self.func, self.argument_attrs)
        set_result_attributes(self.func, self.result_attrs)
        self.func.update_function_type()


def _handles_tensors(op: Operation) -> bool:
    return any(is_tensor(v.type) for v in (*op.operands, *op.results))


def _named(attribute: Attribute | None) -> str | None:
    return attribute.data if isinstance(attribute, StringAttr) else None


def _typed(value: SSAValue) -> str | None:
    return device_of(value.type) if is_tensor(value.type) else None
