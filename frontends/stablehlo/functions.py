"""Converts a module of StableHLO to tgraph: functions, arguments, donation."""

from collections.abc import Iterable, Mapping
from typing import cast

from xdsl.dialects.builtin import (
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
    UnregisteredOp,
    i32,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from ...analysis.functions import (
    argument_attributes,
    result_attributes,
    set_argument_attributes,
    set_result_attributes,
)
from ...dialects.diagnostics import LocatedError, errors_at, name_of, remark
from ...dialects.sizes.dims import REQUIRES, Dims, DimsAttr
from ...dialects.tgraph.base import (
    DONATED,
    NAME,
    RESULT,
    AnyTensor,
    VariableType,
    is_static,
)
from ...dialects.tgraph.structure import AssignOp, ReadOp
from ..builder import name_hint
from ..unsupported import Unsupported, not_supported
from .blocks import KNOWN, Inliner
from .conversion import check_type
from .custom_calls import computations
from .quantized import stored
from .symbols import Demands
from .tokens import ALIASING, erase_tokens

_DONOR = "jax.buffer_donor"
_INFO = "jax.result_info"
_PRIVATE = StringAttr("private")


def convert(module: ModuleOp) -> None:
    """Converts the module in place. Drops shardings.

    Raises one `LocatedError` with all unsupported operations.
    """
    erase_tokens(module)
    functions = {f.sym_name.data: f for f in module.ops if isinstance(f, FuncOp)}
    helpers = {name for op in module.walk() for name in computations(op)}
    public = [
        func
        for name, func in functions.items()
        if func.body.blocks and func.sym_visibility != _PRIVATE and name not in helpers
    ]
    if not public:
        raise LocatedError("there is no public function to convert", module)
    for op in list(module.ops):
        if isinstance(op, UnregisteredOp) and name_of(op) == "sdy.mesh":
            Rewriter.erase_op(op)
    inliner = Inliner(functions)
    converted = {func: _convert(func, inliner) for func in public}
    if inliner.unsupported:
        raise _error(module, inliner.unsupported)
    for func in functions.values():
        if func in converted:
            Rewriter.replace_op(func, converted[func], [])
        elif func.sym_visibility == _PRIVATE or func.sym_name.data in helpers:
            Rewriter.erase_op(func)
    for name in list(module.attributes):
        if name.startswith(("jax.", "mhlo.")):
            del module.attributes[name]


def _donations(func: FuncOp) -> list[int | None]:
    """For each argument, the number of the result that it is donated to, or None."""
    arguments = argument_attributes(func)
    inputs = func.function_type.inputs.data
    outputs = func.function_type.outputs.data
    donations: list[int | None] = [None] * len(inputs)

    def donate(index: int, candidates: Iterable[int]) -> None:
        free = (
            result
            for result in candidates
            if outputs[result] == inputs[index] and result not in donations
        )
        donations[index] = next(free, None)
        if donations[index] is None:
            remark(
                f"argument {index} of @{func.sym_name.data} is donated, but no "
                f"result of type {inputs[index]} is left for it; other buffers may use "
                "its memory",
                func,
            )

    for index, attributes in enumerate(arguments):
        if isinstance(number := attributes.get(ALIASING), IntegerAttr):
            aliased = number.value.data
            donate(index, [aliased] if 0 <= aliased < len(outputs) else [])
    for index, attributes in enumerate(arguments):
        if _DONOR in attributes and ALIASING not in attributes:
            donate(index, [n for n, type in enumerate(outputs) if _is_static(type)])
    return donations


def _is_static(type: Attribute) -> bool:
    """Whether equality of types implies equal sizes: two `?` may differ."""
    return not isinstance(type, TensorType) or is_static(cast(AnyTensor, type))


def _name(attributes: Mapping[str, Attribute]) -> str:
    name = attributes.get(NAME)
    return name.data if isinstance(name, StringAttr) else ""


def _of_result(attributes: dict[str, Attribute]) -> dict[str, Attribute]:
    """tgraph's attributes of a result, with JAX's name for it."""
    info = attributes.get(_INFO)
    return ({NAME: info} if info else {}) | _ours(attributes)


def _ours(attributes: dict[str, Attribute]) -> dict[str, Attribute]:
    return {
        name: value for name, value in attributes.items() if name.startswith("tgraph.")
    }


def _of_argument(
    attributes: dict[str, Attribute], result: int | None
) -> dict[str, Attribute]:
    """tgraph's attributes of an argument; `result` is the result it is donated to."""
    ours = _ours(attributes)
    if result is not None:
        return ours | {RESULT: IntegerAttr(result, i32)}
    is_donated = ALIASING in attributes or _DONOR in attributes
    return ours | {DONATED: UnitAttr()} if is_donated else ours


def _convert(func: FuncOp, inliner: Inliner) -> FuncOp:
    """Returns the function at level 1; `func` is unchanged."""
    for index, type in enumerate(func.function_type.inputs):
        try:
            check_type(stored(type))
        except Unsupported as reason:
            inliner.unsupported[func] = not_supported(f"argument {index}", reason)
    donations = _donations(func)
    names = [name_hint(_name(given)) for given in argument_attributes(func)]
    types = inliner.argument_types(func)
    block = Block(
        arg_types=[
            type if result is None else VariableType(cast(AnyTensor, type))
            for type, result in zip(types, donations, strict=True)
        ]
    )
    ops: list[Operation] = []
    arguments: list[SSAValue] = []
    for index, argument in enumerate(block.args):
        argument.name_hint = names[index] or f"arg{index}"
        if donations[index] is None:
            arguments.append(argument)
            continue
        read = ReadOp(argument)
        ops.append(read)
        arguments.append(read.result)
    results = inliner.function(func, arguments, ops)
    for argument, result in zip(block.args, donations, strict=True):
        if result is not None:
            ops.append(AssignOp(argument, results[result]))
    kept = [index for index in range(len(results)) if index not in donations]
    ops.append(ReturnOp(*(results[index] for index in kept)))
    block.add_ops(ops)
    new = FuncOp(
        func.sym_name.data,
        (list(block.arg_types), [results[index].type for index in kept]),
        Region(block),
        func.sym_visibility,
    )
    new.location = func.location
    if demands := inliner.demands.open():
        new.attributes[REQUIRES] = DimsAttr(Dims(tuple(demands)))
        inliner.demands = Demands()
    attributes = map(_of_argument, argument_attributes(func), donations)
    set_argument_attributes(new, list(attributes))
    of_results = result_attributes(func)
    set_result_attributes(new, [_of_result(of_results[index]) for index in kept])
    return new


def _error(module: ModuleOp, unsupported: Mapping[Operation, str]) -> LocatedError:
    """One error with a line for each unsupported operation, located at the first."""
    found: list[tuple[Operation, str]] = []
    for op in module.walk():
        if op in unsupported:
            found.append((op, unsupported[op]))
        elif isinstance(op, UnregisteredOp) and (name := name_of(op)) not in KNOWN:
            found.append((op, not_supported(name)))
    return errors_at(found)
