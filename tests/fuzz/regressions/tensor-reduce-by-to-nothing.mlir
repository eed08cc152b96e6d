// The interpreter counted rows by dividing by the size of the result, which is 0.
func.func @main(%0: tensor<7x1x0xf32>, %1: tensor<f32>) -> tensor<1x0xf32> {
  %2 = tgraph.reduce_by %0, %1 {dimensions = array<i64: 0>} : (tensor<7x1x0xf32>, tensor<f32>) -> tensor<1x0xf32> {
  ^bb0(%3: tensor<f32>, %4: tensor<f32>):
    %5 = tgraph.add %3, %4 : tensor<f32>
    tgraph.yield %5 : tensor<f32>
  }
  func.return %2 : tensor<1x0xf32>
}
