"""`tgraph-infer-devices`: infers the device of each operation from copies between
devices.

    func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
      %0 = tgraph.exponential %a : tensor<4xf32>
      %1 = tgraph.device_copy %0 : (tensor<4xf32>) -> tensor<4xf32, "gpu:0">
      ...
      %2 = tgraph.add %1, %b : tensor<4xf32, "gpu:0">   // so %b is on gpu:0

An operation, its operands, and its results are on the same device; only
`tgraph.device_copy` crosses devices (the rule of TVM Relay). Operations that are
connected in this way form a class. A class takes its device from a copy into it, from a
`tgraph.device` attribute, from a type, or from a `tgraph.on_device`. If a class has two
devices, the pass reports an error that shows both. A class without any takes
`fallback`.

If two connected operations are annotated with different devices (by `tgraph.on_device`
or `tgraph.device`), the pass inserts a copy between them. With `fallback`, it inserts
copies wherever Relay's RewriteAnnotatedOps does: an operation without an annotation
then runs on the fallback device, and does not follow an annotated operation on another
device.

An argument, variable, or constant without a device takes that of its first reader, and
is copied to the devices of its other readers. An assigned value is copied to the device
of its variable. (Relay makes no copy in these cases.)

Needs: level 1.
Leaves: a device in every tensor type, one `tgraph.device_copy` per value and target
device, placed right after the value's definition, and no annotations.
Does not: handle groups (see `tgraph-place-devices`), or change functions that name no
device unless `fallback` is given.

Relay's CollectDeviceInfo places all parameters, and every operation that no copy
depends on, on the target device of the last copy that it visits.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ...analysis.functions import tensor_functions
from ..optional import OptionalPass
from .devices.inference import Inference
from .devices.placement import (
    DevicePlacement,
)


@dataclass(frozen=True)
class TGraphInferDevices(OptionalPass):
    """Infers the devices of operations from explicit copies and annotations.

    fallback: the device of operations that nothing else determines; without it, such an
        operation is an error.
    """

    name = "tgraph-infer-devices"

    fallback: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func, block in tensor_functions(op):
            placement = DevicePlacement(func, block)
            if placement.named or placement.devices or self.fallback:
                Inference(placement, self.fallback).run()
                placement.finish()
