// Operations that write to variables were replaced by ones that write nothing.
// passes: tgraph-channels-last,plan-pipeline
func.func @main(%w: !tgraph.variable<tensor<2x2x1x3xf32>> {tgraph.result = 0 : i32}, %x: tensor<2x4x4x1xf32>, %y: tensor<2x3x3x3xf32>) {
  %old = tgraph.read %w : tensor<2x2x1x3xf32>
  %slope = tgraph.convolution %x, %y {dim_labels = "f01b_i01o->01bf", window_strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<2x4x4x1xf32>, tensor<2x3x3x3xf32>) -> tensor<2x2x1x3xf32>
  %new = tgraph.add %old, %slope outs(%w) : tensor<2x2x1x3xf32>
  func.return
}
