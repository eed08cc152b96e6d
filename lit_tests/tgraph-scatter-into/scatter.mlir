// RUN: plan-opt %s -p tgraph-scatter-into | filecheck %s
// RUN: plan-opt %s -p plan-pipeline 2>/dev/null | filecheck %s --check-prefix=PLANNED

// The scatter adds to one number in each row of %e, instead of adding a tensor with one
// nonzero number in each row.
// CHECK-LABEL: func.func @gradient
// CHECK:         %e = tgraph.exponential %x
// CHECK-NEXT:    %g = tgraph.scatter %e, %at, %less {kind = "add"
// CHECK-NEXT:    tgraph.reduce %g

// The scatter runs in place.
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

// Other readers of the scattered tensor keep a separate one.
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

// Unchanged: a scatter into ones, and an operand that is read again.
// CHECK-LABEL: func.func @others
// CHECK:         tgraph.add
// CHECK:         tgraph.add
func.func @others(%x: tensor<4x16xf32>, %at: tensor<4x1xi32>, %less: tensor<4xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>) {
  %ones = tgraph.constant<1.0 : f32> : tensor<4x16xf32>
  %e = tgraph.exponential %x : tensor<4x16xf32>
  %s = tgraph.scatter %ones, %at, %less {kind = "add", update_window_dims = array<i64>, inserted_window_dims = array<i64: 1>, input_batching_dims = array<i64: 0>, scatter_indices_batching_dims = array<i64: 0>, scatter_dims_to_operand_dims = array<i64: 1>, index_vector_dim = 1 : i64} : (tensor<4x16xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<4x16xf32>
  %a = tgraph.add %e, %s : tensor<4x16xf32>
  %zeros = tgraph.constant<0.0 : f32> : tensor<4x16xf32>
  %t = tgraph.scatter %zeros, %at, %less {kind = "add", update_window_dims = array<i64>, inserted_window_dims = array<i64: 1>, input_batching_dims = array<i64: 0>, scatter_indices_batching_dims = array<i64: 0>, scatter_dims_to_operand_dims = array<i64: 1>, index_vector_dim = 1 : i64} : (tensor<4x16xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<4x16xf32>
  %f = tgraph.exponential %a : tensor<4x16xf32>
  %b = tgraph.add %f, %t : tensor<4x16xf32>
  func.return %a, %b, %f : tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>
}

// A row is added in place, instead of adding a tensor with one nonzero row.
// CHECK-LABEL: func.func @row
// CHECK:         %e = tgraph.exponential %x
// CHECK-NEXT:    [[OLD:%[a-z0-9_]+]] = tgraph.dynamic_slice %e, %i, %c {slice_sizes = array<i64: 1, 16>}
// CHECK-NEXT:    [[SUM:%[a-z0-9_]+]] = tgraph.add [[OLD]], %u
// CHECK-NEXT:    tgraph.dynamic_update_slice %e, [[SUM]], %i, %c
// CHECK-NOT:     tgraph.add
// CHECK:         func.return
func.func @row(%x: tensor<4x16xf32>, %u: tensor<1x16xf32>, %i: tensor<i32>) -> tensor<4x16xf32> {
  %c = tgraph.constant<0 : i32> : tensor<i32>
  %zeros = tgraph.constant<0.0 : f32> : tensor<4x16xf32>
  %e = tgraph.exponential %x : tensor<4x16xf32>
  %s = tgraph.dynamic_update_slice %zeros, %u, %i, %c : (tensor<4x16xf32>, tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<4x16xf32>
  %g = tgraph.add %e, %s : tensor<4x16xf32>
  func.return %g : tensor<4x16xf32>
}

// Indices may be equal: their updates are added one by one. The gradient of an embedding
// that is also the output layer lies in the result from the start.
// CHECK-LABEL: func.func @tied
// CHECK:         %g = tgraph.scatter %p, %at, %u
// CHECK-NEXT:    func.return %g
// PLANNED-LABEL: func.func @tied
// PLANNED:         %p = memref.reinterpret_cast %0
// PLANNED-NEXT:    tgraph.dot_general %d, %x outs(%p)
// PLANNED-NEXT:    tgraph.scatter %p, %at, %u outs(%0)
func.func @tied(%d: tensor<4x16xf32>, %x: tensor<4x8xf32>, %at: tensor<6x1xi32>, %u: tensor<6x8xf32>) -> tensor<16x8xf32> {
  %zeros = tgraph.constant<0.0 : f32> : tensor<16x8xf32>
  %p = tgraph.dot_general %d, %x {lhs_contracting_dimensions = array<i64: 0>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<4x16xf32>, tensor<4x8xf32>) -> tensor<16x8xf32>
  %s = tgraph.scatter %zeros, %at, %u {kind = "add", update_window_dims = array<i64: 1>, inserted_window_dims = array<i64: 0>, scatter_dims_to_operand_dims = array<i64: 0>, index_vector_dim = 1 : i64} : (tensor<16x8xf32>, tensor<6x1xi32>, tensor<6x8xf32>) -> tensor<16x8xf32>
  %g = tgraph.add %p, %s : tensor<16x8xf32>
  func.return %g : tensor<16x8xf32>
}

// A loop that adds to a different row of zeros in each iteration stacks rows.
// CHECK-LABEL: func.func @stacked
// CHECK:         tgraph.dynamic_update_slice %old, %v_1, %n_1, %c
// CHECK-NEXT:    tgraph.add %n_1, %one
// CHECK-NOT:     tgraph.add
// CHECK:         func.return
func.func @stacked(%u: tensor<1x8xf32>) -> tensor<4x8xf32> {
  %zero = tgraph.constant<0 : i32> : tensor<i32>
  %empty = tgraph.constant<0.0 : f32> : tensor<4x8xf32>
  %0:2 = tgraph.while %zero, %empty, %u : (tensor<i32>, tensor<4x8xf32>, tensor<1x8xf32>) -> (tensor<i32>, tensor<4x8xf32>) {
  ^bb0(%i: !tgraph.variable<tensor<i32>>, %a: !tgraph.variable<tensor<4x8xf32>>, %v: tensor<1x8xf32>):
    %n = tgraph.read %i : tensor<i32>
    %rows = tgraph.constant<4 : i32> : tensor<i32>
    %p = tgraph.compare %n, %rows {direction = "LT"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%i: !tgraph.variable<tensor<i32>>, %a: !tgraph.variable<tensor<4x8xf32>>, %v: tensor<1x8xf32>):
    %n = tgraph.read %i : tensor<i32>
    %old = tgraph.read %a : tensor<4x8xf32>
    %c = tgraph.constant<0 : i32> : tensor<i32>
    %one = tgraph.constant<1 : i32> : tensor<i32>
    %zeros = tgraph.constant<0.0 : f32> : tensor<4x8xf32>
    %s = tgraph.dynamic_update_slice %zeros, %v, %n, %c : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
    %g = tgraph.add %old, %s : tensor<4x8xf32>
    %next = tgraph.add %n, %one : tensor<i32>
    tgraph.assign %i, %next : tensor<i32>
    tgraph.assign %a, %g : tensor<4x8xf32>
    tgraph.yield
  }
  func.return %0#1 : tensor<4x8xf32>
}
