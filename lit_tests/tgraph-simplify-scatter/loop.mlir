// RUN: plan-opt %s -p tgraph-simplify-scatter | filecheck %s

!n = tensor<i32>
!vn = !tgraph.variable<!n>
!s = tensor<6x8xf32>
!vs = !tgraph.variable<!s>

// Each iteration writes row i. Row i + 1 is out of bounds in the last iteration, where
// that scatter does nothing, so it stays. An added row is first added to the old one.
// CHECK-LABEL: func.func @rows
// CHECK:         [[I:%.+]] = tgraph.reshape {{.*}} : (tensor<1xi32>) -> tensor<i32>
// CHECK:         [[A:%.+]] = tgraph.dynamic_update_slice {{.*}}, [[I]], {{.*}} tensor<1x8xf32>
// CHECK:         [[B:%.+]] = tgraph.scatter [[A]], %next, {{.*}} {kind = "replace"
// CHECK:         [[ROW:%.+]] = tgraph.dynamic_slice [[B]], {{.*}} {slice_sizes = array<i64: 1, 8>}
// CHECK-NEXT:    [[SUM:%.+]] = tgraph.add [[ROW]],
// CHECK-NEXT:    tgraph.dynamic_update_slice [[B]], [[SUM]],
func.func @rows(%given: tensor<8xf32>, %s: !s) -> !s {
  %zero = tgraph.constant<0 : i32> : !n
  %0:2 = tgraph.while %zero, %s, %given : (!n, !s, tensor<8xf32>) -> (!n, !s) {
  ^bb0(%vi: !vn, %vs: !vs, %x: tensor<8xf32>):
    %i = tgraph.read %vi : !n
    %trips = tgraph.constant<6 : i32> : !n
    %p = tgraph.compare %i, %trips {direction = "LT"} : (!n, !n) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%vi: !vn, %vs: !vs, %x: tensor<8xf32>):
    %i = tgraph.read %vi : !n
    %rows = tgraph.read %vs : !s
    %c1 = tgraph.constant<1 : i32> : !n
    %i1 = tgraph.add %i, %c1 : !n
    %at = tgraph.broadcast_in_dim %i {broadcast_dimensions = array<i64>} : (!n) -> tensor<1xi32>
    %next = tgraph.broadcast_in_dim %i1 {broadcast_dimensions = array<i64>} : (!n) -> tensor<1xi32>
    %a = tgraph.scatter %rows, %at, %x {kind = "replace", update_window_dims = array<i64: 0>, inserted_window_dims = array<i64: 0>, scatter_dims_to_operand_dims = array<i64: 0>, index_vector_dim = 0 : i64} : (!s, tensor<1xi32>, tensor<8xf32>) -> !s
    %b = tgraph.scatter %a, %next, %x {kind = "replace", update_window_dims = array<i64: 0>, inserted_window_dims = array<i64: 0>, scatter_dims_to_operand_dims = array<i64: 0>, index_vector_dim = 0 : i64} : (!s, tensor<1xi32>, tensor<8xf32>) -> !s
    %c = tgraph.scatter %b, %at, %x {kind = "add", update_window_dims = array<i64: 0>, inserted_window_dims = array<i64: 0>, scatter_dims_to_operand_dims = array<i64: 0>, index_vector_dim = 0 : i64} : (!s, tensor<1xi32>, tensor<8xf32>) -> !s
    tgraph.assign %vi, %i1 : !n
    tgraph.assign %vs, %c : !s
    tgraph.yield
  }
  func.return %0#1 : !s
}

// An index with two components: an element of row 5 - i.
// CHECK-LABEL: func.func @elements
// CHECK-NOT:     tgraph.scatter
// CHECK:         tgraph.dynamic_update_slice {{.*}} (tensor<6x8xf32>, tensor<1x1xf32>, tensor<i32>, tensor<i32>)
func.func @elements(%given: tensor<f32>, %s: !s) -> !s {
  %zero = tgraph.constant<0 : i32> : !n
  %0:2 = tgraph.while %zero, %s, %given : (!n, !s, tensor<f32>) -> (!n, !s) {
  ^bb0(%vi: !vn, %vs: !vs, %x: tensor<f32>):
    %i = tgraph.read %vi : !n
    %trips = tgraph.constant<6 : i32> : !n
    %p = tgraph.compare %i, %trips {direction = "LT"} : (!n, !n) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%vi: !vn, %vs: !vs, %x: tensor<f32>):
    %i = tgraph.read %vi : !n
    %rows = tgraph.read %vs : !s
    %c1 = tgraph.constant<1 : i32> : !n
    %c5 = tgraph.constant<5 : i32> : !n
    %row = tgraph.subtract %c5, %i : !n
    %a = tgraph.reshape %row : (!n) -> tensor<1xi32>
    %b = tgraph.reshape %i : (!n) -> tensor<1xi32>
    %at = tgraph.concatenate %a, %b {dimension = 0 : i64} : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %put = tgraph.scatter %rows, %at, %x {kind = "replace", update_window_dims = array<i64>, inserted_window_dims = array<i64: 0, 1>, scatter_dims_to_operand_dims = array<i64: 0, 1>, index_vector_dim = 0 : i64} : (!s, tensor<2xi32>, tensor<f32>) -> !s
    %i1 = tgraph.add %i, %c1 : !n
    tgraph.assign %vi, %i1 : !n
    tgraph.assign %vs, %put : !s
    tgraph.yield
  }
  func.return %0#1 : !s
}

// The tensor has one row. After the first iteration the scatter does nothing, but an
// update would overwrite the row.
// CHECK-LABEL: func.func @one_row
// CHECK-NOT:     tgraph.dynamic_update_slice
// CHECK:         tgraph.scatter
func.func @one_row(%given: tensor<8xf32>, %s: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %zero = tgraph.constant<0 : i32> : !n
  %0:2 = tgraph.while %zero, %s, %given : (!n, tensor<1x8xf32>, tensor<8xf32>) -> (!n, tensor<1x8xf32>) {
  ^bb0(%vi: !vn, %vs: !tgraph.variable<tensor<1x8xf32>>, %x: tensor<8xf32>):
    %i = tgraph.read %vi : !n
    %trips = tgraph.constant<6 : i32> : !n
    %p = tgraph.compare %i, %trips {direction = "LT"} : (!n, !n) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%vi: !vn, %vs: !tgraph.variable<tensor<1x8xf32>>, %x: tensor<8xf32>):
    %i = tgraph.read %vi : !n
    %rows = tgraph.read %vs : tensor<1x8xf32>
    %c1 = tgraph.constant<1 : i32> : !n
    %i1 = tgraph.add %i, %c1 : !n
    %at = tgraph.broadcast_in_dim %i {broadcast_dimensions = array<i64>} : (!n) -> tensor<1xi32>
    %a = tgraph.scatter %rows, %at, %x {kind = "replace", update_window_dims = array<i64: 0>, inserted_window_dims = array<i64: 0>, scatter_dims_to_operand_dims = array<i64: 0>, index_vector_dim = 0 : i64} : (tensor<1x8xf32>, tensor<1xi32>, tensor<8xf32>) -> tensor<1x8xf32>
    tgraph.assign %vi, %i1 : !n
    tgraph.assign %vs, %a : tensor<1x8xf32>
    tgraph.yield
  }
  func.return %0#1 : tensor<1x8xf32>
}

// A constant start within bounds needs no loop. Added values are first added to the old
// slice. Scatters partly out of bounds, or into zeros, stay.
// CHECK-LABEL: func.func @constant
// CHECK:         [[OLD:%.+]] = tgraph.slice %s {start_indices = array<i64: 1, 2>, limit_indices = array<i64: 5, 8>
// CHECK-NEXT:    [[SUM:%.+]] = tgraph.add [[OLD]], %x : tensor<4x6xf32>
// CHECK-NEXT:    [[A:%.+]] = tgraph.dynamic_update_slice %s, [[SUM]]
// CHECK-NEXT:    [[B:%.+]] = tgraph.scatter [[A]], %beyond, %x {kind = "add"
// CHECK:         [[C:%.+]] = tgraph.scatter %zeros, %at, %x {kind = "add"
// CHECK:         func.return [[B]], [[C]]
func.func @constant(%s: !s, %x: tensor<4x6xf32>) -> (!s, !s) {
  %at = tgraph.constant<dense<[1, 2]> : tensor<2xi32>> : tensor<2xi32>
  %beyond = tgraph.constant<dense<[3, 2]> : tensor<2xi32>> : tensor<2xi32>
  %zeros = tgraph.constant<0.0 : f32> : !s
  %a = tgraph.scatter %s, %at, %x {kind = "add", update_window_dims = array<i64: 0, 1>, inserted_window_dims = array<i64>, scatter_dims_to_operand_dims = array<i64: 0, 1>, index_vector_dim = 0 : i64} : (!s, tensor<2xi32>, tensor<4x6xf32>) -> !s
  %b = tgraph.scatter %a, %beyond, %x {kind = "add", update_window_dims = array<i64: 0, 1>, inserted_window_dims = array<i64>, scatter_dims_to_operand_dims = array<i64: 0, 1>, index_vector_dim = 0 : i64} : (!s, tensor<2xi32>, tensor<4x6xf32>) -> !s
  %c = tgraph.scatter %zeros, %at, %x {kind = "add", update_window_dims = array<i64: 0, 1>, inserted_window_dims = array<i64>, scatter_dims_to_operand_dims = array<i64: 0, 1>, index_vector_dim = 0 : i64} : (!s, tensor<2xi32>, tensor<4x6xf32>) -> !s
  func.return %b, %c : !s, !s
}
