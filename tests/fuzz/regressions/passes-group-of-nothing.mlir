// The cost of a group without operations: max() of one number.
// passes: plan-pipeline{streams=2}
func.func @main(%x: tensor<4xi32>, %v: !tgraph.variable<tensor<4xi32>>) -> tensor<4xi32> {
  %0 = tgraph.fusion(%a = %x) outs(%v) : tensor<4xi32> {
    tgraph.yield %a : tensor<4xi32>
  }
  %1 = tgraph.fusion(%a = %0) : tensor<4xi32> {
    tgraph.yield %a : tensor<4xi32>
  }
  func.return %1 : tensor<4xi32>
}
