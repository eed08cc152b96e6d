"""Converts custom calls by the names that JAX gives them."""

import re
from collections.abc import Mapping

from xdsl.dialects.builtin import (
    ArrayAttr,
    IntegerAttr,
    NameLoc,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.traits import SymbolTable

from ...dialects.diagnostics import path_of
from ...dialects.tgraph import bodies
from ...dialects.tgraph.base import shape_of
from ...dialects.tgraph.callbacks import HostCallbackOp
from ..unsupported import Unsupported
from .conversion import Conversion, Converter, Values, type_of
from .matrices import ROUTINE, ROUTINES

CHECKPOINT_NAME = "checkpoint_name"
"""The custom call that represents JAX's primitive `name`. Its `backend_config` is the
name; see `frontends.jax.lower`.
"""


def _name(c: Conversion) -> Values:
    """Adds JAX's name of a value to its location: `jit(step)/jvp()/name[h0]`."""
    place, name = c.op.location, c.attribute("backend_config")
    maker = c.inputs[0].owner
    if not isinstance(maker, Operation) or len(maker.results) > 1:
        return c.inputs  # an argument, or one of several results with one location
    if isinstance(place, NameLoc) and isinstance(name, StringAttr):
        path = f"{place.desc.data}[{name.data}]"
        maker.location = NameLoc(StringAttr(path), place.location)
    return c.inputs


def computations(op: Operation) -> list[str]:
    """The names of the functions that a custom call refers to."""
    name = "called_computations"
    match op.properties.get(name, op.attributes.get(name)):
        case ArrayAttr(data=names):
            return [n.string_value() for n in names if isinstance(n, SymbolRefAttr)]
        case _:
            return []


def _approx_top_k(c: Conversion) -> Values:
    """Computes the exact first k elements."""
    comparators = [SymbolTable.lookup_symbol(c.op, n) for n in computations(c.op)]
    number = c.option("reduction_dim")
    comparator = comparators[0] if comparators else None
    if not isinstance(comparator, FuncOp) or not isinstance(number, IntegerAttr):
        raise Unsupported("without a comparator and a dimension")
    types = [result.type for result in c.op.results]
    dimension: int = number.value.data
    count = shape_of(type_of(c.op.results[0]))[dimension]
    return c.emit_all(
        bodies.SortOp,
        c.inputs[: len(types)],
        types,
        [c.converted(comparator.body.block)],
        dimension=IntegerAttr(dimension, i64),
        count=IntegerAttr(count, i64),
    )


CALLBACK = r"xla_.*python_[a-z]+_callback"
"""The custom calls of Python functions, which have numbers."""


def _host_callback(c: Conversion) -> Values:
    number = c.option("index")
    if not isinstance(number, IntegerAttr):
        raise Unsupported(": it has no number of a Python function")
    properties: dict[str, Attribute] = {"callback": IntegerAttr(number.value.data, i64)}
    if c.number_in("has_side_effect", 0):
        properties["has_side_effect"] = UnitAttr()
    types = [result.type for result in c.op.results]
    return c.emit_all(HostCallbackOp, c.inputs, types, **properties)


def _custom_call(c: Conversion) -> Values:
    target = c.attribute("call_target_name")
    name = target.data if isinstance(target, StringAttr) else ""
    routine = re.fullmatch(ROUTINE, name)
    if routine and routine[1] in ROUTINES:
        return ROUTINES[routine[1]].converted(c)
    if name in _TARGETS:
        return _TARGETS[name](c)
    if re.fullmatch(CALLBACK, name):
        return _host_callback(c)
    raise Unsupported(_explained(c, name, routine is not None))


def _explained(c: Conversion, name: str, is_routine: bool) -> str:
    """What the custom call is in JAX, for messages."""
    primitive = path_of(c.op).rpartition("/")[2]
    if is_routine and primitive:
        return f": it is JAX's {primitive}"
    return ""


def _as_it_is(c: Conversion) -> Values:
    """Drops calls that only state how a program is divided among devices."""
    return c.inputs


_TARGETS: Mapping[str, Converter] = {
    "ApproxTopK": _approx_top_k,
    CHECKPOINT_NAME: _name,
    "LayoutConstraint": _as_it_is,
    "Sharding": _as_it_is,
    "annotate_device_placement": _as_it_is,
}

CONVERSIONS: Mapping[str, Converter] = {
    "sdy.sharding_constraint": _as_it_is,
    "stablehlo.custom_call": _custom_call,
}
