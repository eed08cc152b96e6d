// RUN: not plan-opt %s -p convert-stablehlo-to-tgraph 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK:     bitcast-complex.mlir:6:8: error: stablehlo.bitcast_convert is not supported with elements of type complex<f64>
func.func @main(%x: tensor<2xcomplex<f64>>) -> tensor<2x2xcomplex<f32>> {
  %0 = "stablehlo.bitcast_convert"(%x) : (tensor<2xcomplex<f64>>) -> tensor<2x2xcomplex<f32>>
  func.return %0 : tensor<2x2xcomplex<f32>>
}
