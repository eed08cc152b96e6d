"""`tgraph-place-devices`: every tensor gets a device, and copies cross between them.

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

An operation runs where its attribute `tgraph.device` says, else where `groups` puts its
attribute `tgraph.group` (MXNet's ctx_group), else where its result's type or a
`tgraph.on_device` of its result says. Arguments say it in the same ways. The others
follow, as in NNVM's PlaceDevice: forward through the program, an operation is where its
first placed operand is; then backward, what makes a value is where the last placed user
is; then whatever is left is where its nearest neighbour is, or on `default`. (NNVM puts
what is left on device 0.) A `tgraph.device_copy` follows nobody and nobody follows it
backward.

Reads, assigns and operations with destinations are where their variable is; one that
names another device is an error, as in NNVM. An assigned value from elsewhere is
copied. Results stay where they are computed, or go where the result's attributes say.

Needs: level 1. Leaves: every tensor type with a device, every operation on one device,
one `tgraph.device_copy` per value and target, after the value's definition; of a copy
of a copy back home, nothing.
Does not: choose devices by cost, move variables.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ...analysis.functions import tensor_functions
from ...choices import ChoiceError, one_of
from ...dialects.diagnostics import LocatedError
from ..optional import OptionalPass
from ..options import GroupDevices
from .devices.inheritance import Inheritance
from .devices.placement import DevicePlacement


@dataclass(frozen=True)
class TGraphPlaceDevices(OptionalPass, GroupDevices):
    """Gives every tensor a device.

    devices: those that there are, as "cpu:0","gpu:0"; without them, all that are named.
    default: the device of what is not placed otherwise; without it, such an operation
    is an error.
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
    """Refuses whatever is on, or is to be returned on, another device."""
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
