"""Infers devices: operations that must be on one device form a class (union-find)."""

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import ReturnOp
from xdsl.ir import BlockArgument, Operation

from ....analysis.functions import is_tensor
from ....dialects.diagnostics import LocatedError
from ....dialects.tgraph.shaping import DeviceCopyOp
from ....dialects.tgraph.structure import AssignOp, ReadOp
from .placement import (
    DevicePlacement,
    Placeable,
    described,
    node_of,
    undetermined,
    variables_of,
)


class Inference:
    """The classes of one function's operations and arguments, and their devices."""

    def __init__(self, placement: DevicePlacement, fallback: str | None):
        self.placed = placement
        self.fallback = fallback
        self.args = [a for a in placement.block.args if is_tensor(a.type)]
        self.ops = [op for op in placement.ops if not isinstance(op, ReturnOp)]
        self.classes = _Classes()

    def run(self) -> None:
        for argument in self.args:
            if device := self.placed.devices.get(argument):
                self.classes.say(argument, device)
        for op in self.ops:
            if device := self.placed.named.get(op):
                self.classes.say(op, device)
        for op in self.ops:
            for variable in variables_of(op):
                self.classes.unite(node_of(variable), op)
            for source in self._sources(op):
                if not (_is_loose(source, op) or self._is_crossed(source, op)):
                    self.classes.unite(source, op)
        if self.fallback and self._is_annotated():
            for op in self.ops:  # the fallback, not the device of an argument
                computes = op.operands and not isinstance(op, ReadOp | AssignOp)
                if computes and not self.classes.device_of(op):
                    self.classes.say(op, self.fallback)
        self._loose_ties()
        for op in self.ops:
            self.placed.put(op, self._device(op))
        for argument in self.args:
            self.placed.put_argument(argument, self._device(argument))

    def _sources(self, op: Operation) -> list[Placeable]:
        """The definitions of the tensors that `op` needs on its own device."""
        if isinstance(op, DeviceCopyOp):
            return []
        return [node_of(v) for v in op.operands if isinstance(v.type, TensorType)]

    def _is_crossed(self, source: Placeable, op: Operation) -> bool:
        """Whether a copy has to be inserted between `source` and `op` (Relay's
        RewriteAnnotatedOps)."""
        assert isinstance(source, Operation)
        made = self.placed.named.get(source)
        read = self.placed.named.get(op)
        if made is None and read is None:
            return False
        if read is None and isinstance(source, DeviceCopyOp):
            return False
        made, read = made or self.fallback, read or self.fallback
        return made is not None and read is not None and made != read

    def _is_annotated(self) -> bool:
        return any(not isinstance(op, DeviceCopyOp) for op in self.placed.named)

    def _loose_ties(self) -> None:
        """Unites, in program order, the operations that a copy may separate, unless
        their devices differ."""
        constants: list[tuple[Placeable, Operation]] = []
        for op in self.ops:
            for source in self._sources(op):
                if not _is_loose(source, op):
                    continue
                if isinstance(source, Operation) and self._is_anywhere(source):
                    constants.append((source, op))
                else:
                    self.classes.unite_if_possible(source, op)
        # A constant does not tie its readers to each other.
        tied: set[Placeable] = set()
        for source, op in constants:
            if source not in tied:
                self.classes.unite_if_possible(source, op)
                tied.add(source)

    def _is_anywhere(self, op: Operation) -> bool:
        return not op.operands and op not in self.placed.named

    def _device(self, node: Placeable) -> str:
        device = self.classes.device_of(node) or self.fallback
        return device or undetermined(node, self.placed.func)


def _is_loose(source: Placeable, op: Operation) -> bool:
    """Whether `source` and `op` may be on different devices, with an implicit copy."""
    return (
        isinstance(source, BlockArgument | ReadOp)
        or not source.operands
        or isinstance(op, AssignOp)
    )


class _Classes:
    """Union-find over operations and arguments; a class has at most one device."""

    def __init__(self) -> None:
        self._parent: dict[Placeable, Placeable] = {}
        self._said: dict[
            Placeable, tuple[str, Placeable]
        ] = {}  # of roots: the device, and the node that names it

    def _root(self, node: Placeable) -> Placeable:
        parent = self._parent
        while (above := parent.get(node, node)) is not node:
            parent[node] = parent.get(above, above)
            node = above
        return node

    def device_of(self, node: Placeable) -> str | None:
        said = self._said.get(self._root(node))
        return said and said[0]

    def say(self, node: Placeable, device: str) -> None:
        self._said[self._root(node)] = (device, node)

    def unite(self, source: Placeable, op: Operation) -> None:
        """Unites two classes. Raises `LocatedError` if their devices differ."""
        if not self.unite_if_possible(source, op):
            (here, by), (there, other) = (
                self._said[self._root(n)] for n in (source, op)
            )
            raise LocatedError(
                f"{op.name} is on {here} because of {described(by)} and on {there} "
                "because of "
                f"{described(other)}; only tgraph.device_copy crosses devices",
                op,
            )

    def unite_if_possible(self, source: Placeable, op: Operation) -> bool:
        """Unites two classes, or returns False if their devices differ."""
        a, b = self._root(source), self._root(op)
        said_a, said_b = self._said.get(a), self._said.get(b)
        if said_a and said_b and said_a[0] != said_b[0]:
            return False
        if a is not b:
            self._parent[a] = b
            if said_a:
                self._said[b] = said_a
        return True
