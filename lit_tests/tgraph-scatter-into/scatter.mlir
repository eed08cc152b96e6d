// RUN: plan-opt %s -p tgraph-scatter-into | filecheck %s
// RUN: plan-opt %s -p plan-pipeline 2>/dev/null | filecheck %s --check-prefix=PLANNED

// One number in each row of %e is changed, instead of adding a tensor with one number in
// each row.
// CHECK-LABEL: func.func @gradient
// CHECK:         %e = tgraph.exponential %x
// CHECK-NEXT:    %g = tgraph.scatter %e, %at, %less {kind = "add"
// CHECK-NEXT:    tgraph.reduce %g

// So it is done in place.
// PLANNED-LABEL: func.func @gradient
// PLANNED:         tgraph.exponential %x outs(%e)
// PLANNED:         tgraph.scatter %e, %at, %less outs(%e)
func.func @gradient(%x: tensor<4x16xf32>, %at: tensor<4x1xi32>, %less: tensor<4xf32>) -> tensor<16xf32> {
  %e = tgraph.exponential %x : tensor<4x16xf32>
  %zeros = tgraph.constant<0.0 : f32> : tensor<4x16xf32>
  %s = tgraph.scatter %zeros, %at, %less {kind = "add", update_window_dims = array<i64>, inserted_window_dims = array<i64: 1>, input_batching_dims = array<i64: 0>, scatter_indices_batching_dims = array<i64: 0>, scatter_dims_to_operand_dims = array<i64: 1>, index_vector_dim = 1 : i64} : (tensor<4x16xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<4x16xf32>
  %g = tgraph.add %e, %s : tensor<4x16xf32>
  %r = tgraph.reduce %g {kind = "add", dimensions = array<i64: 0>} : (tensor<4x16xf32>) -> tensor<16xf32>
  func.return %r : tensor<16xf32>
}

// Others that read the scattered tensor have it to themselves.
// CHECK-LABEL: func.func @read_elsewhere
// CHECK:         %s = tgraph.scatter %zeros
// CHECK:         tgraph.reduce %s
// CHECK:         tgraph.scatter %e
// CHECK-NOT:     tgraph.add
// CHECK:         func.return
func.func @read_elsewhere(%x: tensor<4x16xf32>, %at: tensor<4x1xi32>, %less: tensor<4xf32>) -> (tensor<4xf32>, tensor<4x16xf32>) {
  %zeros = tgraph.constant<0.0 : f32> : tensor<4x16xf32>
  %s = tgraph.scatter %zeros, %at, %less {kind = "add", update_window_dims = array<i64>, inserted_window_dims = array<i64: 1>, input_batching_dims = array<i64: 0>, scatter_indices_batching_dims = array<i64: 0>, scatter_dims_to_operand_dims = array<i64: 1>, index_vector_dim = 1 : i64} : (tensor<4x16xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<4x16xf32>
  %r = tgraph.reduce %s {kind = "maximum", dimensions = array<i64: 1>} : (tensor<4x16xf32>) -> tensor<4xf32>
  %e = tgraph.exponential %x : tensor<4x16xf32>
  %g = tgraph.add %s, %e : tensor<4x16xf32>
  func.return %r, %g : tensor<4xf32>, tensor<4x16xf32>
}

// Left alone: into ones, what is read again, and what may be hit twice, for which the sum
// would be rounded differently.
// CHECK-LABEL: func.func @others
// CHECK:         tgraph.add
// CHECK:         tgraph.add
// CHECK:         tgraph.add
func.func @others(%x: tensor<4x16xf32>, %at: tensor<4x1xi32>, %less: tensor<4xf32>, %twice: tensor<4x2x1xi32>, %both: tensor<4x2xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>) {
  %ones = tgraph.constant<1.0 : f32> : tensor<4x16xf32>
  %e = tgraph.exponential %x : tensor<4x16xf32>
  %s = tgraph.scatter %ones, %at, %less {kind = "add", update_window_dims = array<i64>, inserted_window_dims = array<i64: 1>, input_batching_dims = array<i64: 0>, scatter_indices_batching_dims = array<i64: 0>, scatter_dims_to_operand_dims = array<i64: 1>, index_vector_dim = 1 : i64} : (tensor<4x16xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<4x16xf32>
  %a = tgraph.add %e, %s : tensor<4x16xf32>
  %zeros = tgraph.constant<0.0 : f32> : tensor<4x16xf32>
  %t = tgraph.scatter %zeros, %at, %less {kind = "add", update_window_dims = array<i64>, inserted_window_dims = array<i64: 1>, input_batching_dims = array<i64: 0>, scatter_indices_batching_dims = array<i64: 0>, scatter_dims_to_operand_dims = array<i64: 1>, index_vector_dim = 1 : i64} : (tensor<4x16xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<4x16xf32>
  %f = tgraph.exponential %a : tensor<4x16xf32>
  %b = tgraph.add %f, %t : tensor<4x16xf32>
  %u = tgraph.scatter %zeros, %twice, %both {kind = "add", update_window_dims = array<i64>, inserted_window_dims = array<i64: 1>, input_batching_dims = array<i64: 0>, scatter_indices_batching_dims = array<i64: 0>, scatter_dims_to_operand_dims = array<i64: 1>, index_vector_dim = 2 : i64} : (tensor<4x16xf32>, tensor<4x2x1xi32>, tensor<4x2xf32>) -> tensor<4x16xf32>
  %h = tgraph.negate %b : tensor<4x16xf32>
  %c = tgraph.add %h, %u : tensor<4x16xf32>
  func.return %a, %b, %c, %f : tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>
}
