// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @f(%a: !tgraph.variable<f32>) {
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     error: parameter 'tensor' does not verify:
// CHECK-NEXT: f32 should be of base attribute tensor
