// RUN: plan-opt %s -p 'plan-memory{hints="n=128"},specialize-sizes{sizes="n=3"}' | filecheck %s

// A plan with offsets that depend on n becomes static: 3 * 256 bytes for %a, then one
// unit of alignment for the 3 * 4 bytes of %b, then %c. No arithmetic is left.
// CHECK:      func.func @main(%x: memref<3x64xf32>, %r: memref<3x64xf32> {tgraph.result = 0 : i32}) {
// CHECK-NOT:  memref.dim
// CHECK:      memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<836xi8>
// CHECK-NEXT: memref.view %arena[%c0][] : memref<836xi8> to memref<3x64xf32>
// CHECK:      memref.view %arena[%{{.*}}][] : memref<836xi8> to memref<3xf32>
// CHECK:      memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [3, 64], strides: [0, 0]
// CHECK-NOT:  arith.{{muli|addi|floordivsi}}
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
