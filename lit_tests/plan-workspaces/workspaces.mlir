// RUN: plan-opt %s -p 'plan-workspaces{kernels=numpy}' --split-input-file | filecheck %s
// RUN: plan-opt %s -p 'plan-workspaces{kernels=numpy},plan-memory' --split-input-file | filecheck %s --check-prefix=PLAN

// BLAS takes matrices, so the first operand is copied, with its sums in the order of the
// second. The copy is live in the product's step only; negate needs no workspace.
// CHECK-LABEL: func.func @product
// CHECK:      tgraph.negate %x outs(%0) : memref<8x4x6xf64, "cpu:0">
// CHECK-NEXT: %workspace = memref.alloc() : memref<[[SIZE:\d+]]xi8, "cpu:0">
// CHECK-NEXT: tgraph.dot_general %0, %w outs(%y) workspace(%workspace : memref<[[SIZE]]xi8, "cpu:0">) {
// CHECK-NEXT: memref.dealloc %workspace : memref<[[SIZE]]xi8, "cpu:0">
// CHECK-NEXT: memref.dealloc %0

// plan-memory plans the workspace like a buffer, disjoint from the product's operands.
// PLAN-LABEL: func.func @product
// PLAN:      %0 = memref.view %arena[%c0][] : {{.*}} to memref<8x4x6xf64, "cpu:0">
// PLAN:      %workspace = memref.view %arena[%c[[SIZE:\d+]]][] : {{.*}} to memref<[[SIZE]]xi8, "cpu:0">
// PLAN-NEXT: tgraph.dot_general %0, %w outs(%y) workspace(%workspace : memref<[[SIZE]]xi8, "cpu:0">)
func.func @product(%x: memref<8x4x6xf64, "cpu:0">, %w: memref<6x8x5xf64, "cpu:0">,
                   %y: memref<4x5xf64, "cpu:0">) {
  %0 = memref.alloc() : memref<8x4x6xf64, "cpu:0">
  tgraph.negate %x outs(%0) : memref<8x4x6xf64, "cpu:0">
  tgraph.dot_general %0, %w outs(%y) {lhs_contracting_dimensions = array<i64: 0, 2>, rhs_contracting_dimensions = array<i64: 1, 0>} : (memref<8x4x6xf64, "cpu:0">, memref<6x8x5xf64, "cpu:0">) -> memref<4x5xf64, "cpu:0">
  memref.dealloc %0 : memref<8x4x6xf64, "cpu:0">
  func.return
}

// -----

// Matrices in a layout that BLAS accepts need no workspace.
// CHECK-LABEL: func.func @as_it_is
// CHECK-NOT:   workspace
// PLAN-LABEL:  func.func @as_it_is
func.func @as_it_is(%x: memref<4x8xf64>, %w: memref<8x5xf64>, %y: memref<4x5xf64>) {
  tgraph.dot_general %x, %w outs(%y) {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (memref<4x8xf64>, memref<8x5xf64>) -> memref<4x5xf64>
  func.return
}

// -----

// In a loop, a workspace is live within the iteration.
// CHECK-LABEL: func.func @loop
// CHECK:       } do {
// CHECK-NEXT:    %workspace = memref.alloc()
// CHECK-NEXT:    tgraph.dot_general {{.*}} workspace(%workspace
// CHECK-NEXT:    memref.dealloc %workspace

// The second product's workspace reuses the bytes of the first: both are short-lived.
// PLAN-LABEL:  func.func @loop
// PLAN:         %workspace = memref.view %arena[%c0][]
// PLAN-NEXT:    tgraph.dot_general
// PLAN:         %workspace_1 = memref.view %arena[%c0][]
// PLAN-NEXT:    tgraph.dot_general
func.func @loop(%x: memref<8x4x6xf64>, %w: memref<6x8x5xf64>, %y: memref<4x5xf64>, %go: memref<i1>) {
  scf.while : () -> () {
    %0 = memref.load %go[] : memref<i1>
    scf.condition(%0)
  } do {
    tgraph.dot_general %x, %w outs(%y) {lhs_contracting_dimensions = array<i64: 0, 2>, rhs_contracting_dimensions = array<i64: 1, 0>} : (memref<8x4x6xf64>, memref<6x8x5xf64>) -> memref<4x5xf64>
    tgraph.dot_general %x, %w outs(%y) {lhs_contracting_dimensions = array<i64: 0, 2>, rhs_contracting_dimensions = array<i64: 1, 0>} : (memref<8x4x6xf64>, memref<6x8x5xf64>) -> memref<4x5xf64>
    scf.yield
  }
  func.return
}

// -----

// A given workspace is kept; functions with arenas are already planned.
// CHECK-LABEL: func.func @given
// CHECK-NOT:   memref.alloc
// CHECK:       tgraph.dot_general %x, %w outs(%y) workspace(%s : memref<64xi8>)
// PLAN-LABEL:  func.func @given
func.func @given(%x: memref<8x4x6xf64>, %w: memref<6x8x5xf64>, %y: memref<4x5xf64>, %s: memref<64xi8>) {
  tgraph.dot_general %x, %w outs(%y) workspace(%s : memref<64xi8>) {lhs_contracting_dimensions = array<i64: 0, 2>, rhs_contracting_dimensions = array<i64: 1, 0>} : (memref<8x4x6xf64>, memref<6x8x5xf64>) -> memref<4x5xf64>
  func.return
}
