// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @f(%x: tensor<f32>, %n: tensor<i32>) {
  %g = tgraph.gradient %x wrt %n : tensor<f32> wrt tensor<i32>
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     gradient-not-float.mlir:4:8: error: tgraph.gradient: operand has type tensor<i32>, expected elements of a float type
