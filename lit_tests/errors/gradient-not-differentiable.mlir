// RUN: not plan-opt %s -p tgraph-gradient 2>&1 | filecheck %s

func.func @scatter(%x: tensor<4xf32>, %i: tensor<2xi32>, %u: tensor<2xf32>) -> tensor<4xf32> {
  %y = tgraph.scatter %x, %i, %u {kind = "maximum", update_window_dims = array<i64>, inserted_window_dims = array<i64: 0>, scatter_dims_to_operand_dims = array<i64: 0>, index_vector_dim = 1 : i64} : (tensor<4xf32>, tensor<2xi32>, tensor<2xf32>) -> tensor<4xf32>
  %g = tgraph.gradient %y heads %x wrt %x : tensor<4xf32> wrt tensor<4xf32>
  func.return %g : tensor<4xf32>
}

// CHECK-NOT: Traceback
// CHECK:     gradient-not-differentiable.mlir:4:8: error: tgraph.scatter: a scatter of kind 'maximum' is not differentiable
