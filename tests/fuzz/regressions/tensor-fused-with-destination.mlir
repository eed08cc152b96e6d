// After tgraph-eliminate-assigns, tgraph-fuse left the fused operation as well, so that
// the variable was incremented twice.
func.func @main(%v: !tgraph.variable<tensor<i32>>) {
  %0 = tgraph.read %v : tensor<i32>
  %1 = tgraph.constant<1 : i32> : tensor<i32>
  %2 = tgraph.add %0, %1 outs(%v) : tensor<i32>
  func.return
}
