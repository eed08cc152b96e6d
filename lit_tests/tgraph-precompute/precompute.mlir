// RUN: plan-opt %s -p tgraph-precompute | filecheck %s

!x = tensor<4x8xf32>
!w = tensor<8x8xf32>
!b = tensor<8xf32>

// CHECK-LABEL: func.func @precompute
// CHECK-SAME:    (%w: tensor<8x8xf32> {tgraph.parameter}, %s: tensor<8x8xf32> {tgraph.parameter}) -> tensor<8x8xf32>
// CHECK-NEXT:    %v = tgraph.multiply %w, %s : tensor<8x8xf32>
// CHECK-NEXT:    func.return %v

// %w and %s are gone; %b stays, as its broadcast is larger, and is broadcast here.
// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%x: tensor<4x8xf32>, %b: tensor<8xf32> {tgraph.parameter}, %v: tensor<8x8xf32> {tgraph.parameter, tgraph.precomputed = 0 : i32})
// CHECK-NEXT:    tgraph.dot_general %x, %v
// CHECK-NEXT:    tgraph.broadcast_in_dim %b
// CHECK-NEXT:    tgraph.add
// CHECK-NEXT:    func.return
func.func @main(%x: !x, %w: !w {tgraph.parameter}, %b: !b {tgraph.parameter}, %s: !w {tgraph.parameter}) -> !x {
  %v = tgraph.multiply %w, %s : !w
  %y = tgraph.dot_general %x, %v {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (!x, !w) -> !x
  %c = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 1>} : (!b) -> !x
  %r = tgraph.add %y, %c : !x
  func.return %r : !x
}
