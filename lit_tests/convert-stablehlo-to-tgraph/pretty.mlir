// REQUIRES: jax
// RUN: plan-opt %s -p convert-stablehlo-to-tgraph | filecheck %s

// The pretty form that JAX prints, which only jaxlib can parse.
// CHECK:      func.func public @main(%arg0: tensor<2x3xf32>) -> (tensor<2xf32> {tgraph.name = "result"}) {
// CHECK-NEXT:   %0 = tgraph.constant<0.000000e+00 : f32> : tensor<f32>
// CHECK-NEXT:   %1 = tgraph.reduce %arg0 {kind = "add", dimensions = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xf32>
// CHECK-NEXT:   func.return %1 : tensor<2xf32>
module @jit_sum attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>) -> (tensor<2xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
