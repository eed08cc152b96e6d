// RUN: plan-opt %s | plan-opt | filecheck %s

// Properties with default values are not printed.
// CHECK-LABEL: @matrices
func.func @matrices(%x: tensor<2x3x3xf32>, %b: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK-NEXT: %l = tgraph.cholesky %x : tensor<2x3x3xf32>
  %l = tgraph.cholesky %x {lower = true} : tensor<2x3x3xf32>
  // CHECK-NEXT: %u = tgraph.cholesky %x {lower = false} : tensor<2x3x3xf32>
  %u = tgraph.cholesky %x {lower = false} : tensor<2x3x3xf32>
  // CHECK-NEXT: %y = tgraph.triangular_solve %l, %b {unit_diagonal = true} : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %y = tgraph.triangular_solve %l, %b {unit_diagonal = true} : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // CHECK-NEXT: %f, %p, %o = tgraph.lu %u : (tensor<2x3x3xf32>) -> (tensor<2x3x3xf32>, tensor<2x3xi32>, tensor<2x3xi32>)
  %f, %p, %o = tgraph.lu %u : (tensor<2x3x3xf32>) -> (tensor<2x3x3xf32>, tensor<2x3xi32>, tensor<2x3xi32>)
  func.return %y : tensor<2x3x4xf32>
}

// CHECK-LABEL: @spectra
func.func @spectra(%x: tensor<4x6xf32>) -> tensor<4x4xf32> {
  // CHECK-NEXT: %f = tgraph.fft %x {fft_type = "RFFT", length = array<i64: 4, 6>} : (tensor<4x6xf32>) -> tensor<4x4xcomplex<f32>>
  %f = tgraph.fft %x {fft_type = "RFFT", length = array<i64: 4, 6>} : (tensor<4x6xf32>) -> tensor<4x4xcomplex<f32>>
  // CHECK-NEXT: %r = tgraph.real %f : (tensor<4x4xcomplex<f32>>) -> tensor<4x4xf32>
  %r = tgraph.real %f : (tensor<4x4xcomplex<f32>>) -> tensor<4x4xf32>
  func.return %r : tensor<4x4xf32>
}
