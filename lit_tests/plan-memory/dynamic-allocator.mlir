// RUN: plan-opt %s -p 'plan-memory{dynamic=allocator}' 2>&1 | filecheck %s

// The device's allocator keeps dynamic sizes, with a remark; static ones are planned.
// CHECK:      remark: memref.alloc is not planned: memref<?x64xf32> has a dynamic size
// CHECK:      remark: memref.alloc is not planned: memref<?xf32> has a dynamic size
// CHECK:      %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<4xi8>
// CHECK:      memref.alloc(%n) : memref<?x64xf32>
// CHECK:      memref.alloc(%n) : memref<?xf32>
func.func @main(%x: memref<?x64xf32> {tgraph.dims = #tgraph.dims<n>},
                %r: memref<?x64xf32> {tgraph.result = 0 : i32, tgraph.dims = #tgraph.dims<n>}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x64xf32>
  %a = memref.alloc(%n) : memref<?x64xf32>
  tgraph.exponential %x outs(%a) : memref<?x64xf32>
  %b = memref.alloc(%n) : memref<?xf32>
  tgraph.reduce %a outs(%b) {kind = "add", dimensions = array<i64: 1>} : (memref<?x64xf32>) -> memref<?xf32>
  %c = memref.alloc() : memref<f32>
  tgraph.reduce %b outs(%c) {kind = "add", dimensions = array<i64: 0>} : (memref<?xf32>) -> memref<f32>
  memref.dealloc %b : memref<?xf32>
  %d = memref.reinterpret_cast %c to offset: [0], sizes: [%n, 64], strides: [0, 0] : memref<f32> to memref<?x64xf32, strided<[0, 0]>>
  tgraph.divide %a, %d outs(%r) : (memref<?x64xf32>, memref<?x64xf32, strided<[0, 0]>>) -> memref<?x64xf32>
  memref.dealloc %a : memref<?x64xf32>
  memref.dealloc %c : memref<f32>
  func.return
}
