// RUN: not plan-opt %s -p tgraph-precompute 2>&1 | filecheck %s

func.func @main(%w: tensor<?xf32> {tgraph.parameter}) -> tensor<?xf32> {
  %0 = tgraph.negate %w : tensor<?xf32>
  func.return %0 : tensor<?xf32>
}

// CHECK-NOT: Traceback
// CHECK:     precompute-unknown-shape.mlir:3:1: error: argument 0 of @main has tgraph.parameter and type tensor<?xf32>, expected a static shape (see tgraph-infer-shapes)
