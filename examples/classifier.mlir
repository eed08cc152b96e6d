// Two layers and a softmax: the hidden layer and the scores are all that is stored.
func.func @main(%x: tensor<16x64xf32>, %w: tensor<64x32xf32>, %v: tensor<32x10xf32>) -> tensor<16x10xf32> {
  %zero = tgraph.constant<0.0 : f32> : tensor<16x32xf32>
  %sums = tgraph.dot_general %x, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
  %hidden = tgraph.maximum %sums, %zero : tensor<16x32xf32>
  %scores = tgraph.dot_general %hidden, %v {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<16x32xf32>, tensor<32x10xf32>) -> tensor<16x10xf32>
  %most = tgraph.reduce %scores {kind = "maximum", dimensions = array<i64: 1>} : (tensor<16x10xf32>) -> tensor<16xf32>
  %mosts = tgraph.broadcast_in_dim %most {broadcast_dimensions = array<i64: 0>} : (tensor<16xf32>) -> tensor<16x10xf32>
  %less = tgraph.subtract %scores, %mosts : tensor<16x10xf32>
  %exp = tgraph.exponential %less : tensor<16x10xf32>
  %sum = tgraph.reduce %exp {kind = "add", dimensions = array<i64: 1>} : (tensor<16x10xf32>) -> tensor<16xf32>
  %totals = tgraph.broadcast_in_dim %sum {broadcast_dimensions = array<i64: 0>} : (tensor<16xf32>) -> tensor<16x10xf32>
  %y = tgraph.divide %exp, %totals : tensor<16x10xf32>
  func.return %y : tensor<16x10xf32>
}
