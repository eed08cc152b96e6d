"""Tests the runner of StableHLO's own tests on a folder in their format."""

from pathlib import Path

import pytest

pytest.importorskip("jaxlib")
import stablehlo

INTERPRET = """
func.func @sum() {
  %0 = stablehlo.constant dense<[1.5, -2.0]> : tensor<2xf8E4M3FN>
  %1 = stablehlo.add %0, %0 : tensor<2xf8E4M3FN>
  check.expect_eq_const %1, dense<[3.0, -4.0]> : tensor<2xf8E4M3FN>
  func.return
}
// -----
func.func @false() {
  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  check.expect_eq_const %0, dense<[1, 3]> : tensor<2xi32>
  func.return
}
// -----
func.func @shaped() {
  %0 = stablehlo.constant dense<1.0> : tensor<f32>
  %1 = stablehlo.constant dense<[2]> : tensor<1xi32>
  %2 = stablehlo.dynamic_broadcast_in_dim %0, %1, dims = []
    : (tensor<f32>, tensor<1xi32>) -> tensor<2xf32>
  check.expect_almost_eq_const %2, dense<1.05> : tensor<2xf32> {tolerance = 0.1 : f64}
  func.return
}
// -----
func.func @refused() {
  %0 = stablehlo.constant dense<1.0> : tensor<f32>
  %1 = stablehlo.custom_call @unheard_of(%0) : (tensor<f32>) -> tensor<f32>
  check.expect_eq_const %1, dense<1.0> : tensor<f32>
  func.return
}
// -----
func.func @unread() {
  %0 = interpreter.run
  func.return
}
"""

FROM_JAX = """
func.func public @main() -> tensor<2xf32> {
  %0 = call @inputs() : () -> tensor<2xf32>
  %1 = call @expected() : () -> tensor<2xf32>
  %2 = stablehlo.negate %0 : tensor<2xf32>
  stablehlo.custom_call @check.expect_close(%2, %1) {has_side_effect = true}
    : (tensor<2xf32>, tensor<2xf32>) -> ()
  return %2 : tensor<2xf32>
}
func.func private @inputs() -> tensor<2xf32> {
  %0 = stablehlo.constant dense<[1.0, 0x7FC00000]> : tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func private @expected() -> tensor<2xf32> {
  %0 = stablehlo.constant dense<[-0.99999994, 0x7FC00000]> : tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""


@pytest.mark.thorough
def test_verdicts(tmp_path: Path) -> None:
    (tmp_path / "interpret.mlir").write_text(INTERPRET)
    (tmp_path / "jax.mlir").write_text(FROM_JAX)
    cases, unread = stablehlo.read([tmp_path])
    verdicts = {case.name: stablehlo.judge(case) for case in cases}
    assert {name: verdict.status for name, verdict in verdicts.items()} == {
        "interpret#0": "pass",
        "interpret#1": "wrong",
        "interpret#2": "pass",
        "interpret#3": "refused",
        "jax#0": "pass",
    }
    assert verdicts["interpret#1"].message == "1 of 2: 2 at (1,), expected 3"
    assert list(unread) == ["interpret#4"]
    page = stablehlo.page(cases, verdicts)
    assert "3 of 5 cases" in page
    assert "| stablehlo.add | f8E4M3FN |  |" in page
    assert "| stablehlo.custom_call |  | @unheard_of (1) |" in page
