// A group that is computed row by row, of rows without elements: a division by zero.
func.func @main(%x: tensor<3x0xf32>) -> tensor<3xf32> {
  %0 = tgraph.exponential %x : tensor<3x0xf32>
  %1 = tgraph.reduce %0 {kind = "add", dimensions = array<i64: 1>} : (tensor<3x0xf32>) -> tensor<3xf32>
  %2 = tgraph.negate %1 : tensor<3xf32>
  func.return %2 : tensor<3xf32>
}
