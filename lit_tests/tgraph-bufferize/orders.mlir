// RUN: plan-opt %s -p tgraph-bufferize | filecheck %s

// The product is computed in the order of the result.
// CHECK-LABEL: func.func @returned
// CHECK-NEXT:    [[Z:%[a-z0-9_]+]] = memref.reinterpret_cast %{{[a-z0-9_]+}} to offset: [0], sizes: [4, 3, 8], strides: [8, 32, 1]
// CHECK-NEXT:    tgraph.dot_general %x, %y outs([[Z]])
// CHECK-NEXT:    func.return
func.func @returned(%x: tensor<4x5xf32>, %y: tensor<3x5x8xf32>) -> tensor<3x4x8xf32> {
  %z = tgraph.dot_general %x, %y {lhs_batching_dimensions = array<i64>, rhs_batching_dimensions = array<i64>, lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 1>} : (tensor<4x5xf32>, tensor<3x5x8xf32>) -> tensor<4x3x8xf32>
  %t = tgraph.transpose %z {permutation = array<i64: 1, 0, 2>} : (tensor<4x3x8xf32>) -> tensor<3x4x8xf32>
  func.return %t : tensor<3x4x8xf32>
}

// It is computed in the order of the reshape, which is then a view.
// CHECK-LABEL: func.func @reshaped
// CHECK-NEXT:    [[A:%[a-z0-9_]+]] = memref.alloc() : memref<3x4x8xf32>
// CHECK-NEXT:    [[Z:%[a-z0-9_]+]] = memref.reinterpret_cast [[A]] to offset: [0], sizes: [4, 3, 8], strides: [8, 32, 1]
// CHECK-NEXT:    tgraph.dot_general %x, %y outs([[Z]])
// CHECK-NEXT:    [[R:%[a-z0-9_]+]] = memref.reinterpret_cast [[A]] to offset: [0], sizes: [3, 32], strides: [32, 1]
// CHECK-NEXT:    tgraph.dot_general [[R]], %w
// CHECK-NEXT:    memref.dealloc [[A]]
func.func @reshaped(%x: tensor<4x5xf32>, %y: tensor<3x5x8xf32>, %w: tensor<32x6xf32>) -> tensor<3x6xf32> {
  %z = tgraph.dot_general %x, %y {lhs_batching_dimensions = array<i64>, rhs_batching_dimensions = array<i64>, lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 1>} : (tensor<4x5xf32>, tensor<3x5x8xf32>) -> tensor<4x3x8xf32>
  %t = tgraph.transpose %z {permutation = array<i64: 1, 0, 2>} : (tensor<4x3x8xf32>) -> tensor<3x4x8xf32>
  %r = tgraph.reshape %t : (tensor<3x4x8xf32>) -> tensor<3x32xf32>
  %s = tgraph.dot_general %r, %w {lhs_batching_dimensions = array<i64>, rhs_batching_dimensions = array<i64>, lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<3x32xf32>, tensor<32x6xf32>) -> tensor<3x6xf32>
  func.return %s : tensor<3x6xf32>
}

// Columns of the product are rows of the result.
// CHECK-LABEL: func.func @columns
// CHECK-NEXT:    [[Z:%[a-z0-9_]+]] = memref.reinterpret_cast %{{[a-z0-9_]+}} to offset: [0], sizes: [4, 3, 8], strides: [1, 32, 4]
// CHECK-NEXT:    tgraph.dot_general %x, %y outs([[Z]])
// CHECK-NEXT:    func.return
func.func @columns(%x: tensor<4x5xf32>, %y: tensor<3x5x8xf32>) -> tensor<3x8x4xf32> {
  %z = tgraph.dot_general %x, %y {lhs_batching_dimensions = array<i64>, rhs_batching_dimensions = array<i64>, lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 1>} : (tensor<4x5xf32>, tensor<3x5x8xf32>) -> tensor<4x3x8xf32>
  %t = tgraph.transpose %z {permutation = array<i64: 1, 2, 0>} : (tensor<4x3x8xf32>) -> tensor<3x8x4xf32>
  func.return %t : tensor<3x8x4xf32>
}

// The elements of a row would be apart.
// CHECK-LABEL: func.func @batch
// CHECK:         tgraph.dot_general %x, %y outs([[A:%[a-z0-9_]+]])
// CHECK:         "memref.copy"
func.func @batch(%x: tensor<4x5x6xf32>, %y: tensor<4x6x8xf32>) -> tensor<5x8x4xf32> {
  %z = tgraph.dot_general %x, %y {lhs_batching_dimensions = array<i64: 0>, rhs_batching_dimensions = array<i64: 0>, lhs_contracting_dimensions = array<i64: 2>, rhs_contracting_dimensions = array<i64: 1>} : (tensor<4x5x6xf32>, tensor<4x6x8xf32>) -> tensor<4x5x8xf32>
  %t = tgraph.transpose %z {permutation = array<i64: 1, 2, 0>} : (tensor<4x5x8xf32>) -> tensor<5x8x4xf32>
  func.return %t : tensor<5x8x4xf32>
}

// The operation that reads the transposed product takes over its memory.
// CHECK-LABEL: func.func @taken_over
// CHECK-NEXT:    [[A:%[a-z0-9_]+]] = memref.alloc() : memref<3x4x8xf32>
// CHECK-NEXT:    [[Z:%[a-z0-9_]+]] = memref.reinterpret_cast [[A]] to offset: [0], sizes: [4, 3, 8], strides: [8, 32, 1]
// CHECK-NEXT:    tgraph.dot_general %x, %y outs([[Z]])
// CHECK-NEXT:    tgraph.tanh [[A]] outs([[A]])
// CHECK-NEXT:    tgraph.reduce [[A]]
func.func @taken_over(%x: tensor<4x5xf32>, %y: tensor<3x5x8xf32>) -> tensor<4x8xf32> {
  %z = tgraph.dot_general %x, %y {lhs_batching_dimensions = array<i64>, rhs_batching_dimensions = array<i64>, lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 1>} : (tensor<4x5xf32>, tensor<3x5x8xf32>) -> tensor<4x3x8xf32>
  %t = tgraph.transpose %z {permutation = array<i64: 1, 0, 2>} : (tensor<4x3x8xf32>) -> tensor<3x4x8xf32>
  %h = tgraph.tanh %t : tensor<3x4x8xf32>
  %r = tgraph.reduce %h {kind = "add", dimensions = array<i64: 0>} : (tensor<3x4x8xf32>) -> tensor<4x8xf32>
  func.return %r : tensor<4x8xf32>
}

// Another operation reads the product: it stays row-major.
// CHECK-LABEL: func.func @read
// CHECK:         tgraph.dot_general %x, %y outs([[A:%[a-z0-9_]+]])
// CHECK:         "memref.copy"
// CHECK:         tgraph.negate [[A]]
func.func @read(%x: tensor<4x5xf32>, %y: tensor<3x5x8xf32>) -> (tensor<3x4x8xf32>, tensor<4x3x8xf32>) {
  %z = tgraph.dot_general %x, %y {lhs_batching_dimensions = array<i64>, rhs_batching_dimensions = array<i64>, lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 1>} : (tensor<4x5xf32>, tensor<3x5x8xf32>) -> tensor<4x3x8xf32>
  %t = tgraph.transpose %z {permutation = array<i64: 1, 0, 2>} : (tensor<4x3x8xf32>) -> tensor<3x4x8xf32>
  %n = tgraph.negate %z : tensor<4x3x8xf32>
  func.return %t, %n : tensor<3x4x8xf32>, tensor<4x3x8xf32>
}

// Both transposes together leave the order as it is: any operation writes the result.
// CHECK-LABEL: func.func @twice
// CHECK-NEXT:    [[Z:%[a-z0-9_]+]] = memref.reinterpret_cast %{{[a-z0-9_]+}} to offset: [0], sizes: [4, 8], strides: [8, 1]
// CHECK-NEXT:    tgraph.reduce_window %x outs([[Z]])
// CHECK-NEXT:    func.return
func.func @twice(%x: tensor<4x8xf32>) -> tensor<4x8x1xf32> {
  %z = tgraph.reduce_window %x {kind = "add", window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 1>, padding_low = array<i64: 0, 1>, padding_high = array<i64: 0, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %a = tgraph.transpose %z {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %b = tgraph.reshape %a : (tensor<8x4xf32>) -> tensor<8x1x4xf32>
  %c = tgraph.transpose %b {permutation = array<i64: 2, 0, 1>} : (tensor<8x1x4xf32>) -> tensor<4x8x1xf32>
  func.return %c : tensor<4x8x1xf32>
}
