// tgraph-fuse went into the body of a loop that it had just erased.
func.func @main(%x: tensor<2xf16>) {
  %0 = tgraph.constant<0 : i32> : tensor<i32>
  %1, %2 = tgraph.while %0, %x : (tensor<i32>, tensor<2xf16>) -> (tensor<i32>, tensor<2xf16>) {
  ^bb0(%i: !tgraph.variable<tensor<i32>>, %v: !tgraph.variable<tensor<2xf16>>):
    %3 = tgraph.read %i : tensor<i32>
    %4 = tgraph.compare %3, %3 {direction = "LT"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tgraph.yield %4 : tensor<i1>
  } do {
  ^bb0(%i: !tgraph.variable<tensor<i32>>, %v: !tgraph.variable<tensor<2xf16>>):
    tgraph.yield
  }
  func.return
}
