// RUN: not plan-opt %s 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK: error: tgraph.reduce_by: has positions along 2 dimensions, expected 1
func.func @main(%x: tensor<4x8xf32>, %low: tensor<f32>, %zero: tensor<i32>) {
  %v, %i = tgraph.reduce_by %x, %low, %zero {dimensions = array<i64: 0, 1>, positions = array<i64: 1>} : (tensor<4x8xf32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>) {
  ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
    tgraph.yield %a, %i : tensor<f32>, tensor<i32>
  }
  func.return
}
