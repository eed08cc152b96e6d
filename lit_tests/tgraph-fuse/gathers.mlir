// RUN: plan-opt %s -p tgraph-fuse | filecheck %s
// RUN: plan-opt %s -p tgraph-fuse -o %t && plan-opt %t -p tgraph-fuse | diff %t -

// A group computes the indices at which it gathers, and reads the entries of index
// vectors without concatenating them.
// CHECK-LABEL: func.func @elements
// CHECK-NEXT:    %{{.*}} = tgraph.fusion
// CHECK:           tgraph.floor
// CHECK:           tgraph.concatenate
// CHECK-NEXT:      tgraph.gather
// CHECK:           tgraph.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return
func.func @elements(%x: tensor<9x8xf32>, %i: tensor<6xf32>, %j: tensor<6x1xi32>) -> tensor<6xf32> {
  %0 = tgraph.floor %i : tensor<6xf32>
  %1 = tgraph.convert %0 : (tensor<6xf32>) -> tensor<6xi32>
  %2 = tgraph.broadcast_in_dim %1 {broadcast_dimensions = array<i64: 0>} : (tensor<6xi32>) -> tensor<6x1xi32>
  %3 = tgraph.concatenate %2, %j {dimension = 1 : i64} : (tensor<6x1xi32>, tensor<6x1xi32>) -> tensor<6x2xi32>
  %4 = tgraph.gather %x, %3 {offset_dims = array<i64>, collapsed_slice_dims = array<i64: 0, 1>, start_index_map = array<i64: 0, 1>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 1, 1>} : (tensor<9x8xf32>, tensor<6x2xi32>) -> tensor<6xf32>
  %5 = tgraph.negate %4 : tensor<6xf32>
  func.return %5 : tensor<6xf32>
}

// Index vectors that are read elsewhere, too, are stored.
// CHECK-LABEL: func.func @returned
// CHECK-NEXT:    %[[at:.*]] = tgraph.concatenate
// CHECK-NEXT:    %{{.*}} = tgraph.fusion(%{{.*}} = %x, %{{.*}} = %[[at]])
func.func @returned(%x: tensor<9x8xf32>, %i: tensor<6x1xi32>, %j: tensor<6x1xi32>) -> (tensor<6xf32>, tensor<6x2xi32>) {
  %0 = tgraph.concatenate %i, %j {dimension = 1 : i64} : (tensor<6x1xi32>, tensor<6x1xi32>) -> tensor<6x2xi32>
  %1 = tgraph.gather %x, %0 {offset_dims = array<i64>, collapsed_slice_dims = array<i64: 0, 1>, start_index_map = array<i64: 0, 1>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 1, 1>} : (tensor<9x8xf32>, tensor<6x2xi32>) -> tensor<6xf32>
  %2 = tgraph.negate %1 : tensor<6xf32>
  func.return %2, %0 : tensor<6xf32>, tensor<6x2xi32>
}

// An index vector may have one value as several entries.
// CHECK-LABEL: func.func @corners
// CHECK:         tgraph.dot_general
// CHECK-NEXT:    %{{.*}} = tgraph.fusion
// CHECK:           %[[at:.*]] = tgraph.concatenate %{{.*}}, %[[zero:.*]], %[[zero]] {{.*}}
// CHECK-NEXT:      %{{.*}} = tgraph.gather %{{.*}}, %[[at]]
func.func @corners(%x: tensor<8x2x8xf32>, %y: tensor<6x32xf32>, %i: tensor<6x1xi32>) -> tensor<6xf32> {
  %0 = tgraph.dot_general %y, %y {lhs_batching_dimensions = array<i64>, rhs_batching_dimensions = array<i64>, lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 1>} : (tensor<6x32xf32>, tensor<6x32xf32>) -> tensor<6x6xf32>
  %1 = tgraph.reduce %0 {kind = "add", dimensions = array<i64: 1>} : (tensor<6x6xf32>) -> tensor<6xf32>
  %2 = tgraph.constant<0 : i32> : tensor<6x1xi32>
  %3 = tgraph.concatenate %i, %2, %2 {dimension = 1 : i64} : (tensor<6x1xi32>, tensor<6x1xi32>, tensor<6x1xi32>) -> tensor<6x3xi32>
  %4 = tgraph.gather %x, %3 {offset_dims = array<i64>, collapsed_slice_dims = array<i64: 0, 1, 2>, start_index_map = array<i64: 0, 1, 2>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 1, 1, 1>} : (tensor<8x2x8xf32>, tensor<6x3xi32>) -> tensor<6xf32>
  %5 = tgraph.multiply %4, %1 : tensor<6xf32>
  func.return %5 : tensor<6xf32>
}
