// RUN: not plan-opt %s -p plan-pipeline 2>&1 | filecheck %s

// The plan of an input is checked unchanged: cse would merge the views of two buffers
// at the same place.

// CHECK: {{.*}}plan-equal-views.mlir:[[#]]:3: error: tgraph.add uses buffer %a, whose bytes [0, 64) now belong to buffer %b
func.func @main(%x: memref<16xf32>, %r: memref<16xf32> {tgraph.result = 0 : i32}) {
  %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
  %c0 = arith.constant 0 : index
  %a = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
  %b = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
  tgraph.negate %x outs(%a) : (memref<16xf32>) -> memref<16xf32>
  tgraph.exponential %x outs(%b) : (memref<16xf32>) -> memref<16xf32>
  tgraph.add %a, %b outs(%r) : (memref<16xf32>, memref<16xf32>) -> memref<16xf32>
  memref.dealloc %arena : memref<64xi8>
  func.return
}
