"""`AtenCall`: one call of an ATen operation, with the helpers of all conversions.

Arguments have the names of the operation's schema. Tensors are SSA values; sizes are
integers or symbolic. A conversion takes an `AtenCall` and returns its result or, if the
operation has several results, a sequence of them. It raises `Unsupported` with the
reason if tgraph cannot express the call.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, TypeAlias, cast

from xdsl.ir import Attribute, SSAValue

from ...dialects.tgraph import base
from ...dialects.tgraph.base import AnyTensor, Shape
from ...dialects.tgraph.differentiation import GradientOp
from ...dialects.tgraph.shaping import ReshapeOp
from ..builder import ELEMENTS, TensorBuilder, axis_of, shape_of, type_of
from ..unsupported import Unsupported

Results: TypeAlias = SSAValue | Sequence[SSAValue | None]
"""The results of a conversion; None for a result without users."""


def element_of(dtype: Any) -> Attribute:
    """The element type for a `torch.dtype`."""
    name = str(dtype).removeprefix("torch.")
    if (element := ELEMENTS.get(name)) is None:
        raise Unsupported(f"with elements of type {name}")
    return element


@dataclass
class AtenCall(TensorBuilder):
    name: str
    """The operation's name, without the overload."""

    arguments: Mapping[str, Any]
    examples: Mapping[str, Any]
    """The arguments as PyTorch's fake tensors, which have no contents."""

    types: Sequence[AnyTensor]
    """The types of the results."""

    used: Collection[int]
    """The numbers of the results that have users, if there are several results."""

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.arguments.get(name, default)

    @property
    def type(self) -> AnyTensor:
        return self.types[0]

    @property
    def shape(self) -> Shape:
        return base.shape_of(self.types[0])

    @property
    def element(self) -> Attribute:
        return self.types[0].element_type

    def expect(self, name: str, *allowed: object) -> None:
        """Raises `Unsupported` if the argument `name` is not among `allowed`."""
        if (got := self.get(name, allowed[0])) not in allowed:
            expected = " or ".join(repr(value) for value in allowed)
            raise Unsupported(f"with {name} = {got!r}, expected {expected}")

    def operand(self, name: str, element: Attribute | None = None) -> Any:
        """The argument `name`: a number, or a tensor converted to `element`, which
        defaults to the element type of the result."""
        value = self[name]
        if not isinstance(value, SSAValue):
            return value
        return self.convert(cast(SSAValue, value), element or self.element)

    def tensor(self, name: str = "self", element: Attribute | None = None) -> SSAValue:
        """The argument `name` as a tensor of elements of type `element`, which defaults
        to that of the result. A number becomes a tensor of rank 0."""
        value = self.operand(name, element)
        if isinstance(value, SSAValue):
            return cast(SSAValue, value)
        return self.full(value, element or self.element, ())

    def common(self, *names: str) -> Attribute:
        """The element type to which PyTorch promotes the arguments `names`."""
        torch = import_module("torch")
        return element_of(torch.result_type(*(self.examples[name] for name in names)))

    def gradient(self, forward: "Conversion", *wrt: str) -> Sequence[SSAValue]:
        """The gradients of the first result of `forward` with respect to the arguments
        `wrt`, given the gradient `grad_output` of that result.

        The arguments in `wrt` are replaced by new values first. Otherwise, the gradient
        of an input would include the path through a weight computed from that input.
        """
        head = self["grad_output"]
        own = {n: self.emit(ReshapeOp, self[n], type=type_of(self[n])) for n in wrt}
        call = replace(self, arguments={**self.arguments, **own}, types=[type_of(head)])
        result = forward(replace(call, used={0}))
        of = result if isinstance(result, SSAValue) else result[0]
        op = GradientOp([cast(SSAValue, of)], list(own.values()), [head])
        op.location = self.location
        self.into.append(op)
        return op.res

    def axis(self, name: str = "dim", of: str = "self") -> int:
        rank = len(shape_of(self[of]))
        if not rank:
            raise Unsupported("on a tensor of rank 0")
        return axis_of(self[name], rank)

    def axes(self, name: str = "dim", of: str = "self") -> list[int]:
        """The axes that the argument `name` lists; all axes if it lists none."""
        rank = len(shape_of(self[of]))
        given = self.get(name)
        if given is None or given == []:
            return list(range(rank))
        axes: list[int] = [given] if isinstance(given, int) else given
        return [axis_of(axis, max(rank, 1)) for axis in axes] if rank else []


Conversion: TypeAlias = Callable[[AtenCall], Results]
