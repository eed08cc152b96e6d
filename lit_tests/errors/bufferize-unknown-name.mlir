// RUN: not plan-opt %s -p tgraph-bufferize 2>&1 | filecheck %s

// Sizes are solved from those of arguments: n*n does not determine n.
// CHECK-NOT: Traceback
// CHECK:     bufferize-unknown-name.mlir:7:8: error: size n cannot be derived from the sizes of the arguments
func.func @main(%x: tensor<?xf32, #tgraph.dims<n*n, "cpu:0">>) -> tensor<f32, "cpu:0"> {
  %0 = tgraph.constant<1.0 : f32> : tensor<?xf32, #tgraph.dims<n, "cpu:0">>
  %1 = tgraph.reduce %0 {kind = "add", dimensions = array<i64: 0>} : (tensor<?xf32, #tgraph.dims<n, "cpu:0">>) -> tensor<f32, "cpu:0">
  func.return %1 : tensor<f32, "cpu:0">
}
