// REQUIRES: jax
// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @main(%a: tensor<4xf32>) -> tensor<4xi32> {
  %0 = stablehlo.popcnt %a : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// CHECK-NOT:  Traceback
// CHECK:      invalid-stablehlo.mlir:5:8: error: 'stablehlo.popcnt' op operand #0 must be
// CHECK-NEXT: {{^}}  %0 = stablehlo.popcnt
// CHECK-NEXT: {{^ {7}\^$}}
