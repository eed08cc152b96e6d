// RUN: plan-opt %s | filecheck %s

// Transfers of the affine dialect, as mlir-opt prints them.
// CHECK-LABEL:   func.func @affine
// CHECK:         "affine.dma_start"(%x, %i, %far, %i, %tag, %c0, %n) {src_map = affine_map<(d0) -> ((d0 + 1), d0)>, dst_map = affine_map<(d0) -> (d0)>, tag_map = affine_map<(d0) -> (d0)>} :
// CHECK:         "affine.dma_wait"(%tag, %c0, %n) {tag_map = affine_map<(d0) -> (d0)>} :
func.func @affine(%x: memref<4x4xf32>, %far: memref<16xf32, 1>, %i: index) {
  %c0 = arith.constant 0 : index
  %n = arith.constant 4 : index
  %tag = memref.alloca() : memref<1xi32>
  affine.dma_start %x[%i + 1, %i], %far[%i], %tag[%c0], %n : memref<4x4xf32>, memref<16xf32, 1>, memref<1xi32>
  affine.dma_wait %tag[%c0], %n : memref<1xi32>
  return
}
