// RUN: plan-opt %s -p tgraph-precompute | filecheck %s

// The size n comes from an input, so @precompute does not know it: values of that size
// are computed in each run, even if they depend on the parameter only.

// CHECK-LABEL: func.func @precompute
// CHECK-NEXT:    tgraph.exponential
// CHECK-NEXT:    func.return

// CHECK-LABEL: func.func @main
// CHECK-SAME:    %e: tensor<4xf32> {tgraph.parameter, tgraph.precomputed = 0 : i32}
// CHECK-NEXT:    tgraph.broadcast_in_dim %e
// CHECK-NEXT:    tgraph.negate
// CHECK-NEXT:    tgraph.add
func.func @main(%x: tensor<?x4xf32, #tgraph.dims<n>>,
                %w: tensor<4xf32> {tgraph.parameter}) -> tensor<?x4xf32, #tgraph.dims<n>> {
  %e = tgraph.exponential %w : tensor<4xf32>
  %rows = tgraph.broadcast_in_dim %e {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<?x4xf32, #tgraph.dims<n>>
  %minus = tgraph.negate %rows : tensor<?x4xf32, #tgraph.dims<n>>
  %y = tgraph.add %x, %minus : tensor<?x4xf32, #tgraph.dims<n>>
  func.return %y : tensor<?x4xf32, #tgraph.dims<n>>
}
