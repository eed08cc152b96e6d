// REQUIRES: jax
// RUN: not plan-opt %s -p convert-stablehlo-to-tgraph 2>&1 | filecheck %s

// A LAPACK routine that JAX calls and for which no operation exists.
// CHECK: lapack.mlir:7:10: error: stablehlo.custom_call @lapack_ssytrd_ffi is not supported
func.func public @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0:2 = stablehlo.custom_call @lapack_ssytrd_ffi(%a) {mhlo.backend_config = {uplo = 76 : ui8}, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], []) {i=8, j=8, k=8, l=8}, custom>} : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<i32>)
  func.return %0#0 : tensor<8x8xf32>
}
