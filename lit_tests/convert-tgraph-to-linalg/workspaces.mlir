// RUN: plan-opt %s -p convert-tgraph-to-linalg | filecheck %s
// RUN: plan-opt %s -p plan-memory,convert-tgraph-to-linalg | filecheck %s --check-prefix=PLANNED

// Operations of upstream dialects need no workspace of tensorplan's kernels.
// CHECK-LABEL: func.func @f
// CHECK-NOT:   xi8
// CHECK:       linalg.generic

// The arena keeps its size, as offsets are already fixed.
// PLANNED-LABEL: func.func @f
// PLANNED:       %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<{{.*}}xi8, "cpu:0">
// PLANNED-NOT:   to memref<256xi8
// PLANNED:       linalg.generic
func.func @f(%a: memref<16xf32, "cpu:0">, %r: memref<16xf32, "cpu:0">) {
  %0 = memref.alloc() : memref<16xf32, "cpu:0">
  %1 = memref.alloc() : memref<256xi8, "cpu:0">
  tgraph.negate %a outs(%0) workspace(%1 : memref<256xi8, "cpu:0">) : memref<16xf32, "cpu:0">
  memref.dealloc %1 : memref<256xi8, "cpu:0">
  tgraph.tanh %0 outs(%r) : memref<16xf32, "cpu:0">
  memref.dealloc %0 : memref<16xf32, "cpu:0">
  func.return
}
