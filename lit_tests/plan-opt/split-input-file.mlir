// RUN: not plan-opt %s --split-input-file 2>&1 | filecheck %s
// RUN: plan-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: func.func @first() {
func.func @first() {
  func.return
}

// -----

// CHECK: split-input-file.mlir:13:8: error: tgraph.add: has 1 inputs, expected 2
func.func @second(%a: tensor<4xf32>) {
  %0 = tgraph.add %a : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
