// RUN: plan-opt %s -p canonicalize | filecheck %s

// Operands are stored with one byte per element; products are accumulated in i32.
// CHECK-LABEL: func.func @quantized
// CHECK-NEXT:    %0 = tgraph.transpose %w {permutation = array<i64: 1, 0>} : (tensor<3x8xi8>) -> tensor<8x3xi8>
// CHECK-NEXT:    %1 = tgraph.dot_general %x, %0 {{.*}} : (tensor<4x8xui8>, tensor<8x3xi8>) -> tensor<4x3xi32>
// CHECK-NEXT:    func.return %1
func.func @quantized(%x: tensor<4x8xui8>, %w: tensor<3x8xi8>) -> tensor<4x3xi32> {
  %0 = tgraph.convert %x : (tensor<4x8xui8>) -> tensor<4x8xi32>
  %1 = tgraph.convert %w : (tensor<3x8xi8>) -> tensor<3x8xi32>
  %2 = tgraph.transpose %1 {permutation = array<i64: 1, 0>} : (tensor<3x8xi32>) -> tensor<8x3xi32>
  %3 = tgraph.dot_general %0, %2 {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<4x8xi32>, tensor<8x3xi32>) -> tensor<4x3xi32>
  func.return %3 : tensor<4x3xi32>
}

// CHECK-LABEL: func.func @half_precision
// CHECK-NEXT:    tgraph.convolution %x, %w {{.*}} : (tensor<1x8x8x4xbf16>, tensor<3x3x4x2xbf16>) -> tensor<1x6x6x2xf32>
func.func @half_precision(%x: tensor<1x8x8x4xbf16>, %w: tensor<3x3x4x2xbf16>) -> tensor<1x6x6x2xf32> {
  %0 = tgraph.convert %x : (tensor<1x8x8x4xbf16>) -> tensor<1x8x8x4xf32>
  %1 = tgraph.convert %w : (tensor<3x3x4x2xbf16>) -> tensor<3x3x4x2xf32>
  %2 = tgraph.convolution %0, %1 {dim_labels = "b01f_01io->b01f", window_strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x8x8x4xf32>, tensor<3x3x4x2xf32>) -> tensor<1x6x6x2xf32>
  func.return %2 : tensor<1x6x6x2xf32>
}

// Another operation reads %0, so it is stored anyway; the conversion to %1 rounds.
// CHECK-LABEL: func.func @not_narrower
// CHECK:         %2 = tgraph.dot_general %0, %1 {{.*}} : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
func.func @not_narrower(%x: tensor<4x8xbf16>, %w: tensor<8x3xf64>) -> (tensor<4x3xf32>, tensor<4x8xf32>) {
  %0 = tgraph.convert %x : (tensor<4x8xbf16>) -> tensor<4x8xf32>
  %1 = tgraph.convert %w : (tensor<8x3xf64>) -> tensor<8x3xf32>
  %2 = tgraph.dot_general %0, %1 {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  %3 = tgraph.negate %0 : tensor<4x8xf32>
  func.return %2, %3 : tensor<4x3xf32>, tensor<4x8xf32>
}

// A sum of 8-bit integers is a product with ones, if the constant fits in 8 bits.
// CHECK-LABEL: func.func @sums
// CHECK-NEXT:    %0 = tgraph.constant<128 : i32> : tensor<8x3xi32>
// CHECK-NEXT:    %1 = tgraph.constant<1 : i8> : tensor<8x3xi8>
// CHECK-NEXT:    %2 = tgraph.dot_general %x, %1 {{.*}} : (tensor<4x8xui8>, tensor<8x3xi8>)
// CHECK-NEXT:    %3 = tgraph.dot_general %x, %0 {{.*}} : (tensor<4x8xui8>, tensor<8x3xi32>)
func.func @sums(%x: tensor<4x8xui8>) -> (tensor<4x3xi32>, tensor<4x3xi32>) {
  %0 = tgraph.convert %x : (tensor<4x8xui8>) -> tensor<4x8xi32>
  %1 = tgraph.constant<1 : i32> : tensor<8x3xi32>
  %2 = tgraph.constant<128 : i32> : tensor<8x3xi32>
  %3 = tgraph.dot_general %0, %1 {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<4x8xi32>, tensor<8x3xi32>) -> tensor<4x3xi32>
  %4 = tgraph.dot_general %0, %2 {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<4x8xi32>, tensor<8x3xi32>) -> tensor<4x3xi32>
  func.return %3, %4 : tensor<4x3xi32>, tensor<4x3xi32>
}

// If neither matrix is in a layout that libraries read, and the result is transposed
// anyway, the operands are swapped: attention weights times values, as JAX writes them.
// CHECK-LABEL: func.func @values
// CHECK-NEXT:    %0 = tgraph.dot_general %p, %v {lhs_batching_dimensions = array<i64: 0>, rhs_batching_dimensions = array<i64: 1>, lhs_contracting_dimensions = array<i64: 2>, rhs_contracting_dimensions = array<i64: 0>} : {{.*}} -> tensor<2x4x5xf32>
// CHECK-NEXT:    %1 = tgraph.transpose %0 {permutation = array<i64: 1, 0, 2>} : (tensor<2x4x5xf32>) -> tensor<4x2x5xf32>
// CHECK-NEXT:    func.return %1
func.func @values(%p: tensor<2x4x3xf32>, %v: tensor<3x2x5xf32>) -> tensor<4x2x5xf32> {
  %0 = tgraph.dot_general %v, %p {lhs_batching_dimensions = array<i64: 1>, rhs_batching_dimensions = array<i64: 0>, lhs_contracting_dimensions = array<i64: 0>, rhs_contracting_dimensions = array<i64: 2>} : (tensor<3x2x5xf32>, tensor<2x4x3xf32>) -> tensor<2x5x4xf32>
  %1 = tgraph.transpose %0 {permutation = array<i64: 2, 0, 1>} : (tensor<2x5x4xf32>) -> tensor<4x2x5xf32>
  func.return %1 : tensor<4x2x5xf32>
}

// Operands are not swapped if one of them is in such a layout.
// CHECK-LABEL: func.func @rows
// CHECK-NEXT:    tgraph.dot_general %v, %p
// CHECK-NEXT:    tgraph.transpose {{.*}} {permutation = array<i64: 2, 0, 1>}
func.func @rows(%p: tensor<2x4x3xf32>, %v: tensor<2x5x3xf32>) -> tensor<4x2x5xf32> {
  %0 = tgraph.dot_general %v, %p {lhs_batching_dimensions = array<i64: 0>, rhs_batching_dimensions = array<i64: 0>, lhs_contracting_dimensions = array<i64: 2>, rhs_contracting_dimensions = array<i64: 2>} : (tensor<2x5x3xf32>, tensor<2x4x3xf32>) -> tensor<2x5x4xf32>
  %1 = tgraph.transpose %0 {permutation = array<i64: 2, 0, 1>} : (tensor<2x5x4xf32>) -> tensor<4x2x5xf32>
  func.return %1 : tensor<4x2x5xf32>
}

// A contraction that sums nothing becomes an elementwise product, which groups can
// fuse. Narrow operands are converted first.
// CHECK-LABEL: func.func @outer
// CHECK-NEXT:    %0 = tgraph.broadcast_in_dim %x {broadcast_dimensions = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT:    %1 = tgraph.reshape %y : (tensor<4x1x2xbf16>) -> tensor<4x2xbf16>
// CHECK-NEXT:    %2 = tgraph.convert %1 : (tensor<4x2xbf16>) -> tensor<4x2xf32>
// CHECK-NEXT:    %3 = tgraph.broadcast_in_dim %2 {broadcast_dimensions = array<i64: 2, 0>} : (tensor<4x2xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT:    %4 = tgraph.multiply %0, %3
// CHECK-NEXT:    func.return %4
func.func @outer(%x: tensor<3x2xf32>, %y: tensor<4x1x2xbf16>) -> tensor<2x3x4xf32> {
  %0 = tgraph.reshape %x : (tensor<3x2xf32>) -> tensor<3x1x2xf32>
  %1 = tgraph.dot_general %0, %y {lhs_batching_dimensions = array<i64: 2>, rhs_batching_dimensions = array<i64: 2>, lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 1>} : (tensor<3x1x2xf32>, tensor<4x1x2xbf16>) -> tensor<2x3x4xf32>
  func.return %1 : tensor<2x3x4xf32>
}

// A convolution that multiplies a matrix and a vector is a product: one feature that each
// place computes, and the gradient of its weights.
// CHECK-LABEL: func.func @one_feature
// CHECK-NEXT:    [[Y:%[0-9]+]] = tgraph.dot_general %x, %w {{.*}} : (tensor<2x5x6x8xf32>, tensor<1x1x8x1xf32>) -> tensor<2x5x6x1x1x1xf32>
// CHECK-NEXT:    [[R:%[0-9]+]] = tgraph.reshape [[Y]]
// CHECK-NEXT:    [[G:%[0-9]+]] = tgraph.dot_general %x, [[R]] {lhs_contracting_dimensions = array<i64: 0, 1, 2>, rhs_contracting_dimensions = array<i64: 0, 1, 2>} : (tensor<2x5x6x8xf32>, tensor<2x5x6x1xf32>) -> tensor<8x1xf32>
// CHECK-NEXT:    [[S:%[0-9]+]] = tgraph.reshape [[G]] : (tensor<8x1xf32>) -> tensor<1x1x8x1xf32>
// CHECK-NEXT:    func.return [[R]], [[S]]
func.func @one_feature(%x: tensor<2x5x6x8xf32>, %w: tensor<1x1x8x1xf32>) -> (tensor<2x5x6x1xf32>, tensor<1x1x8x1xf32>) {
  %0 = tgraph.convolution %x, %w {dim_labels = "b01f_01io->b01f", window_strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<2x5x6x8xf32>, tensor<1x1x8x1xf32>) -> tensor<2x5x6x1xf32>
  %1 = tgraph.convolution %x, %0 {dim_labels = "f01b_i01o->01bf", window_strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<2x5x6x8xf32>, tensor<2x5x6x1xf32>) -> tensor<1x1x8x1xf32>
  func.return %0, %1 : tensor<2x5x6x1xf32>, tensor<1x1x8x1xf32>
}
