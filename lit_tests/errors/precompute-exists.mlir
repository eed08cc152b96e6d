// RUN: not plan-opt %s -p tgraph-precompute 2>&1 | filecheck %s

func.func @precompute() {
  func.return
}
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32> {tgraph.parameter}) -> tensor<4xf32> {
  %0 = tgraph.exponential %w : tensor<4xf32>
  %1 = tgraph.multiply %x, %0 : tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// CHECK-NOT: Traceback
// CHECK:     precompute-exists.mlir:6:1: error: tgraph-precompute adds a function @precompute, but the module already has one
