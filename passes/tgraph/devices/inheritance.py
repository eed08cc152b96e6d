"""Gives nodes that name no device that of their operands, or else of their users."""

from collections import deque
from collections.abc import Iterator

from xdsl.dialects.func import ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from ....analysis.functions import is_tensor
from ....dialects.tgraph.shaping import DeviceCopyOp
from .placement import DevicePlacement, Placeable, node_of, undetermined, variables_of


class Inheritance:
    """Gives devices to the operations and arguments that name none."""

    def __init__(self, placement: DevicePlacement):
        self.placed = placement
        self.args = [a for a in placement.block.args if is_tensor(a.type)]
        self.ops = [op for op in placement.ops if not isinstance(op, ReturnOp)]
        nodes: tuple[Placeable, ...] = (*self.args, *self.ops)
        self.position = {node: index for index, node in enumerate(nodes)}

    def run(self, default: str | None) -> None:
        for op in self.ops:  # a variable follows its first access with a device
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
        for node in (*self.ops, *self.args):  # an error names an operation if it can
            if self._device(node) is None:
                self._put(node, default or undetermined(node, self.placed.func))

    def _device(self, node: Placeable) -> str | None:
        if isinstance(node, BlockArgument):
            return self.placed.devices.get(node)
        return self.placed.runs_on.get(node)

    def _put(self, node: Placeable, device: str) -> None:
        """Places `node` unless it is placed already."""
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
        """Places each node that neither scan reached where its nearest placed node is,
        in the graph of users and operands."""
        queue = deque(node for node in self.position if self._device(node))
        while queue:
            node = queue.popleft()
            device = self._device(node)
            assert device
            for neighbor in self._neighbors(node):
                if neighbor in self.position and self._device(neighbor) is None:
                    self._put(neighbor, device)
                    queue.append(neighbor)

    def _neighbors(self, node: Placeable) -> Iterator[Placeable]:
        """Yields the users in program order, then the definitions of operands."""
        is_argument = isinstance(node, BlockArgument)
        results: list[SSAValue] = [node] if is_argument else [*node.results]
        users = {u.operation for r in results for u in r.uses} & self.position.keys()
        yield from sorted(users, key=self.position.__getitem__)
        if not is_argument and not _is_border(node):
            yield from map(node_of, node.operands)


def _is_border(op: Operation) -> bool:
    return isinstance(op, DeviceCopyOp)
