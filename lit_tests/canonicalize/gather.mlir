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
