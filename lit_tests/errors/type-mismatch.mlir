// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @f(%a: tensor<4xf32>, %b: tensor<5xf32>) -> tensor<4xf32> {
  %0 = tgraph.add %a, %b : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// CHECK-NOT:  Traceback
// CHECK:      type-mismatch.mlir:4:8: error: tgraph.add: operand 0 has type tensor<4xf32>, expected the shape of tensor<5xf32>
// CHECK-NEXT: {{^}}  %0 = tgraph.add
// CHECK-NEXT: {{^ {7}\^$}}
