"""Tests the bounds of integers that follow from the operations that compute them."""

import pytest
from modules import parse
from xdsl.dialects.func import ReturnOp

from tensorplan.dialects.tgraph.bounds import Bounds, bounds

I32 = (-(1 << 31), (1 << 31) - 1)
HEAD = """
%zero = tgraph.constant<0 : i32> : tensor<8xi32>
%nine = tgraph.constant<9 : i32> : tensor<8xi32>
%n = tgraph.iota {dimension = 0 : i64} : tensor<8xi32>
%lt = tgraph.compare %i, %zero {direction = "LT"}
  : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
%gt = tgraph.compare %i, %nine {direction = "GT"}
  : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
%or = tgraph.or %lt, %gt : tensor<8xi1>
%r = tgraph.remainder %i, %nine : tensor<8xi32>
%reversed = tgraph.reverse %i {dimensions = array<i64: 0>} : tensor<8xi32>
%joined = tgraph.concatenate %i {dimension = 0 : i64} : tensor<8xi32>
"""
SELECT = ": (tensor<8xi1>, tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>"

CASES = {
    "tgraph.negate %i : tensor<8xi32>": I32,
    "tgraph.add %n, %nine : tensor<8xi32>": (9, 16),
    "tgraph.subtract %n, %nine : tensor<8xi32>": (-9, -2),
    "tgraph.multiply %r, %nine : tensor<8xi32>": (-72, 72),
    "tgraph.add %i, %nine : tensor<8xi32>": I32,  # may overflow
    "tgraph.and %i, %nine : tensor<8xi32>": (0, 9),
    "tgraph.clamp %zero, %i, %nine : tensor<8xi32>": (0, 9),
    "tgraph.divide %r, %nine : tensor<8xi32>": (0, 0),
    "tgraph.remainder %i, %zero : tensor<8xi32>": I32,
    "tgraph.abs %i : tensor<8xi32>": I32,  # the least has no absolute value
    "tgraph.abs %r : tensor<8xi32>": (0, 8),
    f"tgraph.select %lt, %zero, %i {SELECT}": (0, I32[1]),
    f"tgraph.select %or, %zero, %i {SELECT}": (0, 9),
    f"tgraph.select %lt, %i, %n {SELECT}": (I32[0], 7),
    f"tgraph.select %lt, %zero, %reversed {SELECT}": I32,  # other positions
    f"tgraph.select %lt, %zero, %joined {SELECT}": I32,
    "tgraph.constant<dense<[3, 1, -2, 0, 0, 0, 0, 4]> : tensor<8xi32>> "
    ": tensor<8xi32>": (-2, 4),
    "tgraph.convert %b : (tensor<8xui8>) -> tensor<8xi32>": (0, 255),
    "tgraph.convert %x : (tensor<8xf32>) -> tensor<8xi32>": I32,
}


@pytest.mark.parametrize("text", CASES)
def test_bounds(text: str) -> None:
    module = parse(
        "func.func @main(%i: tensor<8xi32>, %b: tensor<8xui8>, %x: tensor<8xf32>)"
        f" -> tensor<8xi32> {{{HEAD}\n%y = {text}\nfunc.return %y : tensor<8xi32>\n}}"
    )
    (end,) = (op for op in module.walk() if isinstance(op, ReturnOp))
    want: Bounds = CASES[text]
    assert bounds(end.operands[0]) == want


def test_long_predicates() -> None:
    """The cases of a predicate grow exponentially with its disjunctions."""
    pairs = "\n".join(
        f"%p{k + 1} = tgraph.and %p{k}, %or : tensor<8xi1>" for k in range(40)
    )
    module = parse(
        f"func.func @main(%i: tensor<8xi32>) -> tensor<8xi32> {{{HEAD}\n"
        f"%p0 = tgraph.not %or : tensor<8xi1>\n{pairs}\n"
        f"%y = tgraph.select %p40, %i, %zero {SELECT}\n"
        "func.return %y : tensor<8xi32>\n}"
    )
    (end,) = (op for op in module.walk() if isinstance(op, ReturnOp))
    low, high = bounds(end.operands[0])
    assert low <= 0 <= high
