// RUN: plan-opt %s -p tgraph-gradient | filecheck %s
// RUN: plan-opt %s -p plan-pipeline | filecheck %s --check-prefix=PLAN

// Only necessary gradients are computed; two paths are summed as early as possible.
// CHECK-LABEL: func.func @square
// CHECK-NEXT:    %y = tgraph.multiply %x, %x : tensor<f32>
// CHECK-NEXT:    %c = tgraph.exponential %z : tensor<f32>
// CHECK-NEXT:    %0 = tgraph.constant<1.000000e+00 : f32> : tensor<f32>
// CHECK-NEXT:    %1 = tgraph.multiply %0, %x : tensor<f32>
// CHECK-NEXT:    %2 = tgraph.multiply %0, %x : tensor<f32>
// CHECK-NEXT:    %g = tgraph.add %1, %2 : tensor<f32>
// CHECK-NEXT:    func.return %c, %g
func.func @square(%x: tensor<f32>, %z: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %y = tgraph.multiply %x, %x : tensor<f32>
  %c = tgraph.exponential %z : tensor<f32>
  %g = tgraph.gradient %y wrt %x : tensor<f32> wrt tensor<f32>
  func.return %c, %g : tensor<f32>, tensor<f32>
}

// An unused gradient is not computed.
// CHECK-LABEL: func.func @unused
// CHECK-NEXT:    %y = tgraph.exponential %x
// CHECK-NEXT:    func.return
func.func @unused(%x: tensor<f32>) -> tensor<f32> {
  %y = tgraph.exponential %x : tensor<f32>
  %g = tgraph.gradient %y wrt %x : tensor<f32> wrt tensor<f32>
  func.return %y : tensor<f32>
}

// The gradient with respect to a weight has the layout of the weight: no transpose. The
// gradient of a broadcast bias is a sum.
// CHECK-LABEL: func.func @layer
// CHECK:         %gx = tgraph.dot_general %d, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 1>} : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
// CHECK-NEXT:    %gw = tgraph.dot_general %x, %d {lhs_contracting_dimensions = array<i64: 0>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
// CHECK-NOT:     transpose
// PLAN-LABEL:  func.func @layer
// PLAN:          tgraph.reduce %d outs(
// PLAN-NEXT:     tgraph.dot_general %d, %w outs(
// PLAN-NEXT:     tgraph.dot_general %x, %d outs(
// PLAN-NEXT:     func.return
func.func @layer(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>, %b: tensor<3xf32>, %d: tensor<2x3xf32>) -> (tensor<2x4xf32>, tensor<4x3xf32>, tensor<3xf32>) {
  %0 = tgraph.dot_general %x, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %1 = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<2x3xf32>
  %2 = tgraph.add %0, %1 : tensor<2x3xf32>
  %gx, %gw, %gb = tgraph.gradient %2 heads %d wrt %x, %w, %b : tensor<2x3xf32> wrt tensor<2x4xf32>, tensor<4x3xf32>, tensor<3xf32>
  func.return %gx, %gw, %gb : tensor<2x4xf32>, tensor<4x3xf32>, tensor<3xf32>
}
