// RUN: not plan-opt %s -p tgraph-precompute 2>&1 | filecheck %s

func.func @main(%w: !tgraph.variable<tensor<4xf32>> {tgraph.parameter}) {
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     precompute-variable.mlir:3:1: error: argument 0 of @main has tgraph.parameter and type !tgraph.variable<tensor<4xf32>>, expected a tensor: its contents must not change between runs
