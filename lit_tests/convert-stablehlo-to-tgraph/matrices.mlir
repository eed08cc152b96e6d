// REQUIRES: jax
// RUN: plan-opt %s -p convert-stablehlo-to-tgraph | filecheck %s

// The routine's status becomes 0: matrices on which it fails become NaN.
// CHECK-LABEL: @lapack
// CHECK: %0 = tgraph.cholesky %arg0 : tensor<2x4x4xf32>
// CHECK: %1 = tgraph.constant<0 : i32> : tensor<2xi32>
// CHECK: %2 = tgraph.triangular_solve %0, %arg1 {left_side = false, transpose_a = "ADJOINT"}
func.func public @lapack(%a: tensor<2x4x4xf32>, %b: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2xi32>) {
  %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {mhlo.backend_config = {uplo = 76 : ui8}} : (tensor<2x4x4xf32>) -> (tensor<2x4x4xf32>, tensor<2xi32>)
  %1 = stablehlo.custom_call @lapack_strsm_ffi(%0#0, %b) {mhlo.backend_config = {diag = 78 : ui8, side = 82 : ui8, trans_x = 67 : ui8, uplo = 76 : ui8}} : (tensor<2x4x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  func.return %1, %0#1 : tensor<2x3x4xf32>, tensor<2xi32>
}

// tgraph has no complex constants: they are composed of their parts.
// CHECK-LABEL: @complex
// CHECK:      %[[RE:.*]] = tgraph.constant<1.000000e+00 : f32> : tensor<8xf32>
// CHECK-NEXT: %[[IM:.*]] = tgraph.constant<-2.000000e+00 : f32> : tensor<8xf32>
// CHECK-NEXT: %[[C:.*]] = tgraph.complex %[[RE]], %[[IM]]
// CHECK-NEXT: tgraph.multiply %arg0, %[[C]] : tensor<8xcomplex<f32>>
// CHECK-NEXT: tgraph.fft %{{.*}} {fft_type = "FFT", length = array<i64: 8>}
func.func public @complex(%x: tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>> {
  %c = stablehlo.constant dense<(1.0, -2.0)> : tensor<8xcomplex<f32>>
  %0 = stablehlo.multiply %x, %c : tensor<8xcomplex<f32>>
  %1 = stablehlo.fft %0, type = FFT, length = [8] : (tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>>
  func.return %1 : tensor<8xcomplex<f32>>
}

// A conjugate is composed of parts; the conjugate of real numbers is a no-op.
// CHECK-LABEL: @conjugates
// CHECK:      %[[RE:.*]] = tgraph.real %arg0
// CHECK-NEXT: %[[IM:.*]] = tgraph.imag %arg0
// CHECK-NEXT: %[[NEG:.*]] = tgraph.negate %[[IM]] : tensor<8xf32>
// CHECK-NEXT: %[[C:.*]] = tgraph.complex %[[RE]], %[[NEG]]
// CHECK-NEXT: func.return %[[C]], %arg1
func.func public @conjugates(%z: tensor<8xcomplex<f32>>, %x: tensor<8xf32>) -> (tensor<8xcomplex<f32>>, tensor<8xf32>) {
  %0 = chlo.conj %z : tensor<8xcomplex<f32>> -> tensor<8xcomplex<f32>>
  %1 = chlo.conj %x : tensor<8xf32> -> tensor<8xf32>
  func.return %0, %1 : tensor<8xcomplex<f32>>, tensor<8xf32>
}
