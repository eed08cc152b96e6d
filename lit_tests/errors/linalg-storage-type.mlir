// RUN: not plan-opt %s -p convert-tgraph-to-linalg 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK:     linalg-storage-type.mlir:6:3: error: tgraph.convert with elements of type i4 is not supported
func.func @main(%x: memref<8xi4>, %r: memref<8xi32> {tgraph.result = 0 : i32}) {
  tgraph.convert %x outs(%r) : (memref<8xi4>) -> (memref<8xi32>)
  func.return
}
