// RUN: plan-opt %s -p 'plan-memory{hints="n=128"}' 2>&1 | filecheck %s

// Without bounds, offsets are computed from sizes, in the order in which a plan for
// typical sizes places buffers: %a (256 * n bytes) at the bottom, %b (4 * n, rounded up
// to the alignment) above it, and %c above both, as all are live at once. The arena
// ends with the last buffer. The plan is proved for all n: there is no remark.
// CHECK-NOT:  remark
// CHECK:      %n = memref.dim %x, %c0
// CHECK-NEXT: %c256 = arith.constant 256 : index
// CHECK-NEXT: %[[A:.*]] = arith.muli %n, %c256 : index
// CHECK-NEXT: %c4 = arith.constant 4 : index
// CHECK-NEXT: %[[B:.*]] = arith.muli %n, %c4 : index
// CHECK-NEXT: %c63 = arith.constant 63 : index
// CHECK-NEXT: %[[PADDED:.*]] = arith.addi %[[B]], %c63 : index
// CHECK-NEXT: %c64 = arith.constant 64 : index
// CHECK-NEXT: %[[BLOCKS:.*]] = arith.floordivsi %[[PADDED]], %c64 : index
// CHECK-NEXT: %[[ROUNDED:.*]] = arith.muli %[[BLOCKS]], %c64 : index
// CHECK:      %[[ARENA:.*]] = memref.alloc(%{{.*}}) {alignment = 64 : i64, tgraph.arena} : memref<?xi8>
// CHECK-NEXT: memref.view %[[ARENA]][%c0][%n] : memref<?xi8> to memref<?x64xf32>
// CHECK:      memref.view %[[ARENA]][%[[A]]][%n] : memref<?xi8> to memref<?xf32>
// CHECK-NOT:  memref.alloc
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
