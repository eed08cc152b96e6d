// Transfers, as mlir-opt prints them, last until their waits: %b does not reuse the
// bytes of %a before.
// RUN: plan-opt %s -p plan-memory,plan-check 2>&1 | filecheck %s

// CHECK:         remark: plan-check: 1 arena, 2 buffers checked
// CHECK-LABEL:   func.func @dma
// CHECK:         memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<128xi8>
// CHECK:         "memref.dma_start"(%a, %c0, %c0, %far, %c0, %n, %tag, %c0) : (memref<4x4xf32>, index, index, memref<16xf32, 1 : i64>, index, index, memref<1xi32>, index) -> ()
// CHECK:         "memref.dma_wait"(%tag, %c0, %n) : (memref<1xi32>, index, index) -> ()
func.func @dma(%x: memref<4x4xf32>, %y: memref<4x4xf32>, %far: memref<16xf32, 1>) {
  %c0 = arith.constant 0 : index
  %n = arith.constant 16 : index
  %tag = memref.alloca() : memref<1xi32>
  %a = memref.alloc() : memref<4x4xf32>
  linalg.exp ins(%x : memref<4x4xf32>) outs(%a : memref<4x4xf32>)
  memref.dma_start %a[%c0, %c0], %far[%c0], %n, %tag[%c0] : memref<4x4xf32>, memref<16xf32, 1>, memref<1xi32>
  %b = memref.alloc() : memref<4x4xf32>
  linalg.exp ins(%x : memref<4x4xf32>) outs(%b : memref<4x4xf32>)
  linalg.exp ins(%b : memref<4x4xf32>) outs(%y : memref<4x4xf32>)
  memref.dealloc %b : memref<4x4xf32>
  memref.dma_wait %tag[%c0], %n : memref<1xi32>
  memref.dealloc %a : memref<4x4xf32>
  return
}

// CHECK-LABEL:   func.func @strided
// CHECK:         "memref.dma_start"(%x, %c0, %c0, %far, %c0, %n, %tag, %c0, %rows, %n) :
func.func @strided(%x: memref<4x4xf32>, %far: memref<16xf32, 1>, %rows: index) {
  %c0 = arith.constant 0 : index
  %n = arith.constant 4 : index
  %tag = memref.alloca() : memref<1xi32>
  memref.dma_start %x[%c0, %c0], %far[%c0], %n, %tag[%c0], %rows, %n : memref<4x4xf32>, memref<16xf32, 1>, memref<1xi32>
  memref.dma_wait %tag[%c0], %n : memref<1xi32>
  return
}
