// RUN: plan-view %s --ascii | filecheck %s

// Symbolic sizes have the values of the report, and the title names them.
// CHECK:      symbolic.mlir, plan-pipeline, n = 64: cpu:0: {{.*}} B, lower bound
func.func @main(%x: tensor<?xf32, #tgraph.dims<n>>) -> tensor<f32> {
  %0 = tgraph.exponential %x : tensor<?xf32, #tgraph.dims<n>>
  %1 = tgraph.dot_general %0, %x {lhs_contracting_dimensions = array<i64: 0>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<?xf32, #tgraph.dims<n>>, tensor<?xf32, #tgraph.dims<n>>) -> tensor<f32>
  %2 = tgraph.dot_general %0, %0 {lhs_contracting_dimensions = array<i64: 0>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<?xf32, #tgraph.dims<n>>, tensor<?xf32, #tgraph.dims<n>>) -> tensor<f32>
  %3 = tgraph.add %1, %2 : tensor<f32>
  func.return %3 : tensor<f32>
}
