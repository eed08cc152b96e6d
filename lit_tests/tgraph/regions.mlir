// RUN: plan-opt %s | plan-opt | filecheck %s
// RUN: plan-opt %s --print-op-generic | plan-opt | filecheck %s

// CHECK-LABEL: @bodies
func.func @bodies(%x: tensor<4x8xf32>, %n: tensor<4x8xi32>, %low: tensor<f32>, %zero: tensor<i32>, %s: tensor<2xui64>) {
  // CHECK-NEXT: tgraph.reduce_by %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {dimensions = array<i64: 1>} : (tensor<4x8xf32>, tensor<4x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>) {
  // CHECK-NEXT: ^{{.*}}(%{{.*}}: tensor<f32>, %{{.*}}: tensor<i32>, %{{.*}}: tensor<f32>, %{{.*}}: tensor<i32>):
  %v, %i = tgraph.reduce_by %x, %n, %low, %zero {dimensions = array<i64: 1>} : (tensor<4x8xf32>, tensor<4x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>) {
  ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
    %0 = tgraph.compare %a, %b {direction = "GE"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %1 = tgraph.select %0, %a, %b : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %2 = tgraph.select %0, %i, %j : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    tgraph.yield %1, %2 : tensor<f32>, tensor<i32>
  }
  // CHECK: tgraph.sort %{{.*}} {dimension = 1 : i64} : tensor<4x8xf32> {
  %sorted = tgraph.sort %x {dimension = 1 : i64} : tensor<4x8xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %0 = tgraph.compare %a, %b {direction = "LT"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    tgraph.yield %0 : tensor<i1>
  }
  // CHECK: tgraph.sort %{{.*}} {count = 2 : i64, dimension = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x2xf32> {
  %first = tgraph.sort %x {count = 2 : i64, dimension = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x2xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %0 = tgraph.compare %a, %b {direction = "LT"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    tgraph.yield %0 : tensor<i1>
  }
  // CHECK: tgraph.rng_bit_generator %{{.*}} {algorithm = "philox"} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  %s1, %bits = tgraph.rng_bit_generator %s {algorithm = "philox"} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  // CHECK: tgraph.dynamic_slice %{{.*}}, %{{.*}}, %{{.*}} {slice_sizes = array<i64: 2, 3>} : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
  %part = tgraph.dynamic_slice %x, %zero, %zero {slice_sizes = array<i64: 2, 3>} : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
  // CHECK: tgraph.dynamic_update_slice %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<4x8xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
  %whole = tgraph.dynamic_update_slice %x, %part, %zero, %zero : (tensor<4x8xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
  func.return
}
