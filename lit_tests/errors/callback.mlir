// RUN: not plan-opt %s 2>&1 | filecheck %s

// CHECK: callback.mlir:[[#]]:{{.*}}: error: tgraph.host_callback: callback is -1, expected 0 or more
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = tgraph.host_callback %x {callback = -1 : i64} : tensor<4xf32>
  func.return %y : tensor<4xf32>
}
