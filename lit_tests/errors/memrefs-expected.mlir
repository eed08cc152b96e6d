// RUN: not plan-opt %s -p plan-strip-memory-spaces 2>&1 | filecheck %s
// RUN: not plan-opt %s -p plan-workspaces 2>&1 | filecheck %s

// Passes on memrefs reject tensors.
// CHECK: memrefs-expected.mlir:[[# @LINE + 1]]:1: error: function @main is on tensors, expected memrefs; run tgraph-bufferize first
func.func @main(%a: tensor<4xf32, "cpu:0">) -> tensor<4xf32, "cpu:1"> {
  %0 = tgraph.device_copy %a : (tensor<4xf32, "cpu:0">) -> tensor<4xf32, "cpu:1">
  func.return %0 : tensor<4xf32, "cpu:1">
}
