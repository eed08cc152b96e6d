// tgraph-schedule moved a branch before what makes an operand that its regions ignore.
// passes: tgraph-schedule{alignment=16 effort=0.05},plan-pipeline
func.func @main(%0: tensor<f32>) {
  %1 = tgraph.compare %0, %0 {direction = "NE"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %2 = tgraph.broadcast_in_dim %1 {broadcast_dimensions = array<i64>} : (tensor<i1>) -> tensor<2x1x2x4xi1>
  %3 = tgraph.not %1 : tensor<i1>
  %4 = tgraph.if %3, %0 : (tensor<i1>, tensor<f32>) -> tensor<f32> {
  ^bb0(%5: tensor<f32>):
    %6 = tgraph.constant<0 : i32> : tensor<i32>
    %7, %8, %9 = tgraph.while %6, %6, %6 : (tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>, tensor<i32>) {
    ^bb0(%10: !tgraph.variable<tensor<i32>>, %11: !tgraph.variable<tensor<i32>>, %12: !tgraph.variable<tensor<i32>>):
      %13 = tgraph.read %10 : tensor<i32>
      %14 = tgraph.compare %13, %13 {direction = "LT"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      tgraph.yield %14 : tensor<i1>
    } do {
    ^bb0(%15: !tgraph.variable<tensor<i32>>, %16: !tgraph.variable<tensor<i32>>, %17: !tgraph.variable<tensor<i32>>):
      tgraph.yield
    }
    tgraph.yield %5 : tensor<f32>
  } else {
  ^bb0(%10: tensor<f32>):
    tgraph.yield %10 : tensor<f32>
  }
  %5 = tgraph.if %1, %4, %2 : (tensor<i1>, tensor<f32>, tensor<2x1x2x4xi1>) -> tensor<2x1x2x4xi1> {
  ^bb0(%6: tensor<f32>, %7: tensor<2x1x2x4xi1>):
    tgraph.yield %7 : tensor<2x1x2x4xi1>
  } else {
  ^bb0(%8: tensor<f32>, %9: tensor<2x1x2x4xi1>):
    tgraph.yield %9 : tensor<2x1x2x4xi1>
  }
  func.return
}
