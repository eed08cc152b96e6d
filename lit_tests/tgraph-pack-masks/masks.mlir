// RUN: plan-opt %s -p 'tgraph-place-devices{default="cpu:0"},tgraph-fuse,tgraph-schedule,tgraph-pack-masks' | filecheck %s

// Two masks are live at the peak: eight elements along the first dimension are packed
// in a byte. The third one is recomputed from %h2.
!x = tensor<8x64x64xf32>
!m = tensor<8x64x64xi1>
!w = tensor<64x64xf32>
// CHECK-LABEL: func.func @main
// CHECK:         tgraph.shift_left
// CHECK-NEXT:    tgraph.reduce {{.*}} {kind = "add", dimensions = array<i64: 0>} : (tensor<8x64x64xui8, "cpu:0">) -> tensor<64x64xui8, "cpu:0">
// CHECK:         tgraph.reduce
// CHECK-NOT:     tgraph.reduce

// Readers of a mask unpack it in their own groups.
// CHECK:         tgraph.shift_right_logical
// CHECK:         tgraph.convert {{.*}} : (tensor<8x64x64xui8, "cpu:0">) -> tensor<8x64x64xi1, "cpu:0">
// CHECK:         tgraph.select
func.func @main(%x: !x, %w: !w) -> !x {
  %zero = tgraph.constant<0.0 : f32> : !x
  %y0 = tgraph.dot_general %x, %w {lhs_contracting_dimensions = array<i64: 2>, rhs_contracting_dimensions = array<i64: 0>} : (!x, !w) -> !x
  %m0 = tgraph.compare %y0, %zero {direction = "GT"} : (!x, !x) -> !m
  %h0 = tgraph.maximum %y0, %zero : !x
  %y1 = tgraph.dot_general %h0, %w {lhs_contracting_dimensions = array<i64: 2>, rhs_contracting_dimensions = array<i64: 0>} : (!x, !w) -> !x
  %m1 = tgraph.compare %y1, %zero {direction = "GT"} : (!x, !x) -> !m
  %h1 = tgraph.maximum %y1, %zero : !x
  %y2 = tgraph.dot_general %h1, %w {lhs_contracting_dimensions = array<i64: 2>, rhs_contracting_dimensions = array<i64: 0>} : (!x, !w) -> !x
  %m2 = tgraph.compare %y2, %zero {direction = "GT"} : (!x, !x) -> !m
  %h2 = tgraph.maximum %y2, %zero : !x
  %y3 = tgraph.dot_general %h2, %w {lhs_contracting_dimensions = array<i64: 2>, rhs_contracting_dimensions = array<i64: 0>} : (!x, !w) -> !x
  %g2 = tgraph.select %m2, %y3, %zero : (!m, !x, !x) -> !x
  %d2 = tgraph.dot_general %g2, %w {lhs_contracting_dimensions = array<i64: 2>, rhs_contracting_dimensions = array<i64: 1>} : (!x, !w) -> !x
  %g1 = tgraph.select %m1, %d2, %zero : (!m, !x, !x) -> !x
  %d1 = tgraph.dot_general %g1, %w {lhs_contracting_dimensions = array<i64: 2>, rhs_contracting_dimensions = array<i64: 1>} : (!x, !w) -> !x
  %g0 = tgraph.select %m0, %d1, %zero : (!m, !x, !x) -> !x
  %d0 = tgraph.dot_general %g0, %w {lhs_contracting_dimensions = array<i64: 2>, rhs_contracting_dimensions = array<i64: 1>} : (!x, !w) -> !x
  func.return %d0 : !x
}
