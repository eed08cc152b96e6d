// RUN: not plan-opt %s 2>&1 | filecheck %s

// CHECK-NOT:  Traceback
// CHECK:      open-region.mlir:11:1: error: expected '}'
// CHECK-NEXT: open-region.mlir:7:53: note: to match this '{'
// CHECK-NEXT: func.func @main
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { // and not this {
  %0 = "tgraph.negate"(%a) {note = "}"}
    : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
