// RUN: plan-opt %s -p 'tgraph-rematerialize{budget=32KiB}' 2>%t.err | filecheck %s
// RUN: filecheck %s --check-prefix=REMARK --input-file %t.err
// RUN: plan-opt %s -p 'tgraph-rematerialize{budget=32KiB}, plan-pipeline' | filecheck %s --check-prefix=PLANNED
// RUN: plan-opt %s -p 'tgraph-rematerialize{budget=1MiB}' | filecheck %s --check-prefix=ENOUGH

// %a has 16 KiB and is needed first and last, so it is computed twice instead of being
// kept while %b and %c are both live.
// CHECK-LABEL: func.func @late_reader
// CHECK-NEXT:    %a = tgraph.exponential %x : tensor<64x64xf32>
// CHECK-NEXT:    %b = tgraph.dot_general %a, %w
// CHECK-NEXT:    %c = tgraph.dot_general %b, %w
// CHECK-NEXT:    %[[A:.*]] = tgraph.exponential %x {tgraph.recomputed} : tensor<64x64xf32>
// CHECK-NEXT:    %d = tgraph.dot_general %c, %[[A]]
// REMARK: repeat.mlir:[[#]]:8: remark: tgraph.exponential is recomputed: 81920 FLOPs
// REMARK: remark: recomputed operations: 1, with 81920 FLOPs, 4.95 % of the function's 1654784
// REMARK: remark: the peak goes from 49152 to 32768 bytes

// cse and fusion keep the repeated operation, down to the arena.
// PLANNED-LABEL: func.func @late_reader
// PLANNED:         memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<32768xi8, "cpu:0">
// PLANNED:         tgraph.exponential
// PLANNED:         tgraph.exponential {{.*}}tgraph.recomputed

// Nothing is repeated if the budget suffices.
// ENOUGH-NOT: recomputed
func.func @late_reader(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %a = tgraph.exponential %x : tensor<64x64xf32>
  %b = tgraph.dot_general %a, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  %c = tgraph.dot_general %b, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  %d = tgraph.dot_general %c, %a {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  func.return %d : tensor<64x64xf32>
}

// A value that is read through a view is repeated with the view. The product could be
// repeated, too, but the exponential is cheap.
// CHECK-LABEL: func.func @through_a_view
// CHECK:         %a = tgraph.exponential %x
// CHECK:         %v = tgraph.transpose %a
// CHECK:         %c = tgraph.dot_general
// CHECK-NEXT:    %[[A:.*]] = tgraph.exponential %x {tgraph.recomputed}
// CHECK-NEXT:    %[[V:.*]] = tgraph.transpose %[[A]]
// CHECK-NEXT:    tgraph.dot_general %c, %[[V]]
func.func @through_a_view(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %a = tgraph.exponential %x : tensor<64x64xf32>
  %v = tgraph.transpose %a {permutation = array<i64: 1, 0>} : tensor<64x64xf32>
  %b = tgraph.dot_general %v, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  %c = tgraph.dot_general %b, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  %d = tgraph.dot_general %c, %v {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  func.return %d : tensor<64x64xf32>
}

// %a reads a variable that is written before %a's last use, so %a must be kept.
// CHECK-LABEL: func.func @variable
// CHECK-NOT:     recomputed
// REMARK: the peak goes from 49152 to 49152 bytes, 16384 above the budget
func.func @variable(%v: !tgraph.variable<tensor<64x64xf32>>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %x = tgraph.read %v : tensor<64x64xf32>
  %a = tgraph.exponential %x : tensor<64x64xf32>
  %n = tgraph.negate %x outs(%v) : tensor<64x64xf32>
  %b = tgraph.dot_general %a, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  %c = tgraph.dot_general %b, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  %d = tgraph.dot_general %c, %a {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  func.return %d : tensor<64x64xf32>
}
