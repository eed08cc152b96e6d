// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @f(%x: tensor<2xf32>) {
  %g = tgraph.gradient %x wrt %x : tensor<2xf32> wrt tensor<2xf32>
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     gradient-not-scalar.mlir:4:8: error: tgraph.gradient: value has type tensor<2xf32>, expected a scalar, or head gradients
