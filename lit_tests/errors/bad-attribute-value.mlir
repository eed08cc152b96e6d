// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @f(%a: tensor<4x5xf32>) -> tensor<5x4xf32> {
  %0 = tgraph.transpose %a {permutation = array<i64: 1, 2>} : (tensor<4x5xf32>) -> tensor<5x4xf32>
  func.return %0 : tensor<5x4xf32>
}

// CHECK-NOT: Traceback
// CHECK:     bad-attribute-value.mlir:4:8: error: tgraph.transpose: permutation has dimension 2, expected 0 to 1
