// RUN: plan-opt %s -p 'plan-pipeline{budget=32KiB reuse-outputs=false}' | filecheck %s
// RUN: not plan-opt %s -p 'plan-pipeline{budget=12kB reuse-outputs=false}' 2>&1 | filecheck %s --check-prefix=ERROR
// RUN: plan-opt %s -p 'plan-pipeline{effort=high reuse-outputs=false}' | filecheck %s --check-prefix=HIGH
// RUN: not plan-opt %s -p 'plan-pipeline{effort=some}' 2>&1 | filecheck %s --check-prefix=EFFORT
// RUN: not plan-opt %s -p 'plan-pipeline{budget=some}' 2>&1 | filecheck %s --check-prefix=SIZE
// RUN: not plan-opt %s -p 'tgraph-rematerialize{budget=0}' 2>&1 | filecheck %s --check-prefix=ZERO

// 61 is prime, so tiles can only be single rows.
// CHECK: memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<29796xi8, "cpu:0">
// CHECK: tgraph.recomputed
// HIGH:  memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<29796xi8, "cpu:0">

// The last product needs all of %a in any order, but only rows of its other operands.
// ERROR:      error: the arena on cpu:0 takes 15428 bytes, 3428 more than the budget of 12000
// ERROR:      buffers live at tgraph.dot_general ({{.*}}budget.mlir:[[#]]:8):
// ERROR-NEXT:   14884 bytes of %a, from tgraph.exponential ({{.*}}budget.mlir:[[#]]:8)
// Later buffers in the loop over tiles that reuse these bytes do not count.
// ERROR-NEXT:   244 bytes from tgraph.dynamic_slice
// ERROR-NEXT:   244 bytes of %b, from tgraph.dot_general
// ERROR-NEXT:   4 bytes from tgraph.constant
// ERROR-NEXT: in this order, 15428 bytes are live at the peak
// ERROR-NEXT: tgraph.dot_general ({{.*}}budget.mlir:[[#]]:8) alone takes 15372 bytes; tiles along dimension 1 may take less

// EFFORT: error: pass plan-pipeline: effort is 'some', expected one of low, high
// SIZE:   error: pass plan-pipeline: budget is 'some', expected bytes such as 4096, 64MiB or 1.5GB
// ZERO:   error: pass tgraph-rematerialize: budget is 0, expected bytes such as 4096, 64MiB or 1.5GB
func.func @main(%x: tensor<61x61xf32>, %w: tensor<61x61xf32>) -> tensor<61x61xf32> {
  %a = tgraph.exponential %x : tensor<61x61xf32>
  %b = tgraph.dot_general %a, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<61x61xf32>
  %c = tgraph.dot_general %b, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<61x61xf32>
  %d = tgraph.dot_general %c, %a {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<61x61xf32>
  func.return %d : tensor<61x61xf32>
}
