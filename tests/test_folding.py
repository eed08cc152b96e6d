"""Tests that `canonicalize` preserves all bits of elementwise operations.

The tests apply all operations to all special numbers, whether or not a rule folds them.
"""

from itertools import pairwise, product

import numpy as np
import pytest
from modules import run
from one_op import TYPES
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.transforms.canonicalize import CanonicalizePass

from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.dtypes import (
    Array,
    DType,
    constant_attribute,
    is_float,
    numpy_dtype,
)
from tensorplan.dialects.tgraph import elementwise as ops
from tensorplan.dialects.tgraph.base import TensorOp, with_element
from tensorplan.dialects.tgraph.elements import holds
from tensorplan.dialects.tgraph.folding import FoldElementwise
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.shaping import ConstantOp

pytest.importorskip("ml_dtypes")


def special(dtype: DType) -> Array:
    """Numbers that at least one operation treats specially."""
    if dtype.kind == "b":
        return np.array([False, True])
    if is_float(dtype):
        numbers = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.1, 300.7]
        return np.array(numbers).astype(dtype)
    limits = np.iinfo(dtype)
    return np.array([0, 1, limits.max, limits.min, 3], dtype)


class Program:
    """A function of one tensor of special numbers."""

    def __init__(self, element: Attribute):
        self.numbers = special(numpy_dtype(element))
        self.type = TensorType(element, self.numbers.shape)
        self.block = Block(arg_types=[self.type])
        self.results: list[SSAValue] = []

    def add(self, op: TensorOp) -> SSAValue:
        self.block.add_op(op)
        return op.result

    def constants(self) -> list[SSAValue]:
        element = self.type.element_type
        return [
            self.add(ConstantOp(constant_attribute(number, element), self.type))
            for number in self.numbers.reshape(-1, 1)
        ]

    def check(self, ulps: int = 0) -> None:
        """Asserts that canonicalization preserves the results, up to `ulps`."""
        self.block.add_op(ReturnOp(*self.results))
        types = [value.type for value in self.results]
        main = FuncOp("main", FunctionType.from_lists([self.type], types))
        main.body.detach_block(0)
        main.body.add_block(self.block)
        module = ModuleOp([main])
        try:
            want = run_reference(module, [self.numbers])
        except (LocatedError, TypeError):
            return  # not defined on such elements
        got = run_reference(run(module, CanonicalizePass()), [self.numbers])
        for value, x, y in zip(self.results, got, want, strict=True):
            if ulps:
                np.testing.assert_array_max_ulp(x, y, ulps)
            else:
                assert x.tobytes() == y.tobytes(), f"{value}: {x}, expected {y}"


@pytest.mark.parametrize(
    "dtype", ["float32", "bfloat16", "bool", "int8", "uint8", "int32"]
)
@pytest.mark.parametrize("cls", ops.ELEMENTWISE_OPS)
def test_bits_of_elementwise_operations(cls: type[TensorOp], dtype: str) -> None:
    if cls in (ops.BitcastConvertOp, ops.ConvertOp):
        return  # test_bits_of_conversions
    if cls in (ops.ComplexOp, ops.ImagOp, ops.RealOp):
        return  # test_complex.py
    program = Program(TYPES[dtype])
    (x,) = program.block.args
    numbers = program.constants()
    element = TYPES["bool"] if cls in (ops.CompareOp, ops.IsFiniteOp) else TYPES[dtype]
    type = with_element(program.type, element)
    directions = ops.DIRECTIONS if cls is ops.CompareOp else [""]
    arity = cls.ARITY or 0
    pairs = [*product([x], numbers), *product(numbers, [x]), *pairwise(numbers), (x, x)]
    for operands in pairs:
        given = [*operands, x][:arity]
        if cls is ops.SelectOp:
            condition = ops.CompareOp(
                operands,
                result_types=(with_element(type, TYPES["bool"]),),
                properties={"direction": StringAttr("LT")},
            )
            given[0] = program.add(condition)
        for direction in directions:
            properties = {"direction": StringAttr(direction)} if direction else {}
            op = cls(given, result_types=(type,), properties=properties)
            program.results.append(program.add(op))
            if arity == 1 and element == TYPES[dtype]:
                again = cls([op.result], result_types=(type,))
                program.results.append(program.add(again))
    # NumPy's f32 power of one number may differ from that of many.
    program.check(ulps=1 if cls is ops.PowerOp and dtype == "float32" else 0)


@pytest.mark.parametrize("source", TYPES)
def test_bits_of_conversions(source: str) -> None:
    program = Program(TYPES[source])
    for value in [program.block.args[0], *program.constants()]:
        for between in TYPES.values():
            type = with_element(program.type, between)
            first = program.add(ops.ConvertOp((value,), result_types=(type,)))
            for target in TYPES.values():
                type = with_element(program.type, target)
                second = program.add(ops.ConvertOp((first,), result_types=(type,)))
                program.results.append(second)
    program.check()


def test_undefined_operations_are_not_folded() -> None:
    program = Program(TYPES["bool"])
    op = ops.SubtractOp(program.constants(), result_types=(program.type,))
    program.add(op)
    FoldElementwise().match_and_rewrite(op, PatternRewriter(op))
    assert op.parent is program.block


def test_types_that_hold_all_numbers_of_another() -> None:
    """`holds` follows NumPy's rules for safe casts. They do not cover bf16."""
    names = [name for name in TYPES if name != "bfloat16"]
    for wide, narrow in product(names, repeat=2):
        want = np.can_cast(narrow, wide, "safe")
        if (narrow, wide) == ("int64", "float64"):
            want = False  # 2^53 + 1 is not in f64
        assert holds(TYPES[wide], TYPES[narrow]) == want, (wide, narrow)
    assert holds(TYPES["float32"], TYPES["bfloat16"])
    assert not holds(TYPES["bfloat16"], TYPES["float16"])
    assert not holds(TYPES["float16"], TYPES["bfloat16"])
