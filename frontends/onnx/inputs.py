"""A model's inputs: makes an argument for each tensor, in sequences and optionals, too.

x: float[batch, 3]   with batch = 4, an argument `x` of 4x3
s: seq(float[3])     with s = 2, two arguments, `s[0]` and `s[1]`
o: optional(float)   with o = 1, an argument `o`; with o = 0, none
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx
from onnx import helper
from xdsl.dialects.builtin import TensorType

from ...dialects.diagnostics import LocatedError
from ...dialects.tgraph.base import LARGEST_SIZE, AnyTensor
from ...support.choices import one_of
from ..builder import element_type
from ..operators import Value
from ..unsupported import Unsupported, not_supported
from .sequences import Item, Items

_LONGEST = 1024
"""The most items of a sequence."""


@dataclass
class Inputs:
    """The inputs of the model called `model`, with `sizes` for its open dimensions."""

    model: str
    sizes: Mapping[str, int]
    argument: Callable[[str, AnyTensor], Value]
    """Makes an argument of this name and type."""

    _names: set[str] = field(default_factory=set[str])
    """The names of all open sizes."""

    _lacking: dict[str, None] = field(default_factory=dict[str, None])
    """The open sizes that `sizes` lacks, in order."""

    def items(self, inputs: Sequence[onnx.ValueInfoProto]) -> Mapping[str, Item]:
        """Makes the arguments of the inputs. Returns the inputs by name.

        Raises `LocatedError` if sizes are missing or unknown.
        """
        found = {value.name: self._item(value.name, value.type) for value in inputs}
        if self._lacking:
            listed = ", ".join(map(repr, self._lacking))
            raise LocatedError(
                f"{self.model}: the model has dimensions of unknown size, expected "
                f"sizes for {listed} (--sizes or sizes=)"
            )
        if unknown := [name for name in self.sizes if name not in self._names]:
            known = one_of(unknown[0], sorted(self._names) or ["none"])
            raise LocatedError(f"{self.model}: the model has no dimension {known}")
        return found

    def _item(self, name: str, type: onnx.TypeProto) -> Item:
        match type.WhichOneof("value"):
            case "tensor_type":
                return self.argument(name, self._tensor_type(name, type.tensor_type))
            case "sequence_type":
                inner = type.sequence_type.elem_type
                count = self._size(name, name, _LONGEST)
                return Items(
                    tuple(self._item(f"{name}[{k}]", inner) for k in range(count))
                )
            case "optional_type":
                inner = type.optional_type.elem_type
                count = self._size(name, name, 1)
                values = tuple(self._item(name, inner) for _ in range(count))
                return Items(values, is_optional=True)
            case _:
                raise LocatedError(
                    f"{self.model}: input {name!r} is not a tensor, a sequence or an "
                    "optional"
                )

    def _open(self, name: str, index: int, param: str) -> str:
        """The name of a dimension: `param`, or `input.index` if `param` is empty or
        `sizes` has that name. Tensors of a sequence may therefore differ."""
        place = f"{name}.{index}"
        return place if place in self.sizes or not param else param

    def _size(self, name: str, of: str, most: int = LARGEST_SIZE) -> int:
        """The value of the open size `name` of input `of`, at most `most`."""
        self._names.add(name)
        if name not in self.sizes:
            self._lacking[name] = None
        return self._checked(self.sizes.get(name, 0), of, most)

    def _checked(self, size: int, of: str, most: int = LARGEST_SIZE) -> int:
        if not 0 <= size <= most:
            raise LocatedError(
                f"{self.model}: input {of!r} has a dimension of size {size}, expected "
                f"0 to {most}"
            )
        return size

    def _tensor_type(self, name: str, tensor: onnx.TypeProto.Tensor) -> AnyTensor:
        if not tensor.HasField("shape"):
            raise LocatedError(
                f"{self.model}: input {name!r} has no shape, expected its dimensions"
            )
        shape = [
            self._checked(dim.dim_value, name)
            if dim.HasField("dim_value")
            else self._size(self._open(name, index, dim.dim_param), name)
            for index, dim in enumerate(tensor.shape.dim)
        ]
        try:
            dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        except KeyError:
            raise LocatedError(
                f"{self.model}: input {name!r} has elements of type "
                f"{tensor.elem_type}, which ONNX does not define"
            ) from None
        try:
            return TensorType(element_type(dtype), shape)
        except Unsupported as reason:
            raise LocatedError(
                not_supported(f"{self.model}: input {name!r}", reason)
            ) from None
