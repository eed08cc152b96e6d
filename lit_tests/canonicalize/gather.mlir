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
