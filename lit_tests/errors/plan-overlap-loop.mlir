// RUN: not plan-opt %s -p plan-check 2>&1 | filecheck %s

// The first iteration reads %a before %b overwrites it; the second reads it after.
func.func @f(%n: index, %in: memref<16xf32>, %out: memref<16xf32>) {
  %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
  tgraph.negate %in outs(%a) : memref<16xf32>
  scf.for %i = %c0 to %n step %c1 {
    tgraph.negate %a outs(%out) : memref<16xf32>
    %b = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
    tgraph.negate %in outs(%b) : memref<16xf32>
  }
  memref.dealloc %arena : memref<64xi8>
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     plan-overlap-loop.mlir:11:5: error: tgraph.negate uses buffer %a, whose bytes [0, 64) now belong to buffer %b
