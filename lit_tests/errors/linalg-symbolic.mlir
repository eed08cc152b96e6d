// RUN: not plan-opt %s -p convert-tgraph-to-linalg 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK:     linalg-symbolic.mlir:6:3: error: tgraph.negate: memref<?xf32> has symbolic sizes, expected static ones; run specialize-sizes first
func.func @main(%x: memref<?xf32>, %r: memref<?xf32> {tgraph.result = 0 : i32}) {
  tgraph.negate %x outs(%r) : memref<?xf32>
  func.return
}
