// RUN: plan-opt %s -p tgraph-fuse | filecheck %s

// Broadcasts and constants are fused, too; nothing in the chain is stored.
// CHECK-LABEL: func.func @bias_relu
// CHECK-NEXT:    %relu = tgraph.fusion(%[[B:.*]] = %b, %[[A:.*]] = %a) : (tensor<8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32> {
// CHECK-NEXT:      %zero = tgraph.constant<0.000000e+00 : f32> : tensor<4x8xf32>
// CHECK-NEXT:      %bias = tgraph.broadcast_in_dim %[[B]] {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:      %sum = tgraph.add %[[A]], %bias : tensor<4x8xf32>
// CHECK-NEXT:      %[[R:.*]] = tgraph.maximum %sum, %zero : tensor<4x8xf32>
// CHECK-NEXT:      tgraph.yield %[[R]] : tensor<4x8xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return
func.func @bias_relu(%a: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %zero = tgraph.constant<0.0 : f32> : tensor<4x8xf32>
  %bias = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<4x8xf32>
  %sum = tgraph.add %a, %bias : tensor<4x8xf32>
  %relu = tgraph.maximum %sum, %zero : tensor<4x8xf32>
  func.return %relu : tensor<4x8xf32>
}

// A value with users in two groups is computed and stored once.
// CHECK-LABEL: func.func @shared
// CHECK-NEXT:    %e = tgraph.exponential %a
// CHECK-NEXT:    tgraph.fusion(%{{.*}} = %e)
// CHECK:         tgraph.fusion(%{{.*}} = %e)
// CHECK-NOT:     tgraph.exponential
func.func @shared(%a: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %e = tgraph.exponential %a : tensor<4x8xf32>
  %n = tgraph.negate %e : tensor<4x8xf32>
  %x = tgraph.tanh %n : tensor<4x8xf32>
  %f = tgraph.floor %e : tensor<4x8xf32>
  %y = tgraph.tanh %f : tensor<4x8xf32>
  func.return %x, %y : tensor<4x8xf32>, tensor<4x8xf32>
}

// A diamond within one group is fused completely.
// CHECK-LABEL: func.func @diamond
// CHECK-NEXT:    tgraph.fusion
// CHECK-NEXT:      tgraph.negate
// CHECK-NEXT:      tgraph.abs
// CHECK-NEXT:      tgraph.exponential
// CHECK-NEXT:      tgraph.add
func.func @diamond(%a: tensor<4xf32>) -> tensor<4xf32> {
  %n = tgraph.negate %a : tensor<4xf32>
  %x = tgraph.abs %n : tensor<4xf32>
  %y = tgraph.exponential %n : tensor<4xf32>
  %z = tgraph.add %x, %y : tensor<4xf32>
  func.return %z : tensor<4xf32>
}

// A broadcast is repeated in each group that reads it, and never stored.
// CHECK-LABEL: func.func @broadcast_of_two_groups
// CHECK-NEXT:    tgraph.fusion
// CHECK-NEXT:      tgraph.broadcast_in_dim
// CHECK:         tgraph.fusion
// CHECK-NEXT:      tgraph.broadcast_in_dim
// CHECK:         func.return
func.func @broadcast_of_two_groups(%a: tensor<4x8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<4x8xf32>
  %1 = tgraph.add %a, %0 : tensor<4x8xf32>
  %2 = tgraph.multiply %a, %0 : tensor<4x8xf32>
  func.return %1, %2 : tensor<4x8xf32>, tensor<4x8xf32>
}

// A single operation stays unchanged.
// CHECK-LABEL: func.func @alone
// CHECK-NEXT:    %0 = tgraph.negate %a : tensor<4xf32>
func.func @alone(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.negate %a : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// A value computed at a smaller shape is not recomputed for every element.
// CHECK-LABEL: func.func @small_operand
// CHECK-NEXT:    %e = tgraph.exponential %b : tensor<8xf32>
// CHECK-NEXT:    tgraph.fusion(%{{.*}} = %e, %{{.*}} = %a)
// CHECK-NEXT:      tgraph.broadcast_in_dim
// CHECK-NEXT:      tgraph.add
func.func @small_operand(%a: tensor<64x8xf32>, %b: tensor<8xf32>) -> tensor<64x8xf32> {
  %e = tgraph.exponential %b : tensor<8xf32>
  %0 = tgraph.broadcast_in_dim %e {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<64x8xf32>
  %1 = tgraph.add %a, %0 : tensor<64x8xf32>
  func.return %1 : tensor<64x8xf32>
}

// Operations on different streams, devices or groups are not fused; a fusion keeps the
// attribute of its members.
// CHECK-LABEL: func.func @streams
// CHECK-NEXT:    %0 = tgraph.negate %a {tgraph.stream = 0 : i32}
// CHECK-NEXT:    %{{.*}} = tgraph.fusion(%{{.*}} = %0) {tgraph.stream = 1 : i32}
// CHECK-NEXT:      tgraph.abs %{{.*}} : tensor<4xf32>
// CHECK-NEXT:      tgraph.exponential
func.func @streams(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.negate %a {tgraph.stream = 0 : i32} : tensor<4xf32>
  %1 = tgraph.abs %0 {tgraph.stream = 1 : i32} : tensor<4xf32>
  %2 = tgraph.exponential %1 {tgraph.stream = 1 : i32} : tensor<4xf32>
  func.return %2 : tensor<4xf32>
}
