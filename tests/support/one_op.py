"""Single operations on tensors or memrefs, and random arrays for them."""

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import (
    BFloat16Type,
    FunctionType,
    IntegerType,
    MemRefType,
    ModuleOp,
    Signedness,
    TensorType,
    f16,
    f32,
    f64,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region

from tensorplan.dialects.dtypes import Array
from tensorplan.dialects.tgraph.base import TensorOp, segments
from tensorplan.dialects.tgraph.reference.interpreter import run_reference

Rng = np.random.Generator

u8 = IntegerType(8, Signedness.UNSIGNED)
TYPES: dict[str, Attribute] = {
    "float64": f64,
    "float32": f32,
    "float16": f16,
    "bfloat16": BFloat16Type(),
    "bool": i1,
    "int8": i8,
    "uint8": u8,
    "int32": i32,
    "int64": i64,
}


def numbers(rng: Rng, shape: Sequence[int], dtype: str) -> Array:
    """A random array in a random layout: permuted, strided or reversed dimensions."""
    order = rng.permutation(len(shape))
    steps = [int(rng.choice([1, 1, 1, 2, -1])) for _ in shape]
    size = [shape[d] * abs(steps[d]) for d in order]
    if dtype == "bool":
        base = rng.random(size) < 0.5
    elif "int" in dtype:
        low = 0 if dtype.startswith("u") else -9
        base = rng.integers(low, 10, size).astype(dtype)
    elif dtype == "bfloat16":
        ml_dtypes = pytest.importorskip("ml_dtypes")
        base = rng.standard_normal(size).astype(ml_dtypes.bfloat16)
    else:
        base = rng.standard_normal(size).astype(dtype)
    base = np.asarray(base)
    inverse = np.argsort(order)
    return base.transpose(inverse)[*(slice(None, None, s) for s in steps), ...]


def tensor(shape: Sequence[int], dtype: str) -> TensorType[Attribute]:
    return TensorType(TYPES[dtype], shape)


def operation(
    cls: type[TensorOp],
    types: Sequence[TensorType[Attribute]],
    properties: dict[str, Attribute],
    result: TensorType[Attribute] | None = None,
    on_memrefs: bool = False,
    region: Region | None = None,
) -> TensorOp:
    """A verified operation on values of `types`, on tensors or memrefs."""

    def form(type: TensorType[Attribute]) -> Attribute:
        return MemRefType(type.element_type, type.shape) if on_memrefs else type

    inputs = test.TestOp(result_types=list(map(form, types))).results
    made = cls.create(
        operands=inputs,
        result_types=[result] if result else [],
        properties={
            **properties,
            "operandSegmentSizes": segments(types, ()),
        },
        regions=[region] if region else [],
    )
    if result is None:
        (result,) = made.result_types_of(types)
    out = form(result)
    outs = test.TestOp(result_types=[out]).results if on_memrefs else ()
    op = cls.create(
        operands=[*inputs, *outs],
        result_types=() if on_memrefs else [out],
        properties={**properties, "operandSegmentSizes": segments(types, outs)},
        regions=[made.detach_region(0)] if region else [],
    )
    op.verify()
    return op


def reference(op: TensorOp, inputs: Sequence[Array]) -> Array:
    block = Block(arg_types=[value.type for value in op.inputs])
    op.operands = block.args
    block.add_ops([op, ReturnOp(op.result)])
    function = FuncOp(
        "main",
        FunctionType.from_lists([a.type for a in block.args], [op.result.type]),
        Region(block),
    )
    (result,) = run_reference(ModuleOp([function]), inputs)
    return result
