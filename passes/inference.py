"""A program whose parameters are known, with what depends on these alone computed.

    conv(%x, %w) * %scale + %shift     %w, %scale, %shift: parameters

    conv(%x, %v) + %shift              %v: a parameter, %w * %scale

Runs tgraph-simplify-inference, tgraph-fold-scale-axis and tgraph-precompute, then
`@precompute`, by the reference interpreter.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.transforms.canonicalize import CanonicalizePass

from ..analysis.functions import (
    argument_attributes,
    argument_names,
    set_argument_attributes,
    tensor_functions,
)
from ..dialects.tgraph.base import NAME
from . import driver
from .tgraph.fold_scale_axis import TGraphFoldScaleAxis
from .tgraph.precompute import PRECOMPUTED, TGraphPrecompute
from .tgraph.simplify_inference import TGraphSimplifyInference

if TYPE_CHECKING:
    from ..dialects.dtypes import Array

PASSES = (
    CanonicalizePass(),
    TGraphSimplifyInference(),
    TGraphFoldScaleAxis(),
    TGraphPrecompute(),
)


def precomputed(
    ctx: Context, module: ModuleOp, parameters: Mapping[str, "Array"]
) -> Mapping[str, "Array"]:
    """Changes `module`, with `@main` alone; returns the parameters that it takes then.

    `parameters` are the values of its arguments with `tgraph.name`, by that name. New
    ones are called `precomputed.0`, ..., and come last.

    **Reorders floating-point operations**: values differ by rounding.
    """
    from ..dialects.tgraph.reference.interpreter import run_reference

    driver.run(ctx, module, PASSES)
    functions = {func.sym_name.data: func for func, _ in tensor_functions(module)}
    computed: list[Array] = []
    if split := functions.get("precompute"):
        names = argument_names(module, "precompute").values()
        given = [parameters[name] for name in names]
        computed = run_reference(module, given, "precompute")
        split.detach()
        split.erase()
    main = functions["main"]
    values = {**parameters, **_named(main, computed, parameters)}
    names = argument_names(module).values()
    return {name: values[name] for name in names if name in values}


def _named(
    func: FuncOp, computed: "list[Array]", taken: Mapping[str, object]
) -> dict[str, "Array"]:
    """Gives names to the arguments that take what was computed."""
    named: dict[str, Array] = {}
    attributes = argument_attributes(func)
    for each in attributes:
        number = each.pop(PRECOMPUTED, None)
        if isinstance(number, IntegerAttr):
            name = f"precomputed.{number.value.data}"
            while name in taken:
                name += "_"
            each[NAME] = StringAttr(name)
            named[name] = computed[number.value.data]
    set_argument_attributes(func, attributes)
    return named
