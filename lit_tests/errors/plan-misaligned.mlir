// RUN: not plan-opt %s -p plan-check 2>&1 | filecheck %s

func.func @f(%in: memref<16xf32>, %out: memref<16xf32>) {
  %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<128xi8>
  %c4 = arith.constant 4 : index
  %a = memref.view %arena[%c4][] : memref<128xi8> to memref<16xf32>
  tgraph.negate %in outs(%a) : memref<16xf32>
  tgraph.negate %a outs(%out) : memref<16xf32>
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     plan-misaligned.mlir:6:8: error: buffer %a has offset 4, expected a multiple of the arena's alignment, 64
