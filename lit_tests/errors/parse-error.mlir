// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @f(%a: tensor<4xf32>) {
  %0 = tgraph.add %a, %a tensor<4xf32>
  func.return
}

// CHECK-NOT:  Traceback
// CHECK:      parse-error.mlir:4:26: error: expected ':'
// CHECK-NEXT: {{^}}  %0 = tgraph.add %a, %a tensor<4xf32>
// CHECK-NEXT: {{^ {25}\^$}}
