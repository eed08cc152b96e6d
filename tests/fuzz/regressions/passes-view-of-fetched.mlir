// A view of what was fetched back was taken for a view of the copy, and moved after it.
// passes: tgraph-offload{device="cpu:0" to="cpu:1" budget=64},plan-pipeline
func.func @main(%0: tensor<i32, "cpu:0">) -> tensor<f16, "cpu:0"> {
  %1 = tgraph.convert %0 : (tensor<i32, "cpu:0">) -> tensor<f16, "cpu:0">
  %2 = tgraph.bitcast_convert %0 : (tensor<i32, "cpu:0">) -> tensor<ui32, "cpu:0">
  %3 = tgraph.reshape %1 : tensor<f16, "cpu:0">
  %4 = tgraph.add %3, %3 : tensor<f16, "cpu:0">
  func.return %4 : tensor<f16, "cpu:0">
}
