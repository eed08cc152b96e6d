// RUN: plan-opt %s -p 'plan-memory{bounds="n<=128"}' | filecheck %s

// With bounds, the arena is that of the largest sizes, static, with constant offsets.
// Only the shapes of views depend on the call; the bounds stay for callers.
// CHECK:      func.func @main
// CHECK-SAME: attributes {tgraph.bounds = {n = 128 : i64}}
// CHECK:      %[[ARENA:.*]] = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<33284xi8>
// CHECK:      memref.view %[[ARENA]][%c0_1][%n] : memref<33284xi8> to memref<?x64xf32>
// CHECK:      memref.view %[[ARENA]][%{{.*}}][%n] : memref<33284xi8> to memref<?xf32>
// CHECK:      memref.view %[[ARENA]][%{{.*}}][] : memref<33284xi8> to memref<f32>
// CHECK:      memref.dealloc %[[ARENA]]
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
