// RUN: not plan-opt %s 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK: while-condition.mlir:6:{{[0-9]+}}: error: tgraph.while: a region yields types (tensor<4xf32>), expected (tensor<i1>)
func.func @main(%x: tensor<4xf32>, %i: tensor<i32>) {
  %0 = tgraph.while %x : tensor<4xf32> {
  ^bb0(%v: !tgraph.variable<tensor<4xf32>>):
    %1 = tgraph.read %v : tensor<4xf32>
    tgraph.yield %1 : tensor<4xf32>
  } do {
  ^bb0(%v: !tgraph.variable<tensor<4xf32>>):
    tgraph.yield
  }
  func.return
}
