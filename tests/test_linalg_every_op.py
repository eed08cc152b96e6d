"""Tests that every operation of the dialect converts to level 4, with equal values.

Operations with one result and no region are cases of `test_kernels.py`, which
`test_convert_to_linalg.py` runs. This file tests the others, and that none is missing.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from kernel_cases import TESTS, cases
from modules import parse
from upstream import run_natively, with_each_mlir

import tensorplan
from tensorplan.dialects.dtypes import Array
from tensorplan.dialects.tgraph import (
    TGraph,
    differentiation,
    elementwise,
    matrices,
    shaping,
    spectral,
    structure,
)
from tensorplan.dialects.tgraph.callbacks import HostCallbackOp
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.runtime.backends.mlir.executable import Tools

TENSORS_ONLY = {
    differentiation.GradientOp,
    structure.AssignOp,
    structure.OnDeviceOp,
    structure.ReadOp,
    structure.YieldOp,
    shaping.SizeOp,
}
"""Operations that level 2 does not have."""

WITHOUT_UPSTREAM_FORM = {
    *(elementwise.ComplexOp, elementwise.ImagOp, elementwise.RealOp, HostCallbackOp),
    *(*matrices.MATRIX_OPS, *spectral.SPECTRAL_OPS),
}
"""Operations that `convert-tgraph-to-linalg` refuses (`test_matrices.py`,
`test_complex.py`, `lit_tests/errors/linalg-callback.mlir`)."""

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 5, 2)).astype(np.float32)
TIES = RNG.integers(0, 3, (3, 5, 2)).astype(np.int32)
STATE = np.array([0x123456789ABCDEF1, 0xFFFFFFFFFFFFFFFE, 7], np.uint64)

ARGMAX = """
func.func @main(%x: tensor<3x5x2xf32>, %n: tensor<3x5x2xi32>, %low: tensor<f32>,
                %zero: tensor<i32>) -> (tensor<5xf32>, tensor<5xi32>) {
  %v, %i = tgraph.reduce_by %x, %n, %low, %zero {dimensions = array<i64: 0, 2>}
      : (tensor<3x5x2xf32>, tensor<3x5x2xi32>, tensor<f32>, tensor<i32>)
      -> (tensor<5xf32>, tensor<5xi32>) {
  ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
    %0 = tgraph.compare %a, %b {direction = "GE"}
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %1 = tgraph.select %0, %a, %b
        : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %2 = tgraph.select %0, %i, %j
        : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    tgraph.yield %1, %2 : tensor<f32>, tensor<i32>
  }
  func.return %v, %i : tensor<5xf32>, tensor<5xi32>
}
"""

# Without elements, the results are the initial values.
NOTHING = """
func.func @main(%x: tensor<3x0xi32>, %start: tensor<i32>) -> tensor<3xi32> {
  %r = tgraph.reduce_by %x, %start {dimensions = array<i64: 1>}
      : (tensor<3x0xi32>, tensor<i32>) -> tensor<3xi32> {
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %0 = tgraph.xor %a, %b : tensor<i32>
    tgraph.yield %0 : tensor<i32>
  }
  func.return %r : tensor<3xi32>
}
"""

# The second result shows that equal elements stay in order.
SORT = """
func.func @main(%x: tensor<3x5x2xi32>, %n: tensor<3x5x2xf32>)
    -> (tensor<3x5x2xi32>, tensor<3x5x2xf32>) {
  %v, %i = tgraph.sort %x, %n {dimension = 1 : i64}
      : (tensor<3x5x2xi32>, tensor<3x5x2xf32>)
      -> (tensor<3x5x2xi32>, tensor<3x5x2xf32>) {
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %i: tensor<f32>, %j: tensor<f32>):
    %0 = tgraph.compare %a, %b {direction = "GT"}
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tgraph.yield %0 : tensor<i1>
  }
  func.return %v, %i : tensor<3x5x2xi32>, tensor<3x5x2xf32>
}
"""

FIRST_OF_SORT = """
func.func @main(%x: tensor<3x5x2xi32>, %n: tensor<3x5x2xf32>)
    -> (tensor<3x2x2xi32>, tensor<3x2x2xf32>) {
  %v, %i = tgraph.sort %x, %n {count = 2 : i64, dimension = 1 : i64}
      : (tensor<3x5x2xi32>, tensor<3x5x2xf32>)
      -> (tensor<3x2x2xi32>, tensor<3x2x2xf32>) {
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %i: tensor<f32>, %j: tensor<f32>):
    %0 = tgraph.compare %a, %b {direction = "GT"}
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tgraph.yield %0 : tensor<i1>
  }
  func.return %v, %i : tensor<3x2x2xi32>, tensor<3x2x2xf32>
}
"""

# The position of the first largest element, in f32: no operand holds positions.
LARGEST = """
func.func @main(%x: tensor<3x5x2xi32>) -> (tensor<3x2xi32>, tensor<3x2xf32>) {
  %low = tgraph.constant<-2147483648 : i32> : tensor<i32>
  %most = tgraph.constant<9.0 : f32> : tensor<f32>
  %v, %i = tgraph.reduce_by %x, %low, %most
      {dimensions = array<i64: 1>, positions = array<i64: 1>}
      : (tensor<3x5x2xi32>, tensor<i32>, tensor<f32>)
      -> (tensor<3x2xi32>, tensor<3x2xf32>) {
  ^bb0(%a: tensor<i32>, %i: tensor<f32>, %b: tensor<i32>, %j: tensor<f32>):
    %0 = tgraph.compare %a, %b {direction = "GT"}
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %1 = tgraph.compare %a, %b {direction = "EQ"}
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %2 = tgraph.compare %i, %j {direction = "LT"}
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %3 = tgraph.and %1, %2 : tensor<i1>
    %4 = tgraph.or %0, %3 : tensor<i1>
    %5 = tgraph.select %4, %a, %b
        : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %6 = tgraph.select %4, %i, %j
        : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    tgraph.yield %5, %6 : tensor<i32>, tensor<f32>
  }
  func.return %v, %i : tensor<3x2xi32>, tensor<3x2xf32>
}
"""

PLACES_OF_SORT = FIRST_OF_SORT.replace(", %n: tensor<3x5x2xf32>", "")
PLACES_OF_SORT = PLACES_OF_SORT.replace("%x, %n {", "%x {positions = array<i64: 1>, ")
PLACES_OF_SORT = PLACES_OF_SORT.replace(", tensor<3x5x2xf32>)", ")")

SORT_UNSIGNED = """
func.func @main(%x: tensor<100xui8>) -> tensor<100xui8> {
  %v = tgraph.sort %x {dimension = 0 : i64} : tensor<100xui8> {
  ^bb0(%a: tensor<ui8>, %b: tensor<ui8>):
    %0 = tgraph.compare %a, %b {direction = "LT"}
        : (tensor<ui8>, tensor<ui8>) -> tensor<i1>
    tgraph.yield %0 : tensor<i1>
  }
  func.return %v : tensor<100xui8>
}
"""

# Doubles %x and adds %w while the sum is small. %w does not change.
WHILE = """
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>, %top: tensor<f32>)
    -> tensor<4xf32> {
  %r = tgraph.while %x, %w, %top
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32> {
  ^bb0(%v: !tgraph.variable<tensor<4xf32>>, %b: tensor<4xf32>, %t: tensor<f32>):
    %0 = tgraph.read %v : tensor<4xf32>
    %1 = tgraph.reduce %0 {kind = "add", dimensions = array<i64: 0>}
        : (tensor<4xf32>) -> tensor<f32>
    %2 = tgraph.compare %1, %t {direction = "LT"}
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
    tgraph.yield %2 : tensor<i1>
  } do {
  ^bb0(%v: !tgraph.variable<tensor<4xf32>>, %b: tensor<4xf32>, %t: tensor<f32>):
    %0 = tgraph.read %v : tensor<4xf32>
    %1 = tgraph.add %0, %0 : tensor<4xf32>
    %2 = tgraph.add %1, %b : tensor<4xf32>
    tgraph.assign %v, %2 : tensor<4xf32>
    tgraph.yield
  }
  func.return %r : tensor<4xf32>
}
"""

IF = """
func.func @main(%p: tensor<i1>, %x: tensor<4xf32>, %y: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>) {
  %r:2 = tgraph.if %p, %x, %y : (tensor<i1>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %0 = tgraph.reverse %a {dimensions = array<i64: 0>} : tensor<4xf32>
    tgraph.yield %0, %b : tensor<4xf32>, tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    tgraph.yield %b, %a : tensor<4xf32>, tensor<4xf32>
  }
  func.return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}
"""

# Starts are clamped, so that slices are in bounds.
SLICES = """
func.func @main(%x: tensor<4x6xf32>, %i: tensor<i32>, %j: tensor<ui8>)
    -> (tensor<2x3xf32>, tensor<4x6xf32>) {
  %p = tgraph.dynamic_slice %x, %i, %j {slice_sizes = array<i64: 2, 3>}
      : (tensor<4x6xf32>, tensor<i32>, tensor<ui8>) -> tensor<2x3xf32>
  %r = tgraph.dynamic_update_slice %x, %p, %j, %i
      : (tensor<4x6xf32>, tensor<2x3xf32>, tensor<ui8>, tensor<i32>)
      -> tensor<4x6xf32>
  func.return %p, %r : tensor<2x3xf32>, tensor<4x6xf32>
}
"""

BITS = """
func.func @main(%x: tensor<3xf32>) -> tensor<3xui32> {
  %r = tgraph.bitcast_convert %x : (tensor<3xf32>) -> tensor<3xui32>
  func.return %r : tensor<3xui32>
}
"""

DEVICES = """
func.func @main(%x: tensor<3xf32, "cpu:0">) -> tensor<3xf32, "cpu:1"> {
  %y = tgraph.device_copy %x : (tensor<3xf32, "cpu:0">) -> tensor<3xf32, "cpu:1">
  %r = tgraph.reverse %y {dimensions = array<i64: 0>} : tensor<3xf32, "cpu:1">
  func.return %r : tensor<3xf32, "cpu:1">
}
"""


def random_bits(algorithm: str, words: int, shape: Sequence[int], element: str) -> str:
    bits = f"tensor<{'x'.join([*map(str, shape), element])}>"
    state = f"tensor<{words}xui64>"
    return f"""
func.func @main(%s: {state}) -> ({state}, {bits}) {{
  %s1, %bits = tgraph.rng_bit_generator %s {{algorithm = "{algorithm}"}}
      : ({state}) -> ({state}, {bits})
  func.return %s1, %bits : {state}, {bits}
}}
"""


A, B = np.array([1, 2, 3, 4], np.float32), np.array([5, 6, 7, 8], np.float32)
PROGRAMS: dict[str, tuple[str, list[Array]]] = {
    "reduce_by": (ARGMAX, [X, TIES, np.array(-9, np.float32), np.array(0, np.int32)]),
    "reduce_by of nothing": (
        NOTHING,
        [np.zeros((3, 0), np.int32), np.array(7, np.int32)],
    ),
    "sort": (SORT, [TIES, X]),
    "the first of a sort": (FIRST_OF_SORT, [TIES, X]),
    "the place of the largest": (LARGEST, [TIES]),
    "the places of a sort": (PLACES_OF_SORT, [TIES]),
    "sort of unsigned": (SORT_UNSIGNED, [RNG.integers(0, 256, 100).astype(np.uint8)]),
    "while": (WHILE, [A, B, np.array(1000, np.float32)]),
    "while, never": (WHILE, [A, B, np.array(1, np.float32)]),
    "if": (IF, [np.array(True), A, B]),
    "else": (IF, [np.array(False), A, B]),
    "dynamic_slice": (
        SLICES,
        [
            np.arange(24, dtype=np.float32).reshape(4, 6),
            np.array(-1, np.int32),
            np.array(200, np.uint8),
        ],
    ),
    "bitcast_convert": (BITS, [A[:3]]),
    "device_copy": (DEVICES, [A[:3]]),
} | {
    f"rng_bit_generator, {algorithm}, {words} words, {shape} of {element}": (
        random_bits(algorithm, words, shape, element),
        [STATE[:words]],
    )
    for algorithm, words in (("threefry", 2), ("philox", 2), ("philox", 3))
    for shape, element in (
        ((3, 6, 5), "ui32"),
        ((3, 5), "i8"),
        ((7,), "ui64"),
        ((), "ui16"),
    )
}


@pytest.mark.thorough
@with_each_mlir
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str, tools: Tools) -> None:
    text, inputs = PROGRAMS[name]
    source = parse(text)
    want = run_reference(source, inputs)
    plan = tensorplan.plan(source)
    for got, expected in zip(run_natively(plan, inputs, tools), want, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_every_operation_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = {type(op) for text, _ in PROGRAMS.values() for op in parse(text).walk()} | {
        case.cls for name in TESTS for case in cases(name, monkeypatch)
    }
    assert set(TGraph.operations) - TENSORS_ONLY - WITHOUT_UPSTREAM_FORM <= tried
