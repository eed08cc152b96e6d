// RUN: plan-opt %s -p 'convert-tgraph-to-linalg,plan-memory' | filecheck %s

// The workspace of the sum is planned together with the program's buffers.
// CHECK:      %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<{{.*}}xi8, "cpu:0">
// CHECK:      memref.view %arena{{.*}} to memref<16x4xf32, "cpu:0">
// CHECK:      memref.view %arena{{.*}} to memref<16xf64, "cpu:0">
// CHECK-NOT:  memref.alloc
func.func @f(%a: memref<16x4xf32, "cpu:0">, %r: memref<16xf32, "cpu:0"> {tgraph.result = 0 : i32}) {
  %0 = memref.alloc() : memref<16x4xf32, "cpu:0">
  tgraph.exponential %a outs(%0) : memref<16x4xf32, "cpu:0">
  tgraph.reduce %0 outs(%r) {kind = "add", dimensions = array<i64: 1>} : (memref<16x4xf32, "cpu:0">) -> memref<16xf32, "cpu:0">
  memref.dealloc %0 : memref<16x4xf32, "cpu:0">
  func.return
}
