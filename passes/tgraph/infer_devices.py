"""`tgraph-infer-devices`: from copies between devices, where everything else is.

    func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
      %0 = tgraph.exponential %a : tensor<4xf32>
      %1 = tgraph.device_copy %0 : (tensor<4xf32>) -> tensor<4xf32, "gpu:0">
      ...
      %2 = tgraph.add %1, %b : tensor<4xf32, "gpu:0">   // so %b is on gpu:0

An operation and what it reads and makes are on one device; only `tgraph.device_copy`
crosses (TVM Relay's rule). So operations tied to each other make classes; a class is
where a copy into it, an attribute `tgraph.device`, a type or a `tgraph.on_device` says.
Two devices for one class are an error that shows both. A class where nothing says it is
on `fallback`.

Between two operations annotated with different devices (by `tgraph.on_device` or
`tgraph.device`) a copy is made. With `fallback`, one is made wherever Relay's
RewriteAnnotatedOps makes one: an operation without annotation is on the fallback then,
and does not follow an annotated one on another device.

Arguments, variables and constants are where they are first read, if nothing else is
said, and copied to where else they are read; an assigned value is copied to its
variable. (Relay reads them there without a copy.)

Needs: level 1. Leaves: every tensor type with a device, one `tgraph.device_copy` per
value and target, after the value's definition, no annotations.
Does not: know groups (`tgraph-place-devices` does), touch functions in which nothing
names a device unless there is a fallback.

Relay's CollectDeviceInfo puts what is no ancestor of a copy on the target of the last
copy that it visits, and all parameters too.
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

    fallback: the device of what is not determined otherwise; without it, such an
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
