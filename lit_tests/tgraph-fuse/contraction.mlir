// RUN: plan-opt %s -p tgraph-fuse | filecheck %s

// Elementwise operations after a product are computed in place in its result.
// CHECK-LABEL: func.func @dense_relu
// CHECK-NEXT:    %r = tgraph.fusion(%[[B:.*]] = %b, %[[X:.*]] = %x, %[[W:.*]] = %w)
// CHECK-NEXT:      tgraph.broadcast_in_dim %[[B]]
// CHECK-NEXT:      %[[Z:.*]] = tgraph.constant
// CHECK-NEXT:      tgraph.dot_general %[[X]], %[[W]]
// CHECK-NEXT:      tgraph.add
// CHECK-NEXT:      tgraph.maximum
// CHECK-NEXT:      tgraph.yield
func.func @dense_relu(%x: tensor<4x8xf32>, %w: tensor<8x5xf32>, %b: tensor<5xf32>) -> tensor<4x5xf32> {
  %bb = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 1>} : (tensor<5xf32>) -> tensor<4x5xf32>
  %zero = tgraph.constant<0.0 : f32> : tensor<4x5xf32>
  %d = tgraph.dot_general %x, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
  %s = tgraph.add %d, %bb : tensor<4x5xf32>
  %r = tgraph.maximum %s, %zero : tensor<4x5xf32>
  func.return %r : tensor<4x5xf32>
}

// A group has one contraction and none of its operands' operations: %e is stored.
// CHECK-LABEL: func.func @two_products
// CHECK-NEXT:    %e = tgraph.exponential
// CHECK-NEXT:    %q = tgraph.dot_general
// CHECK-NEXT:    %s = tgraph.fusion
// CHECK-NEXT:      %{{.*}} = tgraph.dot_general
// CHECK-NEXT:      tgraph.add
func.func @two_products(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %e = tgraph.exponential %x : tensor<4x4xf32>
  %p = tgraph.dot_general %e, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %q = tgraph.dot_general %w, %e {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = tgraph.add %p, %q : tensor<4x4xf32>
  func.return %s : tensor<4x4xf32>
}

// New contents are computed over old ones, block by block: no gradient is stored.
// CHECK-LABEL: func.func @update
// CHECK:         %n = tgraph.fusion
// CHECK-NEXT:      %{{.*}} = tgraph.dot_general
// CHECK-NEXT:      %{{.*}} = tgraph.subtract
// CHECK:         tgraph.assign %v, %n
func.func @update(%v: !tgraph.variable<tensor<4x4xf32>>, %x: tensor<4x4xf32>) {
  %w = tgraph.read %v : tensor<4x4xf32>
  %g = tgraph.dot_general %x, %x {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %n = tgraph.subtract %w, %g : tensor<4x4xf32>
  tgraph.assign %v, %n : tensor<4x4xf32>
  func.return
}
