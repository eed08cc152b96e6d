// RUN: not plan-opt %s -p plan-check 2>&1 | filecheck %s

func.func @f(%in: memref<16xf32>, %out: memref<16xf32>) {
  %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<128xi8>
  %c0 = arith.constant 0 : index
  %a = memref.view %arena[%c0][] : memref<128xi8> to memref<16xf32>
  %b = memref.view %arena[%c0][] : memref<128xi8> to memref<16xf32>
  tgraph.negate %in outs(%a) : memref<16xf32>
  tgraph.negate %in outs(%b) : memref<16xf32>
  tgraph.add %a, %b outs(%out) : (memref<16xf32>, memref<16xf32>) -> memref<16xf32>
  memref.dealloc %arena : memref<128xi8>
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     plan-overlap.mlir:10:3: error: tgraph.add uses buffer %a, whose bytes [0, 64) now belong to buffer %b
