// RUN: not plan-opt %s -p convert-tgraph-to-linalg 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK:     linalg-storage-type.mlir:6:3: error: tgraph.convert is not supported with elements of type f8E5M2
func.func @main(%x: memref<8xf8E5M2>, %r: memref<8xf32> {tgraph.result = 0 : i32}) {
  tgraph.convert %x outs(%r) : (memref<8xf8E5M2>) -> (memref<8xf32>)
  func.return
}
