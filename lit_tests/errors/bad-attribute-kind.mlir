// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @f(%a: tensor<4x5xf32>) -> tensor<5x4xf32> {
  %0 = tgraph.transpose %a {permutation = "swap"} : (tensor<4x5xf32>) -> tensor<5x4xf32>
  func.return %0 : tensor<5x4xf32>
}

// CHECK-NOT: Traceback
// CHECK:     bad-attribute-kind.mlir:4:8: error: tgraph.transpose: permutation is "swap", expected array<i64: ...>
