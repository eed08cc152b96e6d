"""`tgraph-precompute`: moves computation on parameters into a function that runs once.

    func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32> {tgraph.parameter},
                    %s: tensor<8x8xf32> {tgraph.parameter}) -> tensor<4x8xf32> {
      %0 = tgraph.multiply %w, %s : tensor<8x8xf32>
      %1 = tgraph.dot_general %x, %0 {...}
      func.return %1 : tensor<4x8xf32>
    }

    func.func @precompute(%w: tensor<8x8xf32> {tgraph.parameter},
                          %s: tensor<8x8xf32> {tgraph.parameter}) -> tensor<8x8xf32> {
      %0 = tgraph.multiply %w, %s : tensor<8x8xf32>
      func.return %0 : tensor<8x8xf32>
    }
    func.func @main(
        %x: tensor<4x8xf32>,
        %0: tensor<8x8xf32> {tgraph.parameter, tgraph.precomputed = 0 : i32})
        -> tensor<4x8xf32> {
      %1 = tgraph.dot_general %x, %0 {...}
      func.return %1 : tensor<4x8xf32>
    }

Run `@precompute` once, then pass its results to `@main` as the last arguments, in
order; `tgraph.precomputed` holds the index. The remaining arguments of `@main` keep
their order. Parameters that only `@precompute` reads are removed from `@main`.

The pass folds small operations on constants into constants, with the semantics of the
reference interpreter.

Views, broadcasts, and values larger than the parameters that they are computed from
stay in `@main`: storing them costs memory, and computing them costs little.

Needs: level 1 before fusion.
Leaves: level 1, with one more function if there is anything to precompute.
Does not: treat variables as parameters (their contents change), or run the program.

NNVM's PrecomputePrune splits its graph in the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr, i32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.functions import (
    Attributes,
    argument_attributes,
    erase_unused,
    set_argument_attributes,
    tensor_functions,
)
from ...dialects.diagnostics import LocatedError
from ...dialects.tgraph.base import (
    DEVICE,
    GROUP,
    PARAMETER,
    PRECOMPUTED,
    TensorOp,
    VariableType,
    element_bytes,
    is_static,
    tensor_type_of,
)
from ...dialects.tgraph.elements import is_complex
from ...dialects.tgraph.elementwise import ElementwiseOp
from ...dialects.tgraph.partial import is_complete
from ...dialects.tgraph.shaping import ConstantOp, IotaOp, ViewOp
from .shared.channels import parameter_values, replace

if TYPE_CHECKING:
    from ...dialects.dtypes import Array


@dataclass(frozen=True)
class TGraphPrecompute(ModulePass):
    """Splits off computation on parameters, and folds small constants.

    function: the function to split.
    fold_bytes: the largest constant to fold, in bytes.
    """

    name = "tgraph-precompute"

    function: str = "main"
    fold_bytes: int = 4096

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func, block in tensor_functions(op):
            if func.sym_name.data == self.function:
                _fold_constants(block, self.fold_bytes)
                _split(op, func, block)
                erase_unused(block)


def _bytes(value: SSAValue) -> int:
    type = tensor_type_of(value.type)
    return prod(type.get_shape()) * element_bytes(type.element_type)


# Constants


def _fold_constants(block: Block, limit: int) -> None:
    """Computes operations on constants whose values all have at most `limit` bytes.

    An elementwise operation on constants of one number each is computed on the numbers.
    """
    constant: dict[SSAValue, TensorOp] = {}
    for op in block.ops:
        if isinstance(op, TensorOp) and len(op.res) == 1 and not op.outs:
            if all(value in constant for value in op.inputs):
                constant[op.result] = op
    if all(map(_costs_nothing, constant.values())):
        return  # without importing NumPy
    known: dict[SSAValue, Array] = {}  # of rank 0 if all elements are equal
    for op in constant.values():
        if any(value not in known for value in op.inputs):
            continue
        if (array := _evaluate(op, [known[v] for v in op.inputs], limit)) is None:
            continue
        if _costs_nothing(op) or is_complex(op.result.type.element_type):
            known[op.result] = array  # complex numbers have no constants
            continue
        new = _constant(op, array)
        known[new.result] = array
        Rewriter.insert_op(new, InsertPoint.before(op))
        replace(op, new.result)


def _costs_nothing(op: TensorOp) -> bool:
    return isinstance(op, ConstantOp | IotaOp | ViewOp)


def _evaluate(op: TensorOp, inputs: "Sequence[Array]", limit: int) -> "Array | None":
    """The result's elements, or one number if all are equal; None if they exceed
    `limit` bytes or cannot be computed."""
    import numpy as np

    from ...dialects.dtypes import constant, numpy_dtype
    from ...dialects.tgraph.reference import evaluation as reference

    types = [tensor_type_of(value.type) for value in (op.result, *op.inputs)]
    if not reference.can_evaluate(op) or not all(map(is_static, types)):
        return None
    try:
        dtype = numpy_dtype(op.result.type.element_type, op)
    except LocatedError:
        return None  # NumPy has no such elements
    if isinstance(op, ConstantOp) and op.splat is not None:
        return constant(op.splat, dtype)
    if isinstance(op, ElementwiseOp) and all(array.ndim == 0 for array in inputs):
        return reference.evaluate(op, inputs)
    if any(_bytes(value) > limit for value in (op.result, *op.inputs)):
        return None
    full = [
        np.broadcast_to(array, tensor_type_of(value.type).get_shape())
        for array, value in zip(inputs, op.inputs, strict=True)
    ]
    return reference.evaluate(op, full)


def _constant(op: TensorOp, array: "Array") -> ConstantOp:
    from ...dialects.dtypes import constant_attribute

    element_type = op.result.type.element_type
    new = ConstantOp(constant_attribute(array, element_type), op.result.type)
    new.attributes = dict(op.attributes)
    new.location = op.location
    return new


# Parameters


def _split(module: ModuleOp, func: FuncOp, block: Block) -> None:
    attributes = argument_attributes(func)
    _check_parameters(func, block, attributes)
    chosen = _worth_precomputing(parameter_values(func, block), block)
    erase_unused(block)  # an unused reader would require its operands
    frontier = _frontier(block, chosen)
    if not frontier:
        return
    if any(
        isinstance(f, FuncOp) and f.sym_name.data == "precompute" for f in module.ops
    ):
        raise LocatedError(
            "tgraph-precompute adds a function @precompute, but the module "
            "already has one",
            func,
        )
    Rewriter.insert_op(
        _outlined(func, block, frontier, attributes), InsertPoint.before(func)
    )
    for index, value in enumerate(frontier):
        argument = block.insert_arg(value.type, len(block.args))
        argument.name_hint = value.name_hint
        value.replace_all_uses_with(argument)
        attributes.append(
            {PARAMETER: UnitAttr(), PRECOMPUTED: IntegerAttr(index, i32)}
            | _device(value.owner)
        )
    before = {argument for argument in block.args if argument.uses}
    erase_unused(block)
    for argument in list(block.args):
        if argument in before and not argument.uses:
            del attributes[argument.index]
            block.erase_arg(argument)
    set_argument_attributes(func, [])
    func.update_function_type()
    set_argument_attributes(func, attributes)


def _device(op: Operation | Block) -> Attributes:
    """The attributes that name an operation's device or group, before placement."""
    if not isinstance(op, Operation):
        return {}
    return {n: op.attributes[n] for n in (DEVICE, GROUP) if n in op.attributes}


def _check_parameters(
    func: FuncOp, block: Block, attributes: Sequence[Attributes]
) -> None:
    for argument, attrs in zip(block.args, attributes, strict=True):
        if PARAMETER not in attrs:
            continue
        what = f"argument {argument.index} of @{func.sym_name.data} has {PARAMETER}"
        if isinstance(argument.type, VariableType):
            raise LocatedError(
                f"{what} and type {argument.type}, expected a tensor: its "
                "contents must not change between runs",
                func,
            )
        if not is_complete(tensor_type_of(argument.type)):
            raise LocatedError(
                f"{what} and type {argument.type}, expected a static shape (see "
                "tgraph-infer-shapes)",
                func,
            )


def _worth_precomputing(parameters: set[SSAValue], block: Block) -> set[SSAValue]:
    """The values that take no more bytes than the parameters they are computed from."""
    chosen: set[SSAValue] = set()
    sizes: dict[SSAValue, int] = {  # of the parameters that a value depends on
        value: _bytes(value) for value in block.args if value in parameters
    }
    for op in block.ops:
        if not isinstance(op, TensorOp) or not parameters.issuperset(op.res):
            continue
        size = sum(sizes.get(value, 0) for value in dict.fromkeys(op.inputs))
        for result in op.res:
            sizes[result] = size
            if isinstance(op, ViewOp) or not is_static(tensor_type_of(result.type)):
                continue
            if size and _bytes(result) <= size:
                chosen.add(result)
                sizes[result] = _bytes(result)
    return chosen


def _frontier(block: Block, chosen: set[SSAValue]) -> list[SSAValue]:
    """The chosen values that the remaining operations read, in program order."""
    needed: set[SSAValue] = set()
    for op in reversed(list(block.ops)):
        moves = bool(op.results) and chosen.issuperset(op.results)
        is_free = isinstance(op, TensorOp) and not op.outs
        if moves or (is_free and needed.isdisjoint(op.results)):
            continue
        needed.update(op.operands)
    needed &= chosen
    return [result for op in block.ops for result in op.results if result in needed]


def _outlined(
    func: FuncOp,
    block: Block,
    frontier: Sequence[SSAValue],
    attributes: Sequence[Attributes],
) -> FuncOp:
    """The function that computes the frontier from parameters."""
    needed = set(frontier)
    members: list[Operation] = []
    for op in reversed(list(block.ops)):
        if not needed.isdisjoint(op.results):
            needed.update(op.operands)
            members.append(op)
    arguments = [argument for argument in block.args if argument in needed]
    body = Block(arg_types=[argument.type for argument in arguments])
    mapping: dict[SSAValue, SSAValue] = {}
    for old, new in zip(arguments, body.args, strict=True):
        new.name_hint = old.name_hint
        mapping[old] = new
    for op in reversed(members):
        body.add_op(op.clone(mapping))
    body.add_op(ReturnOp(*(mapping[value] for value in frontier)))
    new = FuncOp(
        "precompute",
        ([a.type for a in arguments], [value.type for value in frontier]),
        Region(body),
        func.sym_visibility,
    )
    new.location = func.location
    set_argument_attributes(new, [attributes[a.index] for a in arguments])
    return new
