// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.negate %b : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// CHECK-NOT:  Traceback
// CHECK:      undefined-value.mlir:4:22: error: %b is not defined
// CHECK-NEXT: {{^}}  %0 = tgraph.negate %b
// CHECK-NEXT: {{^ {21}\^$}}
