// RUN: not plan-opt %s -p plan-check 2>&1 | filecheck %s

// %v is %b of the previous iteration, which has the same bytes.
func.func @f(%n: index, %in: memref<16xf32>) {
  %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%v = %in) -> (memref<16xf32>) {
    %b = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
    tgraph.reverse %v outs(%b) {dimensions = array<i64: 0>} : memref<16xf32>
    scf.yield %b : memref<16xf32>
  }
  memref.dealloc %arena : memref<64xi8>
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     plan-carried.mlir:10:5: error: tgraph.reverse writes operand 1 over operand 0 before reading all of it, expected separate memory
