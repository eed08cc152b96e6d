// RUN: plan-opt %s -p 'convert-tgraph-to-linalg{named=true}' | filecheck %s

// The right operand is transposed: linalg.matmul reads a transposed view.
// CHECK-LABEL: func.func @matmul
// CHECK:       linalg.fill
// CHECK:       %[[B:.*]] = memref.reinterpret_cast %b to offset: [0], sizes: [5, 6], strides: [1, 5]
// CHECK:       linalg.matmul ins(%a, %[[B]] : {{.*}}) outs(%r : memref<4x6xf32>)
func.func @matmul(%a: memref<4x5xf32>, %b: memref<6x5xf32>, %r: memref<4x6xf32>) {
  tgraph.dot_general %a, %b outs(%r) {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 1>} : (memref<4x5xf32>, memref<6x5xf32>) -> memref<4x6xf32>
  func.return
}

// Two batch dimensions are collapsed to one.
// CHECK-LABEL: func.func @batch
// CHECK:       linalg.batch_matmul ins(%{{.*}} : memref<6x4x5xf32>, memref<6x5x7xf32>) outs(%{{.*}} : memref<6x4x7xf32>)
func.func @batch(%a: memref<2x3x4x5xf32>, %b: memref<2x3x5x7xf32>, %r: memref<2x3x4x7xf32>) {
  tgraph.dot_general %a, %b outs(%r) {lhs_batching_dimensions = array<i64: 0, 1>, rhs_batching_dimensions = array<i64: 0, 1>, lhs_contracting_dimensions = array<i64: 3>, rhs_contracting_dimensions = array<i64: 2>} : (memref<2x3x4x5xf32>, memref<2x3x5x7xf32>) -> memref<2x3x4x7xf32>
  func.return
}

// 16-bit floats accumulate in f32, which no named operation does.
// CHECK-LABEL: func.func @small
// CHECK:       linalg.generic {{.*}}iterator_types = ["parallel", "reduction", "parallel"]}
func.func @small(%a: memref<4x5xf16>, %b: memref<5x6xf16>, %r: memref<4x6xf16>) {
  tgraph.dot_general %a, %b outs(%r) {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (memref<4x5xf16>, memref<5x6xf16>) -> memref<4x6xf16>
  func.return
}

// Convolutions become named operations for any order of dimensions.
// CHECK-LABEL: func.func @convolution
// CHECK:       memref.reinterpret_cast %x to offset: [0], sizes: [1, 8, 8, 3], strides: [192, 8, 1, 64]
// CHECK:       linalg.conv_2d_nhwc_hwcf {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
func.func @convolution(%x: memref<1x3x8x8xf32>, %k: memref<4x3x2x2xf32>, %r: memref<1x4x4x4xf32>) {
  tgraph.convolution %x, %k outs(%r) {dim_labels = "bf01_oi01->bf01", window_strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (memref<1x3x8x8xf32>, memref<4x3x2x2xf32>) -> memref<1x4x4x4xf32>
  func.return
}
