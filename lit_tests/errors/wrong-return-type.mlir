// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @f(%a: tensor<4xf32>) -> tensor<5xf32> {
  func.return %a : tensor<4xf32>
}

// CHECK-NOT: Traceback
// CHECK:     wrong-return-type.mlir:4:3: error: func.return: expected arguments to have the same types as the function output types{{(: expected \[tensor<5xf32>\], got \[tensor<4xf32>\])?$}}
