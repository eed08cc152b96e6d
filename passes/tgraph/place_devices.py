"""`tgraph-place-devices`: assigns a device to every tensor, and inserts copies.

    func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32> {tgraph.device = "gpu:0"})
                 -> tensor<4xf32> {
      %0 = tgraph.exponential %a {tgraph.group = "stage1"} : tensor<4xf32>
      %1 = tgraph.add %b, %0 : tensor<4xf32>
      func.return %1 : tensor<4xf32>

    with groups="stage1=cpu:0":

    func.func @f(%a: tensor<4xf32, "cpu:0">, %b: tensor<4xf32, "gpu:0">)
                 -> tensor<4xf32, "gpu:0"> {
      %0 = tgraph.exponential %a : tensor<4xf32, "cpu:0">
      %c = tgraph.device_copy %0 : (tensor<4xf32, "cpu:0">) -> tensor<4xf32, "gpu:0">
      %1 = tgraph.add %b, %c : tensor<4xf32, "gpu:0">
      func.return %1 : tensor<4xf32, "gpu:0">

An operation runs on the device in its `tgraph.device` attribute. Without one, it runs
where `groups` maps its `tgraph.group` attribute (MXNet's ctx_group). Without a group,
the result's type or a `tgraph.on_device` of the result decides. Arguments name devices
in the same ways. The pass places all other operations as NNVM's PlaceDevice does: in
program order, an operation takes the device of its first placed operand; then, in
reverse, it takes the device of its last placed user; finally, any operation left takes
the device of its nearest neighbor, or `default`. (NNVM places the remaining operations
on device 0.) Devices propagate neither into a `tgraph.device_copy`, nor backward out of
one.

Reads, assigns, and operations with destinations run on the device of their variable; as
in NNVM, naming another device is an error. An assigned value from another device is
copied. Results stay where they are computed, unless the attributes of the result name a
device.

Needs: level 1.
Leaves: a device in every tensor type, each operation on a single device, and one
`tgraph.device_copy` per value and target device, placed right after the value's
definition. A copy to another device and back is removed.
Does not: choose devices by cost, or move variables.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ...analysis.functions import tensor_functions
from ...dialects.diagnostics import LocatedError
from ...support.choices import ChoiceError, one_of
from ..optional import OptionalPass
from ..options import GroupDevices
from .devices.inheritance import Inheritance
from .devices.placement import DevicePlacement


@dataclass(frozen=True)
class TGraphPlaceDevices(OptionalPass, GroupDevices):
    """Assigns a device to every tensor.

    devices: the available devices, as "cpu:0","gpu:0"; without it, all devices that the
        program names.
    default: the device of operations that nothing else places; without it, such an
        operation is an error.
    """

    name = "tgraph-place-devices"

    devices: tuple[str, ...] = ()
    default: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        chosen = {f"group {g!r}": d for g, d in self.device_of_group.items()}
        if self.default is not None:
            chosen["default"] = self.default
        for what, device in chosen.items():
            if self.devices and device not in self.devices:
                raise ChoiceError(what, device, self.devices)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        groups = self.device_of_group
        for func, block in tensor_functions(op):
            placement = DevicePlacement(func, block, groups)
            Inheritance(placement).run(self.default)
            if self.devices:
                _check_known(placement, self.devices)
            placement.finish()


def _check_known(placement: DevicePlacement, known: tuple[str, ...]) -> None:
    """Raises `LocatedError` if a value is on, or is returned on, an unknown device."""
    func = placement.func
    places = [
        *((op.name, op, device) for op, device in placement.runs_on.items()),
        *(
            (f"argument {index}", func, placement.devices.get(argument))
            for index, argument in enumerate(placement.block.args)
        ),
        *(
            (f"result {index}", func, device)
            for index, device in enumerate(placement.wanted)
        ),
    ]
    for what, op, device in places:
        if device is not None and device not in known:
            raise LocatedError(f"{what} is on {one_of(device, known)}", op)
