"""Partially known types, and inference of the rest.

An unknown size is `?`, an unknown element type `none`: `tensor<?x4xnone>`. Ranks are
always known; a known size may be symbolic. An operation's rule (`TensorOp.refine`)
states here which sizes are equal, or follow from each other, in both directions;
`tgraph-infer-shapes` applies the rules until nothing changes. Values are numbered: an
operation's inputs from 0, then its results.
"""

from collections.abc import Sequence
from typing import TypeAlias, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, NoneType, TensorType
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from ..sizes.dims import DimsAttr, encoding_of, known_sizes, static
from ..sizes.symbolic import exceeds
from .elements import holds

Place: TypeAlias = tuple[int, int]
"""A value and one of its dimensions."""

UNKNOWN = DYNAMIC_INDEX


def is_complete(type: TensorType[Attribute] | MemRefType[Attribute]) -> bool:
    """Whether all sizes and the element type are known."""
    if isinstance(type.element_type, NoneType):
        return False
    if isinstance(type, MemRefType):
        return UNKNOWN not in type.get_shape()
    return UNKNOWN not in _sizes(type)


def _sizes(type: TensorType[Attribute]) -> tuple[int, ...]:
    if not isinstance(type.encoding, DimsAttr):
        return type.get_shape()
    return cast(tuple[int, ...], known_sizes(type.get_shape(), type.encoding))


class PartialTypes:
    """The types of one operation's inputs and results, as far as they are known.

    All methods add what follows; they raise `VerifyException` if known types are
    inconsistent.
    """

    def __init__(
        self,
        inputs: Sequence[TensorType[Attribute]],
        results: Sequence[TensorType[Attribute]],
    ):
        types = (*inputs, *results)
        self.inputs = len(inputs)
        self.values = range(len(types))
        self.shapes = [list(_sizes(type)) for type in types]
        self.elements = [type.element_type for type in types]
        self.changed: set[int] = set()

    def is_known(self, value: int) -> bool:
        """Whether all sizes of the value are known."""
        return UNKNOWN not in self.shapes[value]

    def rank(self, value: int) -> int:
        return len(self.shapes[value])

    def size(self, place: Place) -> int:
        return self.shapes[place[0]][place[1]]

    def check_rank(self, value: int, rank: int) -> None:
        if self.rank(value) != rank:
            raise VerifyException(
                f"{self._name(value)} has type {self._type(value)}, expected rank "
                f"{rank}"
            )

    def set_size(self, place: Place, size: int) -> None:
        """States that the size at `place` is `size`."""
        value, dim = place
        known = self.shapes[value][dim]
        if known == size:
            return
        if known != UNKNOWN or exceeds(0, size):
            raise VerifyException(
                f"{self._name(value)} has type {self._type(value)}, but dimension "
                f"{dim} has size {size} by the other types"
            )
        self.shapes[value][dim] = size
        self.changed.add(value)

    def same_size(self, *places: Place) -> None:
        """States that the sizes at all these places are equal."""
        source = next((p for p in places if self.size(p) != UNKNOWN), None)
        if source is None:
            return
        size = self.size(source)
        for place in places:
            if self.size(place) not in (size, UNKNOWN):
                raise VerifyException(
                    f"{self._name(place[0])} has type {self._type(place[0])}, expected "
                    f"size {size} along dimension {place[1]}, like dimension "
                    f"{source[1]} "
                    f"of {self._name(source[0])} of type {self._type(source[0])}"
                )
            self.set_size(place, size)

    def same_shape(self, *values: int) -> None:
        """States that the shapes of all these values are equal."""
        rank = self.rank(values[0])
        for value in values:
            self.check_rank(value, rank)
        for dim in range(rank):
            self.same_size(*((value, dim) for value in values))

    def multiple(self, place: Place, factor: int, of: Place) -> None:
        """States that the size at `place` is `factor` times the size at `of`."""
        size = self.size(place)
        if (part := self.size(of)) != UNKNOWN:
            self.set_size(place, factor * part)
        elif size != UNKNOWN:
            if factor < 1 or size % factor:
                raise VerifyException(
                    f"{self._name(place[0])} has size {size} along dimension "
                    f"{place[1]}, expected a multiple of {factor}"
                )
            self.set_size(of, size // factor)

    def set_element(self, value: int, element: Attribute) -> None:
        """States that the value has this element type."""
        known = self.elements[value]
        if isinstance(element, NoneType) or known == element:
            return
        if not isinstance(known, NoneType):
            raise VerifyException(
                f"{self._name(value)} has type {self._type(value)}, expected elements "
                f"of type {element}"
            )
        self.elements[value] = element
        self.changed.add(value)

    def same_element(self, *values: int) -> None:
        """States that the element types of all these values are equal."""
        for value in values:
            if not isinstance(element := self.elements[value], NoneType):
                for other in values:
                    self.set_element(other, element)
                return

    def wider_element(self, wide: int, *narrow: int) -> None:
        """States that the element type of `wide` represents all numbers of the others.
        Unknown element types are taken to be equal to a known one."""
        values = (wide, *narrow)
        elements = [self.elements[value] for value in values]
        known = [e for e in elements if not isinstance(e, NoneType)]
        for value in values if known else ():
            if isinstance(self.elements[value], NoneType):
                self.set_element(value, known[0])
        element = self.elements[wide]
        for value in narrow:
            if self.elements[value] != element and not holds(
                element, self.elements[value]
            ):
                raise VerifyException(
                    f"{self._name(value)} has type {self._type(value)}, expected "
                    f"elements that {element} represents exactly"
                )

    def _name(self, value: int) -> str:
        if value < self.inputs:
            return f"operand {value}"
        if len(self.values) == self.inputs + 1:
            return "the result"
        return f"result {value - self.inputs}"

    def _type(self, value: int) -> TensorType[Attribute]:
        shape = self.shapes[value]
        return TensorType(self.elements[value], static(shape), encoding_of(shape, None))
