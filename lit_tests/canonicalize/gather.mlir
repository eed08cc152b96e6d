// RUN: plan-opt %s -p canonicalize | filecheck %s

// The embedding of one token type is one row. Indices are clamped.
// CHECK-LABEL: func.func @one_place
// CHECK-NEXT:    [[ROW:%[0-9]+]] = tgraph.slice %x {start_indices = array<i64: 3, 0>, limit_indices = array<i64: 4, 8>, strides = array<i64: 1, 1>}
// CHECK-NEXT:    tgraph.broadcast_in_dim [[ROW]] {broadcast_dimensions = array<i64: 0, 2>} : (tensor<1x8xf32>) -> tensor<2x5x8xf32>
// CHECK-NEXT:    func.return
func.func @one_place(%x: tensor<4x8xf32>) -> tensor<2x5x8xf32> {
  %i = tgraph.constant<7 : i64> : tensor<2x5xi64>
  %0 = tgraph.gather %x, %i {offset_dims = array<i64: 2>, collapsed_slice_dims = array<i64: 0>, start_index_map = array<i64: 0>, index_vector_dim = 2 : i64, slice_sizes = array<i64: 1, 8>} : (tensor<4x8xf32>, tensor<2x5xi64>) -> tensor<2x5x8xf32>
  func.return %0 : tensor<2x5x8xf32>
}

// Constant places at equal distances are a view.
// CHECK-LABEL: func.func @swapped
// CHECK-NEXT:    %[[ALL:.*]] = tgraph.reverse %x {dimensions = array<i64: 1>}
// CHECK-NEXT:    func.return %[[ALL]]
func.func @swapped(%x: tensor<5x2xf32>) -> tensor<5x2xf32> {
  %0 = tgraph.constant<dense<[[1], [0]]> : tensor<2x1xi32>> : tensor<2x1xi32>
  %1 = tgraph.gather %x, %0 {offset_dims = array<i64: 0>, collapsed_slice_dims = array<i64: 1>, start_index_map = array<i64: 1>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 5, 1>} : (tensor<5x2xf32>, tensor<2x1xi32>) -> tensor<5x2xf32>
  func.return %1 : tensor<5x2xf32>
}

// CHECK-LABEL: func.func @every_second
// CHECK-NEXT:    %[[SOME:.*]] = tgraph.slice %x {start_indices = array<i64: 1, 0>, limit_indices = array<i64: 6, 3>, strides = array<i64: 2, 1>}
// CHECK-NEXT:    func.return %[[SOME]]
func.func @every_second(%x: tensor<9x3xf32>) -> tensor<3x3xf32> {
  %0 = tgraph.constant<dense<[1, 3, 5]> : tensor<3xi32>> : tensor<3xi32>
  %1 = tgraph.gather %x, %0 {offset_dims = array<i64: 1>, collapsed_slice_dims = array<i64: 0>, start_index_map = array<i64: 0>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 1, 3>} : (tensor<9x3xf32>, tensor<3xi32>) -> tensor<3x3xf32>
  func.return %1 : tensor<3x3xf32>
}

// Places out of bounds are clamped, so they stay a gather.
// CHECK-LABEL: func.func @clamped
// CHECK:         tgraph.gather
func.func @clamped(%x: tensor<9x3xf32>) -> tensor<3x3xf32> {
  %0 = tgraph.constant<dense<[5, 7, 9]> : tensor<3xi32>> : tensor<3xi32>
  %1 = tgraph.gather %x, %0 {offset_dims = array<i64: 1>, collapsed_slice_dims = array<i64: 0>, start_index_map = array<i64: 0>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 1, 3>} : (tensor<9x3xf32>, tensor<3xi32>) -> tensor<3x3xf32>
  func.return %1 : tensor<3x3xf32>
}

// Only what is gathered is computed. No index selects among the numbers of %s.
// CHECK-LABEL: func.func @label
// CHECK-NEXT:    [[X:%[0-9]+]] = tgraph.gather %x, %i
// CHECK-NEXT:    %y = tgraph.subtract [[X]], %s : tensor<4xf32>
// CHECK-NEXT:    func.return %y
func.func @label(%x: tensor<4x16xf32>, %s: tensor<4xf32>, %i: tensor<4x1xi32>) -> tensor<4xf32> {
  %b = tgraph.broadcast_in_dim %s {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x16xf32>
  %d = tgraph.subtract %x, %b : tensor<4x16xf32>
  %y = tgraph.gather %d, %i {offset_dims = array<i64>, collapsed_slice_dims = array<i64: 1>, operand_batching_dims = array<i64: 0>, start_indices_batching_dims = array<i64: 0>, start_index_map = array<i64: 1>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 1, 1>} : (tensor<4x16xf32>, tensor<4x1xi32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// Rows of a scaled table. %w is not the same in all rows, unlike %c and 2.
// CHECK-LABEL: func.func @rows
// CHECK:         [[T:%[0-9]+]] = tgraph.gather %t, %i
// CHECK-NEXT:    [[W:%[0-9]+]] = tgraph.gather {{%[0-9]+}}, %i
// CHECK-NEXT:    [[TW:%[0-9]+]] = tgraph.multiply [[T]], [[W]]
// CHECK-NEXT:    [[C:%[0-9]+]] = tgraph.broadcast_in_dim %c {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<3x8xf32>
// CHECK-NEXT:    [[ALL:%[0-9]+]] = tgraph.add [[TW]], [[C]]
// CHECK-NEXT:    [[TWO:%[0-9]+]] = tgraph.constant<2.000000e+00 : f32> : tensor<3x8xf32>
// CHECK-NEXT:    tgraph.power [[ALL]], [[TWO]]
func.func @rows(%t: tensor<50x8xf32>, %w: tensor<50xf32>, %c: tensor<8xf32>, %i: tensor<3x1xi32>) -> tensor<3x8xf32> {
  %0 = tgraph.broadcast_in_dim %w {broadcast_dimensions = array<i64: 0>} : (tensor<50xf32>) -> tensor<50x8xf32>
  %1 = tgraph.multiply %t, %0 : tensor<50x8xf32>
  %2 = tgraph.broadcast_in_dim %c {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<50x8xf32>
  %3 = tgraph.add %1, %2 : tensor<50x8xf32>
  %4 = tgraph.constant<2.0 : f32> : tensor<50x8xf32>
  %5 = tgraph.power %3, %4 : tensor<50x8xf32>
  %6 = tgraph.gather %5, %i {offset_dims = array<i64: 1>, collapsed_slice_dims = array<i64: 0>, start_index_map = array<i64: 0>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 1, 8>} : (tensor<50x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>
  func.return %6 : tensor<3x8xf32>
}

// Unchanged: the sum has another reader, and two gathers would take more elements.
// CHECK-LABEL: func.func @stored
// CHECK:         tgraph.add %x, %y
// CHECK-NEXT:    tgraph.gather
// CHECK-NEXT:    tgraph.multiply %x, %y
// CHECK-NEXT:    tgraph.gather
func.func @stored(%x: tensor<5xf32>, %y: tensor<5xf32>, %i: tensor<3x1xi32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<5xf32>) {
  %0 = tgraph.add %x, %y : tensor<5xf32>
  %1 = tgraph.gather %0, %i {offset_dims = array<i64>, collapsed_slice_dims = array<i64: 0>, start_index_map = array<i64: 0>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 1>} : (tensor<5xf32>, tensor<3x1xi32>) -> tensor<3xf32>
  %2 = tgraph.multiply %x, %y : tensor<5xf32>
  %3 = tgraph.gather %2, %i {offset_dims = array<i64>, collapsed_slice_dims = array<i64: 0>, start_index_map = array<i64: 0>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 1>} : (tensor<5xf32>, tensor<3x1xi32>) -> tensor<3xf32>
  func.return %1, %3, %0 : tensor<3xf32>, tensor<3xf32>, tensor<5xf32>
}
