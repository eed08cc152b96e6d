// tgraph-eliminate-assigns had a branch write the variable, tgraph-bufferize a buffer.
// passes: plan-pipeline
func.func @main(%x: tensor<2xf64>, %c: tensor<i1>, %v: !tgraph.variable<tensor<2xf64>>) -> tensor<2xf64> {
  %old = tgraph.read %v : tensor<2xf64>
  %0 = tgraph.if %c, %x, %old : (tensor<i1>, tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64> {
  ^bb0(%a: tensor<2xf64>, %b: tensor<2xf64>):
    tgraph.yield %a : tensor<2xf64>
  } else {
  ^bb0(%a: tensor<2xf64>, %b: tensor<2xf64>):
    %1 = tgraph.negate %a : tensor<2xf64>
    %2 = tgraph.add %1, %b : tensor<2xf64>
    tgraph.yield %2 : tensor<2xf64>
  }
  %3 = tgraph.negate %x : tensor<2xf64>
  %4 = tgraph.if %c, %3 : (tensor<i1>, tensor<2xf64>) -> tensor<2xf64> {
  ^bb0(%a: tensor<2xf64>):
    tgraph.yield %a : tensor<2xf64>
  } else {
  ^bb0(%a: tensor<2xf64>):
    %1 = tgraph.abs %a : tensor<2xf64>
    tgraph.yield %1 : tensor<2xf64>
  }
  tgraph.assign %v, %4 : tensor<2xf64>
  func.return %0 : tensor<2xf64>
}
