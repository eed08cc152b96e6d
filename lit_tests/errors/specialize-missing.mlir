// RUN: not plan-opt %s -p 'specialize-sizes{sizes="n=8"}' 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK:     specialize-missing.mlir:6:1: error: func.func has size m, expected a number for each of its names

func.func @main(%x: memref<?x?xf32> {tgraph.dims = #tgraph.dims<n, m>},
                %r: memref<f32> {tgraph.result = 0 : i32}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32>
  %c1 = arith.constant 1 : index
  %m = memref.dim %x, %c1 : memref<?x?xf32>
  %a = memref.alloc(%n, %m) : memref<?x?xf32>
  tgraph.exponential %x outs(%a) : memref<?x?xf32>
  tgraph.reduce %a outs(%r) {kind = "add", dimensions = array<i64: 0, 1>} : (memref<?x?xf32>) -> memref<f32>
  memref.dealloc %a : memref<?x?xf32>
  func.return
}
