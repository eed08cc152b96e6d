// REQUIRES: jax
// RUN: not plan-opt %s -p convert-stablehlo-to-tgraph 2>&1 | filecheck %s

// CHECK: lapack-results.mlir:6:8: error: stablehlo.custom_call @lapack_sgeqrf_ffi is not supported: operands and results number 1 and 1, expected 1 and 2
func.func public @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.custom_call @lapack_sgeqrf_ffi(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  func.return %0 : tensor<8x8xf32>
}
