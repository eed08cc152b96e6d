// RUN: plan-opt %s -p 'tgraph-place-devices{default="cpu:0"},tgraph-concatenate-in-place' 2>&1 | filecheck %s

!x = tensor<8x64xf32>
!y = tensor<16x64xf32>

// CHECK: remark: concatenations whose operands are computed in place: 1; the peak goes from 8192 to 4096 bytes

// Both operands are computed directly into the operand of a product.
// CHECK-LABEL: func.func @encoding
// CHECK:         tgraph.concatenate {{.*}} {dimension = 0 : i64, tgraph.in_place}
func.func @encoding(%x: !x, %w: tensor<64x1xf32>) -> tensor<16x1xf32> {
  %0 = tgraph.sine %x : !x
  %1 = tgraph.cosine %x : !x
  %2 = tgraph.concatenate %0, %1 {dimension = 0 : i64} : (!x, !x) -> !y
  %3 = tgraph.dot_general %2, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (!y, tensor<64x1xf32>) -> tensor<16x1xf32>
  func.return %3 : tensor<16x1xf32>
}

// A U-Net keeps the small operand while it computes a large one. The memory of the
// whole concatenation would raise the peak there.
// CHECK-LABEL: func.func @level
// CHECK:         tgraph.concatenate {{.*}} {dimension = 0 : i64} :
func.func @level(%x: !x, %u: tensor<64x64xf32>, %v: tensor<64x8xf32>, %w: tensor<64x1xf32>) -> tensor<16x1xf32> {
  %0 = tgraph.sine %x : !x
  %1 = tgraph.dot_general %u, %0 {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 1>} : (tensor<64x64xf32>, !x) -> tensor<64x8xf32>
  %2 = tgraph.dot_general %1, %v {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 1>} : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<64x64xf32>
  %3 = tgraph.reduce %2 {kind = "maximum", dimensions = array<i64: 0>} : (tensor<64x64xf32>) -> tensor<64xf32>
  %4 = tgraph.broadcast_in_dim %3 {broadcast_dimensions = array<i64: 1>} : (tensor<64xf32>) -> !x
  %5 = tgraph.add %4, %x : !x
  %6 = tgraph.concatenate %0, %5 {dimension = 0 : i64} : (!x, !x) -> !y
  %7 = tgraph.dot_general %6, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (!y, tensor<64x1xf32>) -> tensor<16x1xf32>
  func.return %7 : tensor<16x1xf32>
}

// Arguments are always copied, so nothing is computed in place.
// CHECK-LABEL: func.func @arguments
// CHECK:         tgraph.concatenate {{.*}} {dimension = 0 : i64} :
func.func @arguments(%x: !x, %y: !x, %w: tensor<64x1xf32>) -> tensor<16x1xf32> {
  %2 = tgraph.concatenate %x, %y {dimension = 0 : i64} : (!x, !x) -> !y
  %3 = tgraph.dot_general %2, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (!y, tensor<64x1xf32>) -> tensor<16x1xf32>
  func.return %3 : tensor<16x1xf32>
}
