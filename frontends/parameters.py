"""Marks arguments that are the same in every run, with their names and values."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr

from ..analysis.functions import argument_attributes, set_argument_attributes
from ..dialects.dtypes import Array
from ..dialects.tgraph.base import NAME, PARAMETER
from ..dialects.tgraph.signature import signature
from ..model import Model
from ..support.ranges import indices
from ..support.slots import Input


class Parameter(NamedTuple):
    name: str

    value: object
    """An array or a sequence of numbers; None if only a run provides it."""


def with_parameters(module: ModuleOp, parameters: Mapping[int, Parameter]) -> Model:
    """Marks arguments of `@main`, by number, as parameters.

    Raises `ValueError` for a number without an argument or a value of the wrong shape,
    and `TypeError` for a value of the wrong element type.
    """
    if not parameters:
        return Model(module, {})
    io = signature(module)
    attributes = argument_attributes(io.function)
    values: dict[str, Array] = {}
    for number, (name, value) in sorted(parameters.items()):
        if not 0 <= number < len(io.inputs):
            raise ValueError(
                f"there is no argument {number}, expected {indices(len(io.inputs))}: "
                "JAX leaves out unused arguments unless keep_unused=True"
            )
        attributes[number] |= {NAME: StringAttr(name), PARAMETER: UnitAttr()}
        if value is not None:
            values[name] = _array(value, io.inputs[number], f"argument {number}")
    set_argument_attributes(io.function, attributes)
    return Model(module, values)


def _array(value: object, slot: Input, name: str) -> Array:
    """The value as an array of the argument's type: JAX converts 64 bits to 32."""
    array = np.asarray(value)
    if array.shape != slot.shape:
        raise ValueError(f"{name} has shape {array.shape}, expected {slot.shape}")
    if not np.can_cast(array.dtype, slot.dtype, "same_kind"):
        raise TypeError(
            f"{name} has elements of type {array.dtype}, expected {slot.dtype}"
        )
    return array.astype(slot.dtype, copy=False)
