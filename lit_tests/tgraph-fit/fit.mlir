// RUN: plan-opt %s -p 'tgraph-place-devices{default="cpu:0"},tgraph-fit{budget=48KiB reuse-outputs=false}' 2>&1 | filecheck %s --check-prefix=ENOUGH
// RUN: plan-opt %s -p 'tgraph-place-devices{default="cpu:0"},tgraph-fit{budget=32KiB reuse-outputs=false}' 2>&1 | filecheck %s --check-prefix=AGAIN
// RUN: plan-opt %s -p 'plan-pipeline{budget=32KiB reuse-outputs=false offload="cpu:1"}' 2>&1 | filecheck %s --check-prefix=MOVED
// RUN: not plan-opt %s -p 'plan-pipeline{budget=20kB reuse-outputs=false offload="cpu:1"}' 2>&1 | filecheck %s --check-prefix=ERROR

// The default sequence meets the budget, so there is no remark.
// ENOUGH-NOT: budget

// %a can't be recomputed after its variable is overwritten, and 61 is prime: without
// another device, only single rows meet the budget. With another device, nothing is
// recomputed or slow.
// AGAIN: remark: the candidate 'loops over tiles of 8192 bytes' meets the budget of 32768 bytes with 30340 (+{{.*}}% estimated time); also tried: larger groups 44708, fusion and order 44708, tiles 44708, cheap recomputation 44708, {{.*}}, recomputation 44708

// MOVED: remark: the candidate 'copies to cpu:1' meets the budget of 32768 bytes with 29796 (+{{.*}}% estimated time); also tried: {{.*}}, recomputation 44708
// MOVED-DAG: memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<29796xi8, "cpu:0">
// MOVED-DAG: memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<14884xi8, "cpu:1">

// ERROR: error: the arena on cpu:0 takes 29796 bytes, 9796 more than the budget of 20000
func.func @main(%v: !tgraph.variable<tensor<61x61xf32>>, %w: tensor<61x61xf32>) -> tensor<61x61xf32> {
  %x = tgraph.read %v : tensor<61x61xf32>
  %a = tgraph.exponential %x : tensor<61x61xf32>
  %b = tgraph.dot_general %a, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<61x61xf32>
  tgraph.assign %v, %w : tensor<61x61xf32>
  %c = tgraph.dot_general %b, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<61x61xf32>
  %d = tgraph.dot_general %c, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<61x61xf32>
  %e = tgraph.dot_general %d, %a {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<61x61xf32>
  func.return %e : tensor<61x61xf32>
}
