// RUN: not plan-opt %s -p plan-check 2>&1 | filecheck %s

// %b overwrites the bytes of %a only if %c is true.
func.func @f(%c: i1, %in: memref<16xf32>, %out: memref<16xf32>) {
  %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
  %c0 = arith.constant 0 : index
  %a = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
  tgraph.negate %in outs(%a) : memref<16xf32>
  scf.if %c {
    %b = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
    tgraph.negate %in outs(%b) : memref<16xf32>
  }
  tgraph.negate %a outs(%out) : memref<16xf32>
  memref.dealloc %arena : memref<64xi8>
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     plan-overlap-branch.mlir:13:3: error: tgraph.negate uses buffer %a, whose bytes [0, 64) now belong to buffer %b
