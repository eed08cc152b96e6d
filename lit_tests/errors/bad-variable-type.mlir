// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @f(%a: !tgraph.variable<f32>) {
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     bad-variable-type.mlir:3:35: error: variable holds f32, expected a tensor
