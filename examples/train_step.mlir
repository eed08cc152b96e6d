// A weight, updated in place: plan-opt examples/train_step.mlir -p plan-pipeline
func.func @main(%w: !tgraph.variable<tensor<4x8xf32>>, %x: tensor<2x4xf32>, %g: tensor<2x8xf32>) {
  %old = tgraph.read %w : tensor<4x8xf32>
  %grad = tgraph.dot_general %x, %g {lhs_contracting_dimensions = array<i64: 0>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  %rate = tgraph.constant<0.1 : f32> : tensor<4x8xf32>
  %step = tgraph.multiply %rate, %grad : tensor<4x8xf32>
  %new = tgraph.subtract %old, %step : tensor<4x8xf32>
  tgraph.assign %w, %new : tensor<4x8xf32>
  func.return
}
