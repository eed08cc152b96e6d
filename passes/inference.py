"""Computes everything in a program that depends on known parameters alone.

    conv(%x, %w) * %scale + %shift     %w, %scale, %shift: parameters

    conv(%x, %v) + %shift              %v: a parameter, %w * %scale

Runs tgraph-simplify-inference, tgraph-fold-scale-axis, tgraph-channels-last and
tgraph-precompute, then evaluates `@precompute` with the reference interpreter.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument
from xdsl.transforms.canonicalize import CanonicalizePass

from ..analysis.functions import (
    argument_attributes,
    argument_names,
    set_argument_attributes,
)
from ..dialects.tgraph.base import NAME, PARAMETER, PRECOMPUTED
from ..dialects.tgraph.differentiation import GradientOp
from ..dialects.tgraph.reference.interpreter import run_reference
from ..model import Model
from . import driver
from .tgraph.channels_last import TGraphChannelsLast
from .tgraph.fold_scale_axis import TGraphFoldScaleAxis
from .tgraph.precompute import TGraphPrecompute
from .tgraph.simplify_inference import TGraphSimplifyInference

WITHOUT_VALUES = CanonicalizePass(), TGraphSimplifyInference(), TGraphChannelsLast()
"""The passes that pay even if parameters may change between runs."""

PASSES = (
    CanonicalizePass(),
    TGraphSimplifyInference(),
    TGraphFoldScaleAxis(),
    TGraphChannelsLast(),
    TGraphPrecompute(),
)


def simplified(ctx: Context, model: Model) -> Model:
    """Simplifies the module of `model` in place. Returns the model with the values of
    the parameters that the module then takes.

    New parameters are called `precomputed.0`, ..., and come last. Parameters without
    values count as inputs, because values that depend on them would be computed in
    every run. A program stays as it is if it asks for gradients or has a `@precompute`.

    **Reorders floating-point operations**: values differ by rounding.
    """
    module = model.module
    if not model.parameters or not _is_inference(module):
        return model
    main = _function(module, "main")
    assert main is not None
    unknown = unmark(module, model.parameters)
    precompute, computed = separated(ctx, module, model.parameters)
    _mark(main, unknown)
    values = dict(model.parameters)
    if precompute:
        names = argument_names(precompute).values()
        given = [model.parameters[name] for name in names]
        results = run_reference(precompute, given)
        values |= {name: results[n] for n, name in computed.items()}
    names = argument_names(module).values()
    kept = {name: values[name] for name in names if name in values}
    return replace(model, parameters=kept)


def separated(
    ctx: Context, module: ModuleOp, taken: Collection[str] = ()
) -> tuple[ModuleOp | None, Mapping[int, str]]:
    """Moves operations that depend on parameters alone to a separate program.

    Returns that program, whose inputs are parameters, or None if there is nothing to
    move; and, by the number of each of its results, the name of the parameter of
    `module` that takes the result. These names are not in `taken`.
    """
    driver.run(ctx, module, PASSES)
    main, split = _function(module, "main"), _function(module, "precompute")
    if main is None or split is None:
        return None, {}
    split.detach()
    split.sym_name = StringAttr("main")
    precompute = ModuleOp([split])
    unmark(precompute)
    return precompute, _name_computed(main, taken)


def simplify_without_values(ctx: Context, module: ModuleOp) -> None:
    """Simplifies an inference program whose parameters may change between runs.

    **Reorders floating-point operations**: values differ by rounding.
    """
    driver.run(ctx, module, WITHOUT_VALUES)


def _is_inference(module: ModuleOp) -> bool:
    has_gradients = any(isinstance(op, GradientOp) for op in module.walk())
    return not has_gradients and _function(module, "precompute") is None


def _function(module: ModuleOp, name: str) -> FuncOp | None:
    functions = (op for op in module.ops if isinstance(op, FuncOp))
    return next((func for func in functions if func.sym_name.data == name), None)


def unmark(module: ModuleOp, known: Collection[str] = ()) -> list[BlockArgument]:
    """Turns parameters of `@main` that are not `known` into inputs. Returns these."""
    func = _function(module, "main")
    assert func is not None
    attributes = argument_attributes(func)
    unknown: list[BlockArgument] = []
    for argument, own in zip(func.args, attributes, strict=True):
        name = own.get(NAME)
        is_known = isinstance(name, StringAttr) and name.data in known
        if not is_known and own.pop(PARAMETER, None):
            unknown.append(argument)
    set_argument_attributes(func, attributes)
    return unknown


def _mark(func: FuncOp, arguments: Sequence[BlockArgument]) -> None:
    attributes = argument_attributes(func)
    for argument in arguments:
        attributes[argument.index][PARAMETER] = UnitAttr()
    set_argument_attributes(func, attributes)


def _name_computed(func: FuncOp, taken: Collection[str]) -> Mapping[int, str]:
    """Names the arguments that take precomputed results. Returns the names by the
    number of the result."""
    named: dict[int, str] = {}
    attributes = argument_attributes(func)
    for each in attributes:
        number = each.pop(PRECOMPUTED, None)
        if isinstance(number, IntegerAttr):
            name = f"precomputed.{number.value.data}"
            while name in taken:
                name += "_"
            each[NAME] = StringAttr(name)
            named[number.value.data] = name
    set_argument_attributes(func, attributes)
    return named
