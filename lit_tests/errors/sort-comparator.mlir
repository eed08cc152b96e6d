// RUN: not plan-opt %s 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK: sort-comparator.mlir:6:{{[0-9]+}}: error: tgraph.sort: a region has arguments of types (tensor<f32>), expected (tensor<f32>, tensor<f32>)
func.func @main(%x: tensor<4xf32>, %i: tensor<i32>) {
  %0 = tgraph.sort %x {dimension = 0 : i64} : tensor<4xf32> {
  ^bb0(%a: tensor<f32>):
    %1 = tgraph.constant<true> : tensor<i1>
    tgraph.yield %1 : tensor<i1>
  }
  func.return
}
