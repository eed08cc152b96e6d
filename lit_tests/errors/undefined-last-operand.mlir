// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.add %a, %b : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// `, %b :` is a use; only after a parenthesis could it be an argument.
// CHECK:      undefined-last-operand.mlir:4:23: error: %b is not defined
// CHECK-NEXT: {{^}}  %0 = tgraph.add
// CHECK-NEXT: {{^ {22}\^$}}
