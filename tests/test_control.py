"""Tests scalars, loops and branches between operations on memrefs, in the executor."""

import numpy as np
import pytest
from modules import parse

from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.dtypes import Array
from tensorplan.runtime.executor import Executable

HEAD = """
func.func @main(%n: index, %f: f32, %x: memref<4xf32>,
                %r: memref<4xf32> {tgraph.result = 0 : i32}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %two = arith.constant 2.0 : f32
  "memref.copy"(%x, %r) : (memref<4xf32>, memref<4xf32>) -> ()
"""
TAIL = """
  func.return
}
"""
X = np.arange(4, dtype=np.float32)


def result(body: str, n: int = 3, f: float = 1, sanitize: bool = False) -> Array:
    text = HEAD + body + TAIL
    run = Executable(parse(text), sanitize=sanitize)
    first = run(np.int64(n), np.float32(f), X)
    (again,) = run(np.int64(n), np.float32(f), X)
    np.testing.assert_array_equal(first[0], again)
    return again


LOOP = """
  %a, %b = scf.for %i = %c0 to %n step %c1 iter_args(%p = %f, %q = %two) -> (f32, f32) {
    %s = arith.addf %p, %q : f32
    tgraph.add %r, %x outs(%r) : memref<4xf32>
    scf.yield %q, %s : f32, f32
  }
  memref.store %a, %r[%c0] : memref<4xf32>
  memref.store %b, %r[%c1] : memref<4xf32>
"""


@pytest.mark.parametrize("sanitize", [False, True])
def test_for_loop_carries_scalars_and_changes_memory(sanitize: bool) -> None:
    """The loop carries two consecutive Fibonacci numbers, and adds %x to %r in each
    iteration."""
    assert result(LOOP, 3, sanitize=sanitize).tolist() == [5, 8, 8, 12]
    assert result(LOOP, 0, sanitize=sanitize).tolist() == [1, 2, 2, 3]


WHILE = """
  %a, %k = scf.while (%p = %f, %j = %c0) : (f32, index) -> (f32, index) {
    %less = arith.cmpi ult, %j, %n : index
    %d = arith.mulf %p, %two : f32
    scf.condition(%less) %d, %j : f32, index
  } do {
  ^bb0(%q: f32, %j: index):
    %m = arith.addi %j, %c1 : index
    scf.yield %q, %m : f32, index
  }
  memref.store %a, %r[%c0] : memref<4xf32>
  %l = arith.index_cast %k : index to i32
  %g = arith.sitofp %l : i32 to f32
  memref.store %g, %r[%c1] : memref<4xf32>
"""


def test_results_of_while_are_forwarded_by_its_condition() -> None:
    """The results are the operands of the last scf.condition. The first region doubles
    %p once more than the body runs."""
    assert result(WHILE, 3, 5)[:2].tolist() == [80, 3]
    assert result(WHILE, 0, 5)[:2].tolist() == [10, 0]


IF = """
  %c = arith.cmpf olt, %f, %two : f32
  %a = scf.if %c -> (f32) {
    tgraph.negate %x outs(%r) : memref<4xf32>
    scf.yield %two : f32
  } else {
    %v = memref.load %x[%n] : memref<4xf32>
    scf.yield %v : f32
  }
  memref.store %a, %r[%c0] : memref<4xf32>
"""


def test_branches_yield_scalars() -> None:
    assert result(IF, 3, 1).tolist() == [2, -1, -2, -3]
    assert result(IF, 3, 9).tolist() == [3, 1, 2, 3]


SWITCH = """
  %a = "scf.index_switch"(%n) <{cases = array<i64: 7, 3>}> ({
    scf.yield %f : f32
  }, {
    %s = arith.addf %f, %two : f32
    scf.yield %s : f32
  }, {
    %s = arith.mulf %f, %two : f32
    scf.yield %s : f32
  }) : (index) -> f32
  memref.store %a, %r[%c0] : memref<4xf32>
"""


@pytest.mark.parametrize(("n", "want"), [(7, 7), (3, 10), (0, 5), (-1, 5)])
def test_index_switch(n: int, want: float) -> None:
    assert result(SWITCH, n, 5)[0] == want


GENERIC = """
  %m = memref.load %x[%c1] : memref<4xf32>
  linalg.generic {indexing_maps = [affine_map<(i, k) -> (k)>,
                                   affine_map<(i, k) -> (i)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4xf32>) outs(%r : memref<4xf32>) {
  ^bb0(%in: f32, %old: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    %g = arith.sitofp %j : i32 to f32
    %p = arith.mulf %in, %g : f32
    %q = arith.addf %p, %m : f32
    %s = arith.addf %old, %q : f32
    linalg.yield %s : f32
  }
"""


def test_linalg_generic_with_a_reduction_an_index_and_a_captured_scalar() -> None:
    """r[i] = x[i] + sum over k of (x[k] * i + 1)."""
    assert result(GENERIC).tolist() == [4, 11, 18, 25]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "%m = scf.if %t -> (memref<4xf32>) {\n scf.yield %x : memref<4xf32>\n} "
            "else {\n scf.yield %r : memref<4xf32>\n}",
            "scf.if forwards a memref, expected numbers",
        ),
        (
            "memref.store %two, %x[%c0] : memref<4xf32>",
            "memref.store writes an argument, expected it to have the attribute",
        ),
    ],
)
def test_unsupported_operations_are_refused(body: str, message: str) -> None:
    with pytest.raises(LocatedError, match=message):
        result("%t = arith.constant true\n" + body)
