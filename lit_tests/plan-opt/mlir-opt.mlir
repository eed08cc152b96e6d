// Pipelines in mlir-opt's syntax.
// RUN: plan-opt %s --canonicalize --plan-memory='strategy=naive alignment=256' | filecheck %s
// RUN: plan-opt %s -p canonicalize --plan-memory='alignment=256' | filecheck %s
// RUN: plan-opt %s --pass-pipeline='builtin.module(func.func(canonicalize, cse), plan-memory{alignment=256})' | filecheck %s
// RUN: not plan-opt %s --pass-pipeline='builtin.module(plan-memry)' 2>&1 | filecheck %s --check-prefix=UNKNOWN

// CHECK:         %arena = memref.alloc() {alignment = 256 : i64, tgraph.arena}
// CHECK-NOT:     arith.addi
// UNKNOWN:       plan-opt: error: unknown pass 'plan-memry'; did you mean 'plan-memory'?
func.func @f(%x: memref<16xf32>, %i: index) {
  %unused = arith.addi %i, %i : index
  %a = memref.alloc() : memref<16xf32>
  memref.copy %x, %a : memref<16xf32> to memref<16xf32>
  memref.copy %a, %x : memref<16xf32> to memref<16xf32>
  memref.dealloc %a : memref<16xf32>
  func.return
}
