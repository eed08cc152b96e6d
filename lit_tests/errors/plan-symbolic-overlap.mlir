// RUN: not plan-opt %s -p plan-check 2>&1 | filecheck %s

// Unsound for typical sizes (n = 64): %b starts within %a.
// CHECK-NOT: Traceback
// CHECK:     plan-symbolic-overlap.mlir:20:3: error: tgraph.add uses buffer %a, whose bytes [64, 256) now belong to buffer %b

func.func @main(%x: memref<?xf32> {tgraph.dims = #tgraph.dims<n>},
                %r: memref<?xf32> {tgraph.result = 0 : i32, tgraph.dims = #tgraph.dims<n>}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %0 = arith.muli %n, %c64 : index
  %1 = arith.muli %n, %c256 : index
  %arena = memref.alloc(%1) {alignment = 64 : i64, tgraph.arena} : memref<?xi8>
  %a = memref.view %arena[%c0][%n] : memref<?xi8> to memref<?xf32>
  tgraph.exponential %x outs(%a) : memref<?xf32>
  %b = memref.view %arena[%c64][%n] : memref<?xi8> to memref<?xf32>
  tgraph.tanh %x outs(%b) : memref<?xf32>
  tgraph.add %a, %b outs(%r) : memref<?xf32>
  memref.dealloc %arena : memref<?xi8>
  func.return
}
