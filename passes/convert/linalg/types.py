"""Replaces the types of all values of a module."""

from collections.abc import Callable
from functools import cache
from typing import cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    FunctionType,
    IntegerType,
    ModuleOp,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.rewriter import Rewriter

from ....dialects.tgraph.base import AnyMemRef


def retype(module: ModuleOp, change: Callable[[Attribute], Attribute]) -> None:
    """Replaces the type of every value, function, and global by what `change` returns.

    Constants get the changed element type.
    """
    changed = cache(change)

    for op in module.walk():
        values = [*op.results]
        for region in op.regions:
            values += [argument for block in region.blocks for argument in block.args]
        for value in values:
            type = changed(value.type)
            if type is not value.type:
                Rewriter.replace_value_with_new_type(value, type)
        if isinstance(op, FuncOp):
            signature = op.function_type
            op.properties["function_type"] = FunctionType.from_attrs(
                ArrayAttr(map(changed, signature.inputs)),
                ArrayAttr(map(changed, signature.outputs)),
            )
        elif isinstance(op, memref.GlobalOp):
            op.properties["type"] = changed(op.type)
            value = op.initial_value
            if isinstance(value, DenseIntOrFPElementsAttr):
                element = cast(AnyMemRef, op.properties["type"]).element_type
                tensor = TensorType(cast(IntegerType, element), value.get_shape())
                if tensor != value.type:
                    op.properties["initial_value"] = DenseIntOrFPElementsAttr(
                        tensor, value.data
                    )
