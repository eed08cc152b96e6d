// RUN: not plan-opt %s 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK: sort-count.mlir:6:{{[0-9]+}}: error: tgraph.sort: count is 5, expected 0 to 4: the size along dimension 0
func.func @main(%x: tensor<4xf32>) {
  %0 = tgraph.sort %x {count = 5 : i64, dimension = 0 : i64} : (tensor<4xf32>) -> tensor<5xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = tgraph.compare %a, %b {direction = "LT"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    tgraph.yield %1 : tensor<i1>
  }
  func.return
}
