// RUN: not plan-opt %s -p plan-check 2>&1 | filecheck %s

// In program order %b follows %a, but nothing orders the streams.
func.func @f(%in: memref<16xf32>, %out: memref<16xf32>, %other: memref<16xf32>) {
  %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
  %c0 = arith.constant 0 : index
  %a = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
  %b = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
  tgraph.negate %in outs(%a) {tgraph.stream = 0 : i32} : memref<16xf32>
  tgraph.exponential %a outs(%out) {tgraph.stream = 0 : i32} : memref<16xf32>
  tgraph.negate %in outs(%b) {tgraph.stream = 1 : i32} : memref<16xf32>
  tgraph.exponential %b outs(%other) {tgraph.stream = 1 : i32} : memref<16xf32>
  memref.dealloc %arena : memref<64xi8>
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     plan-streams.mlir:8:8: error: buffers %a and %b share bytes [0, 64), but no dependency orders all uses of %a before those of %b
