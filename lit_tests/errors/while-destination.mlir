// RUN: not plan-opt %s 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK: while-destination.mlir:6:{{[0-9]+}}: error: tgraph.while: has 1 outs, expected none: its results can be assigned
func.func @main(%x: tensor<4xf32>, %v: !tgraph.variable<tensor<4xf32>>) {
  %0 = tgraph.while %x outs(%v) : tensor<4xf32> {
  ^bb0(%a: !tgraph.variable<tensor<4xf32>>):
    %1 = tgraph.constant<false> : tensor<i1>
    tgraph.yield %1 : tensor<i1>
  } do {
  ^bb0(%a: !tgraph.variable<tensor<4xf32>>):
    tgraph.yield
  }
  func.return
}
