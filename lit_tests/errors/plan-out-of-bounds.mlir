// RUN: not plan-opt %s -p plan-check 2>&1 | filecheck %s

func.func @f(%in: memref<16xf32>, %out: memref<16xf32>) {
  %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<127xi8>
  %c64 = arith.constant 64 : index
  %a = memref.view %arena[%c64][] : memref<127xi8> to memref<16xf32>
  tgraph.negate %in outs(%a) : memref<16xf32>
  tgraph.negate %a outs(%out) : memref<16xf32>
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     plan-out-of-bounds.mlir:6:8: error: buffer %a lies in bytes [64, 128), expected within the arena's [0, 127)
