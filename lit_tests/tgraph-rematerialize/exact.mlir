// REQUIRES: ortools
// RUN: plan-opt %s -p 'tgraph-rematerialize{budget=12KiB exact=true}' 2>%t.err | filecheck %s
// RUN: filecheck %s --check-prefix=REMARK --input-file %t.err

// Both %p and %q are idle while the products run, and one of them must be dropped: %q
// is cheaper to recompute.
// CHECK-LABEL: func.func @fewest
// CHECK-NEXT:    %p = tgraph.dot_general %x, %w
// CHECK-NEXT:    %q = tgraph.exponential %x
// CHECK-NEXT:    %a = tgraph.multiply %p, %q
// CHECK-NEXT:    %b = tgraph.dot_general %a, %w
// CHECK-NEXT:    %c = tgraph.dot_general %b, %w
// CHECK-NEXT:    %d = tgraph.dot_general %c, %p
// CHECK-NEXT:    %[[Q:.*]] = tgraph.exponential %x {tgraph.recomputed}
// CHECK-NEXT:    %e = tgraph.dot_general %d, %[[Q]]
// REMARK: remark: recomputed operations: 1, with 20480 FLOPs
func.func @fewest(%x: tensor<32x32xf32>, %w: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %p = tgraph.dot_general %x, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<32x32xf32>
  %q = tgraph.exponential %x : tensor<32x32xf32>
  %a = tgraph.multiply %p, %q : tensor<32x32xf32>
  %b = tgraph.dot_general %a, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<32x32xf32>
  %c = tgraph.dot_general %b, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<32x32xf32>
  %d = tgraph.dot_general %c, %p {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<32x32xf32>
  %e = tgraph.dot_general %d, %q {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<32x32xf32>
  func.return %e : tensor<32x32xf32>
}
