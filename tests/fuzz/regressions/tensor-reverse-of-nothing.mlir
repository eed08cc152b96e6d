// A reversed empty buffer was a view at offset -1.
func.func @main(%0: tensor<0x3x0xi32>) -> tensor<0x6x0xi32> {
  %1 = tgraph.reverse %0 {dimensions = array<i64: 0, 2>} : tensor<0x3x0xi32>
  %2 = tgraph.concatenate %0, %1 {dimension = 1 : i64} : (tensor<0x3x0xi32>, tensor<0x3x0xi32>) -> tensor<0x6x0xi32>
  func.return %2 : tensor<0x6x0xi32>
}
