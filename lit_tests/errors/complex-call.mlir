// RUN: not plan-opt %s -p convert-stablehlo-to-tgraph 2>&1 | filecheck %s

// What makes the complex numbers is named, not the calls that pass them on.
// CHECK:     complex-call.mlir:[[#]]:8: error: stablehlo.fft with elements of type complex<f32> is not supported
// CHECK-NOT: func.call
func.func public @main(%x: tensor<8xf32>) -> tensor<5xf32> {
  %0 = func.call @rfft(%x) : (tensor<8xf32>) -> tensor<5xcomplex<f32>>
  %1 = "stablehlo.abs"(%0) : (tensor<5xcomplex<f32>>) -> tensor<5xf32>
  func.return %1 : tensor<5xf32>
}
func.func private @rfft(%x: tensor<8xf32>) -> tensor<5xcomplex<f32>> {
  %0 = "stablehlo.fft"(%x) <{fft_length = array<i64: 8>, fft_type = #stablehlo<fft_type RFFT>}> : (tensor<8xf32>) -> tensor<5xcomplex<f32>>
  func.return %0 : tensor<5xcomplex<f32>>
}
