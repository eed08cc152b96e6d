// RUN: plan-opt %s -p tgraph-fuse | filecheck %s
// RUN: plan-opt %s -p tgraph-fuse -o %t && plan-opt %t -p tgraph-fuse | diff %t -

// A group that ends in a scatter computes its indices and its updates.
// CHECK-LABEL: func.func @histogram
// CHECK-NEXT:    %{{.*}} = tgraph.fusion(%{{.*}} = %x)
// CHECK:           tgraph.convert
// CHECK:           tgraph.exponential
// CHECK:           tgraph.scatter
// CHECK-NEXT:      tgraph.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return
func.func @histogram(%x: tensor<500xf32>) -> tensor<9xf32> {
  %0 = tgraph.convert %x : (tensor<500xf32>) -> tensor<500xi32>
  %1 = tgraph.broadcast_in_dim %0 {broadcast_dimensions = array<i64: 0>} : (tensor<500xi32>) -> tensor<500x1xi32>
  %2 = tgraph.exponential %x : tensor<500xf32>
  %3 = tgraph.constant<0.0 : f32> : tensor<9xf32>
  %4 = tgraph.scatter %3, %1, %2 {kind = "add", update_window_dims = array<i64>, inserted_window_dims = array<i64: 0>, scatter_dims_to_operand_dims = array<i64: 0>, index_vector_dim = 1 : i64} : (tensor<9xf32>, tensor<500x1xi32>, tensor<500xf32>) -> tensor<9xf32>
  func.return %4 : tensor<9xf32>
}

// What a scatter changes is stored: updates may belong to any of its elements. So is
// the result, which elements are added to only one after the other.
// CHECK-LABEL: func.func @operand
// CHECK-NEXT:    %[[old:.*]] = tgraph.exponential %x
// CHECK-NEXT:    %[[new:.*]] = tgraph.fusion(%{{.*}} = %u, %{{.*}} = %[[old]], %{{.*}} = %i)
// CHECK-NEXT:      tgraph.negate
// CHECK-NEXT:      tgraph.scatter
// CHECK-NEXT:      tgraph.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    tgraph.exponential %[[new]]
func.func @operand(%x: tensor<9xf32>, %i: tensor<6x1xi32>, %u: tensor<6xf32>) -> tensor<9xf32> {
  %0 = tgraph.exponential %x : tensor<9xf32>
  %1 = tgraph.negate %u : tensor<6xf32>
  %2 = tgraph.scatter %0, %i, %1 {kind = "add", update_window_dims = array<i64>, inserted_window_dims = array<i64: 0>, scatter_dims_to_operand_dims = array<i64: 0>, index_vector_dim = 1 : i64} : (tensor<9xf32>, tensor<6x1xi32>, tensor<6xf32>) -> tensor<9xf32>
  %3 = tgraph.exponential %2 : tensor<9xf32>
  func.return %3 : tensor<9xf32>
}
