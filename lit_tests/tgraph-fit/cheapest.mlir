// RUN: plan-opt %s --split-input-file -p 'tgraph-place-devices{default="cpu:0"},tgraph-fit{budget=2MiB reuse-outputs=false tiles=false offload="cpu:1"}' 2>&1 | filecheck %s

// Recomputing a product takes longer than copying it while other products run.
// CHECK:       remark: the candidate 'copies to cpu:1' meets the budget of 2097152 bytes with 2097152 (+{{.*}}% estimated time); also tried: {{.*}}, recomputation 2097152 (+{{.*}}% estimated time)
// CHECK-LABEL: func.func @main
// CHECK:       tgraph.device_copy
// CHECK-NOT:   tgraph.recomputed
func.func @main(%x: tensor<512x512xf32>, %w: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %a = tgraph.dot_general %x, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<512x512xf32>
  %b = tgraph.dot_general %a, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<512x512xf32>
  %c = tgraph.dot_general %b, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<512x512xf32>
  %d = tgraph.dot_general %c, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<512x512xf32>
  %e = tgraph.dot_general %d, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<512x512xf32>
  %f = tgraph.dot_general %e, %a {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<512x512xf32>
  func.return %f : tensor<512x512xf32>
}

// -----

// An operation that costs almost nothing is recomputed for each product.
// CHECK:       remark: the candidate 'fusion and order' meets the budget of 2097152 bytes with 2097152 (+{{.*}}% estimated time); also tried: {{.*}}, copies to cpu:1 2097152 (+{{.*}}% estimated time)
// CHECK-LABEL: func.func @main
// CHECK-NOT:   tgraph.device_copy
// CHECK:       tgraph.negate
// CHECK:       tgraph.negate
func.func @main(%x: tensor<512x512xf32>, %w: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %a = tgraph.negate %x : tensor<512x512xf32>
  %b = tgraph.dot_general %a, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<512x512xf32>
  %c = tgraph.dot_general %b, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<512x512xf32>
  %d = tgraph.dot_general %c, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<512x512xf32>
  %e = tgraph.dot_general %d, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<512x512xf32>
  %f = tgraph.dot_general %e, %a {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<512x512xf32>
  func.return %f : tensor<512x512xf32>
}
