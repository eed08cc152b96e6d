// RUN: not plan-opt %s 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK: error: tgraph.sort: positions are [2], expected some of [0, 1], but not all, in this order
func.func @main(%x: tensor<8xf32>) {
  %v, %i = tgraph.sort %x {dimension = 0 : i64, positions = array<i64: 2>} : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xi32>) {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
    %0 = tgraph.compare %a, %b {direction = "GT"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    tgraph.yield %0 : tensor<i1>
  }
  func.return
}
