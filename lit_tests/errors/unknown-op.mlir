// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.frobnicate %a : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// CHECK-NOT: Traceback
// CHECK:     unknown-op.mlir:4:8: error: operation tgraph.frobnicate is not registered

// RUN: sed s/frobnicate/negat/ %s | not plan-opt 2>&1 | filecheck %s --check-prefix=NEAR
// NEAR: error: operation tgraph.negat is not registered; did you mean 'tgraph.negate'?
