// RUN: not plan-opt %s 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK:     transfers.mlir:7:{{[0-9]+}}: error: memref.dma_wait has 1 operands for strides, expected 0
func.func @numbers(%tag: memref<1xi32>, %n: index) {
  // a wait has no strides
  memref.dma_wait %tag[%n], %n, %n : memref<1xi32>
  return
}
