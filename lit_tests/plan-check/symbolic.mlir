// RUN: plan-opt %s -p plan-check 2>&1 | filecheck %s

// Sound for n = 64 and below, but %b starts at 256 for all sizes: plan-check emits a
// remark here, and larger sizes are an error at run time.
// CHECK: remark: not proved for all sizes, so the runtime checks the sizes of each call: tgraph.add uses buffer %a, whose bytes may now belong to buffer %b

func.func @main(%x: memref<?xf32> {tgraph.dims = #tgraph.dims<n>},
                %r: memref<?xf32> {tgraph.result = 0 : i32, tgraph.dims = #tgraph.dims<n>}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %0 = arith.muli %n, %c64 : index
  %c512 = arith.constant 512 : index
  %1 = arith.muli %n, %c512 : index
  %arena = memref.alloc(%1) {alignment = 64 : i64, tgraph.arena} : memref<?xi8>
  %a = memref.view %arena[%c0][%n] : memref<?xi8> to memref<?xf32>
  tgraph.exponential %x outs(%a) : memref<?xf32>
  %b = memref.view %arena[%c256][%n] : memref<?xi8> to memref<?xf32>
  tgraph.tanh %x outs(%b) : memref<?xf32>
  tgraph.add %a, %b outs(%r) : memref<?xf32>
  memref.dealloc %arena : memref<?xi8>
  func.return
}
