// RUN: not plan-opt %s -p plan-check 2>&1 | filecheck %s

// A workspace that overlaps an operand of its operation.
func.func @f(%a: memref<16xf32, "cpu:0">, %r: memref<16xf32, "cpu:0">) {
  %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8, "cpu:0">
  %c0 = arith.constant 0 : index
  %x = memref.view %arena[%c0][] : memref<64xi8, "cpu:0"> to memref<16xf32, "cpu:0">
  tgraph.negate %a outs(%x) : memref<16xf32, "cpu:0">
  %s = memref.view %arena[%c0][] : memref<64xi8, "cpu:0"> to memref<64xi8, "cpu:0">
  tgraph.tanh %x outs(%r) workspace(%s : memref<64xi8, "cpu:0">) : memref<16xf32, "cpu:0">
  memref.dealloc %arena : memref<64xi8, "cpu:0">
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     workspace-overlap.mlir:10:3: error: tgraph.tanh writes operand 2 over part of operand 0, expected separate memory
