// REQUIRES: jax
// RUN: not plan-opt %s -p convert-stablehlo-to-tgraph 2>&1 | filecheck %s

func.func @main(%a: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %0 = stablehlo.custom_call @spell(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.add %0, %a : tensor<4xf32>
  %2 = stablehlo.custom_call @magic(%i) : (tensor<4xi32>) -> tensor<4xi32>
  %3 = stablehlo.custom_call @spell(%1) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %3, %2 : tensor<4xf32>, tensor<4xi32>
}

// CHECK-NOT:  Traceback
// CHECK:      unsupported-stablehlo-op.mlir:5:8: error: stablehlo.custom_call @spell is not supported
// CHECK-NEXT: {{^}}  %0 = stablehlo.custom_call @spell
// CHECK-NEXT: {{^ {7}\^$}}
// CHECK-NEXT: {{.*}}unsupported-stablehlo-op.mlir:7:8: note: stablehlo.custom_call @magic is not supported
// CHECK-NEXT: {{.*}}unsupported-stablehlo-op.mlir:8:8: note: stablehlo.custom_call @spell is not supported
