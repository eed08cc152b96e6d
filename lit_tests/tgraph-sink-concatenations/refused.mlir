// RUN: plan-opt %s -p tgraph-fuse,tgraph-sink-concatenations 2>&1 | filecheck %s

!x = tensor<8x64xf32>
!r = tensor<1x64xf32>
!y = tensor<9x64xf32>

// CHECK-NOT: remark

// A product also reads the concatenation, so it is stored anyway.
// CHECK-LABEL: func.func @product
// CHECK:         tgraph.concatenate %x, %r {dimension = 0 : i64}
// CHECK-NEXT:    tgraph.dot_general
// CHECK-NEXT:    tgraph.tanh
func.func @product(%x: !x, %r: !r, %w: tensor<64x64xf32>) -> (!y, !y) {
  %0 = tgraph.concatenate %x, %r {dimension = 0 : i64} : (!x, !r) -> !y
  %1 = tgraph.dot_general %0, %w {lhs_batching_dimensions = array<i64>, rhs_batching_dimensions = array<i64>, lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (!y, tensor<64x64xf32>) -> !y
  %2 = tgraph.tanh %0 : !y
  func.return %1, %2 : !y, !y
}

// Interior padding is not one part, nor is cropping by a negative pad.
// CHECK-LABEL: func.func @between
// CHECK:         tgraph.pad
// CHECK-NEXT:    tgraph.tanh
func.func @between(%x: !x, %zero: tensor<f32>) -> tensor<15x64xf32> {
  %0 = tgraph.pad %x, %zero {low = array<i64: 0, 0>, high = array<i64: 0, 0>, interior = array<i64: 1, 0>} : (!x, tensor<f32>) -> tensor<15x64xf32>
  %1 = tgraph.tanh %0 : tensor<15x64xf32>
  func.return %1 : tensor<15x64xf32>
}

// 33 parts are too many.
// CHECK-LABEL: func.func @many
// CHECK:         tgraph.concatenate %x
// CHECK-NEXT:    tgraph.tanh
func.func @many(%x: !r) -> tensor<33x64xf32> {
  %0 = tgraph.concatenate %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x {dimension = 0 : i64}
    : (!r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r, !r) -> tensor<33x64xf32>
  %1 = tgraph.tanh %0 : tensor<33x64xf32>
  func.return %1 : tensor<33x64xf32>
}
