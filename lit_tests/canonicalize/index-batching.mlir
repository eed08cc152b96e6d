// RUN: plan-opt %s -p canonicalize,cse --split-input-file | filecheck %s

// x[arange(8), labels], as JAX writes it: no row index is negative, and each row has
// one index.
// CHECK-LABEL: func.func @labels
// CHECK-NEXT:    %0 = tgraph.broadcast_in_dim %labels {{.*}} -> tensor<8x1xi32>
// CHECK-NEXT:    %1 = tgraph.gather %x, %0 {offset_dims = array<i64>, collapsed_slice_dims = array<i64: 1>, start_index_map = array<i64: 1>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 1, 1>, operand_batching_dims = array<i64: 0>, start_indices_batching_dims = array<i64: 0>}
// CHECK-NEXT:    func.return
func.func @labels(%x: tensor<8x100xf32>, %labels: tensor<8xi32>) -> tensor<8xf32> {
  %n = tgraph.iota {dimension = 0 : i64} : tensor<8xi32>
  %zero = tgraph.constant<0 : i32> : tensor<8xi32>
  %rows = tgraph.constant<8 : i32> : tensor<8xi32>
  %0 = tgraph.compare %n, %zero {direction = "LT"} : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
  %1 = tgraph.add %n, %rows : tensor<8xi32>
  %2 = tgraph.select %0, %1, %n : (tensor<8xi1>, tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
  %3 = tgraph.broadcast_in_dim %2 {broadcast_dimensions = array<i64: 0>} : (tensor<8xi32>) -> tensor<8x1xi32>
  %4 = tgraph.broadcast_in_dim %labels {broadcast_dimensions = array<i64: 0>} : (tensor<8xi32>) -> tensor<8x1xi32>
  %5 = tgraph.concatenate %3, %4 {dimension = 1 : i64} : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x2xi32>
  %6 = tgraph.gather %x, %5 {offset_dims = array<i64>, collapsed_slice_dims = array<i64: 0, 1>, start_index_map = array<i64: 0, 1>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 1, 1>} : (tensor<8x100xf32>, tensor<8x2xi32>) -> tensor<8xf32>
  func.return %6 : tensor<8xf32>
}

// -----

// A diagonal: each index vector has one component left.
// CHECK-LABEL: func.func @diagonal
// CHECK:         tgraph.scatter %x, %n, %y {{.*}}inserted_window_dims = array<i64: 1>, scatter_dims_to_operand_dims = array<i64: 1>{{.*}}, input_batching_dims = array<i64: 0>, scatter_indices_batching_dims = array<i64: 0>} : (tensor<8x8xf32>, tensor<8x1xi32>, tensor<8xf32>)
func.func @diagonal(%x: tensor<8x8xf32>, %y: tensor<8xf32>) -> tensor<8x8xf32> {
  %n = tgraph.iota {dimension = 0 : i64} : tensor<8x1xi32>
  %i = tgraph.concatenate %n, %n {dimension = 1 : i64} : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x2xi32>
  %0 = tgraph.scatter %x, %i, %y {kind = "add", update_window_dims = array<i64>, inserted_window_dims = array<i64: 0, 1>, scatter_dims_to_operand_dims = array<i64: 0, 1>, index_vector_dim = 1 : i64} : (tensor<8x8xf32>, tensor<8x2xi32>, tensor<8xf32>) -> tensor<8x8xf32>
  func.return %0 : tensor<8x8xf32>
}

// -----

// No batching if there are more rows than index vectors, or for slices of several rows.
// CHECK-LABEL: func.func @some_rows
// CHECK:         tgraph.gather %x, {{.*}} : (tensor<9x100xf32>, tensor<8x2xi32>)
// CHECK:         tgraph.gather %y, {{.*}} slice_sizes = array<i64: 2, 1>} : (tensor<8x100xf32>, tensor<8x2xi32>)
func.func @some_rows(%x: tensor<9x100xf32>, %y: tensor<8x100xf32>, %labels: tensor<8x1xi32>) -> (tensor<8xf32>, tensor<8x2xf32>) {
  %n = tgraph.iota {dimension = 0 : i64} : tensor<8x1xi32>
  %i = tgraph.concatenate %n, %labels {dimension = 1 : i64} : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x2xi32>
  %0 = tgraph.gather %x, %i {offset_dims = array<i64>, collapsed_slice_dims = array<i64: 0, 1>, start_index_map = array<i64: 0, 1>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 1, 1>} : (tensor<9x100xf32>, tensor<8x2xi32>) -> tensor<8xf32>
  %1 = tgraph.gather %y, %i {offset_dims = array<i64: 1>, collapsed_slice_dims = array<i64: 1>, start_index_map = array<i64: 0, 1>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 2, 1>} : (tensor<8x100xf32>, tensor<8x2xi32>) -> tensor<8x2xf32>
  func.return %0, %1 : tensor<8xf32>, tensor<8x2xf32>
}

// -----

// table[arange(6)] is a slice, wherever the rows are in the result.
// CHECK-LABEL: func.func @counted
// CHECK-NEXT:    %0 = tgraph.slice %x {start_indices = array<i64: 0, 0, 0>, limit_indices = array<i64: 5, 6, 4>, strides = array<i64: 1, 1, 1>}
// CHECK-NEXT:    %1 = tgraph.transpose %0 {permutation = array<i64: 1, 0, 2>}
// CHECK-NEXT:    %2 = tgraph.transpose %x {permutation = array<i64: 0, 2, 1>}
// CHECK-NEXT:    func.return %0, %1, %2
func.func @counted(%x: tensor<5x9x4xf32>) -> (tensor<5x6x4xf32>, tensor<6x5x4xf32>, tensor<5x4x9xf32>) {
  %i = tgraph.iota {dimension = 0 : i64} : tensor<6xi32>
  %0 = tgraph.gather %x, %i {offset_dims = array<i64: 0, 2>, collapsed_slice_dims = array<i64: 1>, start_index_map = array<i64: 1>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 5, 1, 4>} : (tensor<5x9x4xf32>, tensor<6xi32>) -> tensor<5x6x4xf32>
  %1 = tgraph.gather %x, %i {offset_dims = array<i64: 1, 2>, collapsed_slice_dims = array<i64: 1>, start_index_map = array<i64: 1>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 5, 1, 4>} : (tensor<5x9x4xf32>, tensor<6xi32>) -> tensor<6x5x4xf32>
  %j = tgraph.iota {dimension = 0 : i64} : tensor<9x1xi8>
  %2 = tgraph.gather %x, %j {offset_dims = array<i64: 0, 1>, collapsed_slice_dims = array<i64: 1>, start_index_map = array<i64: 1>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 5, 1, 4>} : (tensor<5x9x4xf32>, tensor<9x1xi8>) -> tensor<5x4x9xf32>
  func.return %0, %1, %2 : tensor<5x6x4xf32>, tensor<6x5x4xf32>, tensor<5x4x9xf32>
}

// -----

// More indices than rows are clamped, and rows are not counted along another dimension.
// CHECK-LABEL: func.func @not_counted
// CHECK-COUNT-2: tgraph.gather
func.func @not_counted(%x: tensor<5x9x4xf32>) -> (tensor<5x10x4xf32>, tensor<5x9x3xf32>) {
  %i = tgraph.iota {dimension = 0 : i64} : tensor<10xi32>
  %0 = tgraph.gather %x, %i {offset_dims = array<i64: 0, 2>, collapsed_slice_dims = array<i64: 1>, start_index_map = array<i64: 1>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 5, 1, 4>} : (tensor<5x9x4xf32>, tensor<10xi32>) -> tensor<5x10x4xf32>
  %j = tgraph.iota {dimension = 0 : i64} : tensor<9xi32>
  %1 = tgraph.gather %x, %j {offset_dims = array<i64: 0, 2>, collapsed_slice_dims = array<i64: 1>, start_index_map = array<i64: 1>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 5, 1, 3>} : (tensor<5x9x4xf32>, tensor<9xi32>) -> tensor<5x9x3xf32>
  func.return %0, %1 : tensor<5x10x4xf32>, tensor<5x9x3xf32>
}
