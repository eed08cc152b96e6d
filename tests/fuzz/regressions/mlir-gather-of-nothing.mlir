// A slice of size 0 along a dimension that the result lacks: reading it failed; refused.
func.func @main(%0: tensor<0xf32>, %1: tensor<1x1xi32>) -> tensor<1xf32> {
  %2 = tgraph.gather %0, %1 {offset_dims = array<i64>, collapsed_slice_dims = array<i64: 0>, start_index_map = array<i64: 0>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 0>} : (tensor<0xf32>, tensor<1x1xi32>) -> tensor<1xf32>
  func.return %2 : tensor<1xf32>
}
