// RUN: plan-opt %s -p convert-tgraph-to-linalg | filecheck %s

// 300 columns are two panels of 128, in one nest, and a panel of 44. The innermost loop
// runs along the rows of the right operand.
// CHECK-LABEL: func.func @columns
// CHECK:       %[[RIGHT:.*]] = memref.reinterpret_cast %b to offset: [0], sizes: [8, 2, 128], strides: [300, 128, 1]
// CHECK:       %[[OUT:.*]] = memref.reinterpret_cast %r to offset: [0], sizes: [4, 2, 128], strides: [300, 128, 1]
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d2, d0, d3)>, affine_map<(d0, d1, d2, d3) -> (d1, d0, d3)>], iterator_types = ["parallel", "parallel", "reduction", "parallel"]} ins(%a, %[[RIGHT]] :
// CHECK-SAME:  outs(%[[OUT]] :
// CHECK:       memref.reinterpret_cast %r to offset: [256], sizes: [4, 44], strides: [300, 1]
// CHECK-NOT:   memref.alloc
func.func @columns(%a: memref<4x8xf32>, %b: memref<8x300xf32>, %r: memref<4x300xf32>) {
  tgraph.dot_general %a, %b outs(%r) {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (memref<4x8xf32>, memref<8x300xf32>) -> memref<4x300xf32>
  func.return
}

// A transposed operand is packed one panel at a time.
// CHECK-LABEL: func.func @transposed
// CHECK:       %[[PACKED:.*]] = memref.alloc() {alignment = 64 : i64} : memref<8x128xf32>
// CHECK:       scf.for
// CHECK:         memref.reinterpret_cast %b to offset: [%{{.*}}], sizes: [128, 8], strides: [8, 1]
// CHECK:         linalg.copy
// CHECK:         linalg.generic {{.*}}iterator_types = ["parallel", "reduction", "parallel"]} ins(%a, %[[PACKED]] :
// CHECK:       memref.dealloc %[[PACKED]]
func.func @transposed(%a: memref<4x8xf32>, %b: memref<256x8xf32>, %r: memref<4x256xf32>) {
  tgraph.dot_general %a, %b outs(%r) {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 1>} : (memref<4x8xf32>, memref<256x8xf32>) -> memref<4x256xf32>
  func.return
}

// The epilogue reads an operand in the memory of the result, so the product can't
// accumulate there.
// CHECK-LABEL: func.func @in_place
// CHECK:       %[[SUMS:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4x4xf32>
// CHECK:       linalg.generic {{.*}} ins(%a, %a : {{.*}} outs(%[[SUMS]] :
// CHECK:       linalg.generic {{.*}} outs(%r :
func.func @in_place(%a: memref<4x4xf32>, %r: memref<4x4xf32>) {
  tgraph.fusion(%x = %a, %y = %r) outs(%r) : memref<4x4xf32> {
    %0 = tgraph.dot_general %x, %x {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<4x4xf32>
    %1 = tgraph.add %0, %y : tensor<4x4xf32>
    tgraph.yield %1 : tensor<4x4xf32>
  }
  func.return
}
