"""Shared by the device passes: reads named devices, inserts copies, and writes types.

`DevicePlacement` holds the devices of one function's values and operations. A pass
fills them in (`put`, `put_argument`). `finish` then copies operands to the devices that
read them, once for each value and target, and writes the devices into the types.
"""

from collections.abc import Mapping
from typing import NoReturn, TypeAlias, cast

from xdsl.dialects.builtin import (
    AnyDenseElement,
    DenseIntOrFPElementsAttr,
    StringAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....analysis.functions import (
    argument_attributes,
    is_tensor,
    result_attributes,
    set_argument_attributes,
    set_result_attributes,
)
from ....dialects.diagnostics import LocatedError, place_of
from ....dialects.tgraph.base import (
    DEVICE,
    GROUP,
    VariableType,
    device_of,
    on_device,
    segments,
    tensor_type_of,
)
from ....dialects.tgraph.shaping import DeviceCopyOp
from ....dialects.tgraph.structure import OnDeviceOp

_ONE_INPUT = {"operandSegmentSizes": segments((0,), ())}


def typed(value: SSAValue) -> str | None:
    """The device in the type of a tensor, or None."""
    return device_of(value.type) if is_tensor(value.type) else None


Placeable: TypeAlias = Operation | BlockArgument
"""A node that has a device: an operation with its results, or an argument."""


def node_of(value: SSAValue) -> Placeable:
    owner = value.owner
    return owner if isinstance(owner, Operation) else cast(BlockArgument, value)


def described(node: Placeable) -> str:
    """A node and its source location, for a message that is located elsewhere."""
    if isinstance(node, BlockArgument):
        return f"argument {node.index}"
    place = place_of(node)
    return f"{node.name} ({place})" if place else node.name


def undetermined(node: Placeable, func: FuncOp) -> NoReturn:
    raise LocatedError(
        f"{node.name if isinstance(node, Operation) else described(node)} has no "
        "device: no annotation, operand or user determines one, and the pass has no "
        "default device",
        node if isinstance(node, Operation) else func,
    )


def variables_of(op: Operation) -> list[SSAValue]:
    """The variables that `op` reads or writes. `op` must be on their device."""
    return [v for v in op.operands if isinstance(v.type, VariableType)]


class DevicePlacement:
    """The devices of one function's values and operations.

    `groups` maps `tgraph.group` to devices; without it, groups are left as they are.

    Raises `LocatedError` for a group that is not in `groups`, and for a value whose
    definition names another device than a `tgraph.on_device`.
    """

    def __init__(
        self, func: FuncOp, block: Block, groups: Mapping[str, str] | None = None
    ):
        self.func = func
        self.block = block
        self.groups = groups
        self.argument_attrs = argument_attributes(func)
        self.result_attrs = result_attributes(func)
        self.devices: dict[SSAValue, str] = {}
        """The devices of arguments and results."""
        self.runs_on: dict[Operation, str] = {}
        self.named: dict[Operation, str] = {}
        """The devices that operations name themselves: by attribute, type or
        annotation."""
        self._copies: dict[tuple[SSAValue, str], SSAValue] = {}
        self._types: dict[tuple[Attribute, str], Attribute] = {}
        self._latest: dict[Operation | Block, Operation] = {}
        self._read_names()
        self.ops = [op for op in block.ops if _handles_tensors(op)]

    # Named devices

    def _read_names(self) -> None:
        for argument, attrs in zip(self.block.args, self.argument_attrs, strict=True):
            if device := self._device(attrs, self.func) or typed(argument):
                self.devices[argument] = device
        self.wanted: list[str | None] = [
            self._device(attrs, self.func)
            or (device_of(type) if is_tensor(type) else None)
            for attrs, type in zip(
                self.result_attrs, self.func.function_type.outputs, strict=True
            )
        ]
        """The device on which to return each result of the function; None for any."""
        for op in list(self.block.ops):
            if isinstance(op, OnDeviceOp):
                self._annotate(op)
            elif isinstance(op, ReturnOp):
                continue
            elif device := self._device(op.attributes, op) or next(
                (device for r in op.results if (device := typed(r))), None
            ):
                self.named[op] = device

    def _device(self, attrs: Mapping[str, Attribute], op: Operation) -> str | None:
        device, group = (_string(attrs, name, op) for name in (DEVICE, GROUP))
        if device or group is None or self.groups is None:
            return device
        if group not in self.groups:
            known = ", ".join(self.groups) or "none"
            raise LocatedError(
                f"group {group!r} has no device; the groups with devices are {known}",
                op,
            )
        return self.groups[group]

    def _annotate(self, op: OnDeviceOp) -> None:
        """Gives the device of the annotation to the definition of its value, and erases
        the annotation."""
        device, value = op.device.data, op.value
        owner = value.owner
        if isinstance(owner, Operation):
            other, who = self.named.setdefault(owner, device), described(owner)
        else:
            other, who = self.devices.setdefault(value, device), "an argument"
        if other != device:
            raise LocatedError(
                f"{op.name} puts the value of {who} on {device}, but it is "
                f"already on {other}; a value "
                "has one device",
                op,
            )
        op.result.replace_all_uses_with(value)
        op.detach()
        op.erase()

    # Decisions of a pass

    def put(self, op: Operation, device: str) -> None:
        """Places an operation, its results, and its variables not placed yet."""
        self.runs_on[op] = device
        for result in op.results:
            self.devices[result] = device
        for variable in variables_of(op):
            self.put_argument(variable, device)

    def put_argument(self, argument: SSAValue, device: str) -> None:
        """Places an argument unless it is placed already; for a variable, also its
        accesses."""
        if argument in self.devices:
            return
        self.devices[argument] = device
        if isinstance(argument.type, VariableType):
            for use in argument.uses:
                if use.operation not in self.runs_on:
                    self.put(use.operation, self.named.get(use.operation, device))

    # Rewriting

    def finish(self) -> None:
        """Inserts the copies and writes the types.

        Raises `LocatedError` if an operation is not where its variables are.
        """
        for op in self.ops:
            for variable in variables_of(op):
                if self.devices[variable] != self.runs_on[op]:
                    raise LocatedError(
                        f"{op.name} is on {self.runs_on[op]} and its variable on "
                        f"{self.devices[variable]}; variables do not cross devices",
                        op,
                    )
        for op in self.ops:
            self._bring_operands(op)
        for op in reversed(list(self.block.ops)):
            if isinstance(op, DeviceCopyOp) and not op.result.uses:
                op.detach()
                op.erase()
        self._retype()

    def _bring_operands(self, op: Operation) -> None:
        """Replaces operands on other devices by copies, and explicit copies by shared
        ones."""
        if isinstance(op, DeviceCopyOp):
            shared = self._copy(op.inputs[0], self.runs_on[op], op)
            if shared is not op.result:
                op.result.replace_all_uses_with(shared)
                op.detach()
                op.erase()
            return
        for index, operand in enumerate(op.operands):
            if isinstance(operand.type, VariableType) or operand not in self.devices:
                continue
            is_return = isinstance(op, ReturnOp)
            target = self.wanted[index] if is_return else self.runs_on[op]
            if target is not None and self.devices[operand] != target:
                op.operands[index] = self._copy(operand, target)

    def _copy(
        self, value: SSAValue, device: str, explicit: DeviceCopyOp | None = None
    ) -> SSAValue:
        """`value` on `device`: itself, the value that it is a copy of, or a shared
        copy.

        A new copy comes directly after the value. If `explicit` is given, it is moved
        there and becomes that copy.
        """
        if self.devices[value] == device:
            return value
        owner = value.owner
        if isinstance(owner, DeviceCopyOp):
            source = owner.inputs[0]
            if self.devices[source] == device:
                return source
        if copied := self._copies.get((value, device)):
            return copied
        if explicit is None:
            copy = DeviceCopyOp.create(  # twice as fast as calling the class
                operands=[value],
                result_types=[self._on(value.type, device)],
                properties=_ONE_INPUT,
            )
            copy.result.name_hint = value.name_hint
            if isinstance(owner, Operation):
                copy.location = owner.location
        else:
            copy = explicit
            copy.detach()
        if previous := self._latest.get(owner):
            point = InsertPoint.after(previous)
        elif isinstance(owner, Operation):
            point = InsertPoint.after(owner)
        else:
            point = InsertPoint.at_start(self.block)
        Rewriter.insert_op(copy, point)
        self._latest[owner] = copy
        self.put(copy, device)
        self._copies[value, device] = copy.result
        return copy.result

    def _on(self, type: Attribute, device: str) -> Attribute:
        """The tensor or variable type with `device`."""
        if (placed := self._types.get((type, device))) is None:
            placed = on_device(tensor_type_of(type), device)
            if isinstance(type, VariableType):
                placed = VariableType(placed)
            self._types[type, device] = placed
        return placed

    def _drop_names(self, attributes: dict[str, Attribute]) -> None:
        attributes.pop(DEVICE, None)
        if self.groups is not None:
            attributes.pop(GROUP, None)

    def _retype(self) -> None:
        def place(value: SSAValue, device: str) -> None:
            if is_tensor(value.type) and device_of(value.type) != device:
                placed = self._on(value.type, device)
                if isinstance(value.owner, Operation):
                    _retype_elements(value.owner, value.type, placed)
                Rewriter.replace_value_with_new_type(value, placed)

        for argument in self.block.args:
            if argument in self.devices:
                place(argument, self.devices[argument])
        for op in self.block.ops:
            device = self.runs_on.get(op)
            if device is None:
                continue
            for inner in op.walk():  # nested operations are on the device of `op`
                self._drop_names(inner.attributes)
                arguments = [a for region in inner.regions for a in region.block.args]
                for value in (*inner.results, *arguments):
                    place(value, device)
        for attrs in (*self.argument_attrs, *self.result_attrs):
            self._drop_names(attrs)
        set_argument_attributes(self.func, self.argument_attrs)
        set_result_attributes(self.func, self.result_attrs)
        self.func.update_function_type()


def _string(attrs: Mapping[str, Attribute], name: str, op: Operation) -> str | None:
    attribute = attrs.get(name)
    if attribute is None or isinstance(attribute, StringAttr):
        return attribute and attribute.data
    raise LocatedError(f"{name} is {attribute}, expected a string", op)


def _retype_elements(op: Operation, type: Attribute, placed: Attribute) -> None:
    """Changes the type of elements that an `arith.constant` or the like gives."""
    for name, value in op.properties.items():
        if isinstance(value, DenseIntOrFPElementsAttr) and value.get_type() == type:
            tensor = cast("TensorType[AnyDenseElement]", placed)
            op.properties[name] = DenseIntOrFPElementsAttr(tensor, value.data)


def _handles_tensors(op: Operation) -> bool:
    return any(is_tensor(v.type) for v in (*op.operands, *op.results))
