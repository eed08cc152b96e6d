// RUN: plan-opt %s -p tgraph-fold-scale-axis | filecheck %s

!x = tensor<4x8xf32>
!y = tensor<4x16xf32>
!w = tensor<8x16xf32>

// The scale moves past the bias, which it scales too, into the weight.
// CHECK-LABEL: func.func @result
// CHECK-NEXT:    %[[S:.*]] = tgraph.broadcast_in_dim %s {broadcast_dimensions = array<i64: 1>} : (tensor<16xf32>) -> tensor<8x16xf32>
// CHECK-NEXT:    %[[W:.*]] = tgraph.multiply %w, %[[S]] : tensor<8x16xf32>
// CHECK-NEXT:    %[[Y:.*]] = tgraph.dot_general %x, %[[W]]
// CHECK-NEXT:    %[[B:.*]] = tgraph.multiply %b, %s : tensor<16xf32>
// CHECK-NEXT:    %[[T:.*]] = tgraph.broadcast_in_dim %[[B]]
// CHECK-NEXT:    %[[R:.*]] = tgraph.add %[[Y]], %[[T]] : tensor<4x16xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @result(%x: !x, %w: !w {tgraph.parameter}, %b: tensor<16xf32> {tgraph.parameter}, %s: tensor<16xf32> {tgraph.parameter}) -> !y {
  %0 = tgraph.dot_general %x, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (!x, !w) -> !y
  %1 = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 1>} : (tensor<16xf32>) -> !y
  %2 = tgraph.add %0, %1 : !y
  %3 = tgraph.broadcast_in_dim %s {broadcast_dimensions = array<i64: 1>} : (tensor<16xf32>) -> !y
  %4 = tgraph.multiply %2, %3 : !y
  func.return %4 : !y
}

// A scale along the input features is folded into the other dimension of the weight.
// CHECK-LABEL: func.func @operand
// CHECK-NEXT:    %[[S:.*]] = tgraph.broadcast_in_dim %s {broadcast_dimensions = array<i64: 0>} : (tensor<8xf32>) -> tensor<8x16xf32>
// CHECK-NEXT:    %[[W:.*]] = tgraph.divide %w, %[[S]] : tensor<8x16xf32>
// CHECK-NEXT:    %[[Y:.*]] = tgraph.dot_general %x, %[[W]]
// CHECK-NEXT:    func.return %[[Y]]
func.func @operand(%x: !x, %w: !w {tgraph.parameter}, %s: tensor<8xf32> {tgraph.parameter}) -> !y {
  %0 = tgraph.broadcast_in_dim %s {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> !x
  %1 = tgraph.divide %x, %0 : !x
  %2 = tgraph.dot_general %1, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (!x, !w) -> !y
  func.return %2 : !y
}

// A scale along the batch can't be folded into a weight; a weight that is no parameter
// would have to be scaled in every run.
// CHECK-LABEL: func.func @stay
// CHECK-NEXT:    tgraph.dot_general
// CHECK-NEXT:    tgraph.broadcast_in_dim
// CHECK-NEXT:    tgraph.multiply
// CHECK-NEXT:    tgraph.dot_general
// CHECK-NEXT:    tgraph.constant
// CHECK-NEXT:    tgraph.multiply
// CHECK-NEXT:    func.return
func.func @stay(%x: !x, %w: !w {tgraph.parameter}, %s: tensor<4xf32> {tgraph.parameter}, %v: !w) -> (!y, !y) {
  %0 = tgraph.dot_general %x, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (!x, !w) -> !y
  %1 = tgraph.broadcast_in_dim %s {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> !y
  %2 = tgraph.multiply %0, %1 : !y
  %3 = tgraph.dot_general %x, %v {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (!x, !w) -> !y
  %4 = tgraph.constant<2.0 : f32> : !y
  %5 = tgraph.multiply %3, %4 : !y
  func.return %2, %5 : !y, !y
}

// A dead reader of the product does not prevent folding.
// CHECK-LABEL: func.func @dead
// CHECK:         tgraph.multiply %w
// CHECK-NEXT:    %[[Y:.*]] = tgraph.dot_general
// CHECK-NEXT:    func.return %[[Y]]
func.func @dead(%x: !x, %w: !w {tgraph.parameter}, %s: tensor<16xf32> {tgraph.parameter}) -> !y {
  %0 = tgraph.dot_general %x, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (!x, !w) -> !y
  %1 = tgraph.negate %0 : !y
  %2 = tgraph.broadcast_in_dim %s {broadcast_dimensions = array<i64: 1>} : (tensor<16xf32>) -> !y
  %3 = tgraph.multiply %0, %2 : !y
  func.return %3 : !y
}

// Both scales of an operand are folded, one after the other.
// CHECK-LABEL: func.func @two_scales
// CHECK:         tgraph.dot_general %x, {{%[0-9a-z_]+}} {
func.func @two_scales(%x: tensor<4x6xf32>, %w: tensor<6x3xf32> {tgraph.parameter}) -> tensor<4x3xf32> {
  %a = tgraph.constant<2.0 : f32> : tensor<4x6xf32>
  %b = tgraph.constant<3.0 : f32> : tensor<4x6xf32>
  %0 = tgraph.multiply %x, %a : tensor<4x6xf32>
  %1 = tgraph.multiply %0, %b : tensor<4x6xf32>
  %2 = tgraph.dot_general %1, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<4x6xf32>, tensor<6x3xf32>) -> tensor<4x3xf32>
  func.return %2 : tensor<4x3xf32>
}
