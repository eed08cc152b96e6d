// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.negate %1 : tensor<4xf32>
  %1 = tgraph.negate %a : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// CHECK-NOT: Traceback
// CHECK:     use-before-definition.mlir:4:8: error: tgraph.negate: operand 0 is used before it is defined
