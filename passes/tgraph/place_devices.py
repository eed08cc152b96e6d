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

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from ...analysis.functions import is_tensor, tensor_functions
from ...choices import ChoiceError, one_of
from ...dialects.diagnostics import LocatedError
from ...dialects.tgraph.shaping import DeviceCopyOp
from ..optional import OptionalPass
from ..options import GroupDevices
from .shared.devices import DevicePlacement, Node, node_of, undetermined, variables_of


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
            _Inheritance(placement).run(self.default)
            if self.devices:
                _check_known(placement, self.devices)
            placement.finish()


class _Inheritance:
    """Gives devices to the operations and arguments that name none."""

    def __init__(self, placement: DevicePlacement):
        self.placed = placement
        self.args = [a for a in placement.block.args if is_tensor(a.type)]
        self.ops = [op for op in placement.ops if not isinstance(op, ReturnOp)]
        nodes: tuple[Node, ...] = (*self.args, *self.ops)
        self.position = {node: index for index, node in enumerate(nodes)}

    def run(self, default: str | None) -> None:
        for op in self.ops:  # variables are where the first access that names one is
            if (device := self.placed.named.get(op)) and variables_of(op):
                self.placed.put(op, device)
        for op in self.ops:
            if device := self.placed.named.get(op) or self._of_operands(op):
                self._put(op, device)
        for op in reversed(self.ops):
            if (device := self.placed.runs_on.get(op)) and not _is_border(op):
                for operand in op.operands:
                    self._put(node_of(operand), device)
        self._spread()
        for node in (*self.ops, *self.args):  # of the two, an error names an operation
            if self._device(node) is None:
                self._put(node, default or undetermined(node, self.placed.func))

    def _device(self, node: Node) -> str | None:
        if isinstance(node, BlockArgument):
            return self.placed.devices.get(node)
        return self.placed.runs_on.get(node)

    def _put(self, node: Node, device: str) -> None:
        """Places what is not placed yet."""
        if node not in self.position:  # not on tensors
            return
        if isinstance(node, BlockArgument):
            self.placed.put_argument(node, device)
        elif node not in self.placed.runs_on:
            for variable in variables_of(node):
                device = self.placed.devices.get(variable, device)
            self.placed.put(node, device)

    def _of_operands(self, op: Operation) -> str | None:
        values = (*variables_of(op), *op.operands)
        return next((d for v in values if (d := self.placed.devices.get(v))), None)

    def _spread(self) -> None:
        """What neither scan reached follows its nearest neighbour that is placed."""
        queue = deque(node for node in self.position if self._device(node))
        while queue:
            node = queue.popleft()
            device = self._device(node)
            assert device
            for neighbour in self._neighbours(node):
                if neighbour in self.position and self._device(neighbour) is None:
                    self._put(neighbour, device)
                    queue.append(neighbour)

    def _neighbours(self, node: Node) -> Iterator[Node]:
        """Users, then operands, in program order."""
        is_argument = isinstance(node, BlockArgument)
        results: list[SSAValue] = [node] if is_argument else [*node.results]
        users = {u.operation for r in results for u in r.uses} & self.position.keys()
        yield from sorted(users, key=self.position.__getitem__)
        if not is_argument and not _is_border(node):
            yield from map(node_of, node.operands)


def _is_border(op: Operation) -> bool:
    return isinstance(op, DeviceCopyOp)


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
