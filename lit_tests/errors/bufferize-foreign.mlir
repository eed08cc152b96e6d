// RUN: not plan-opt %s --allow-unregistered-dialect -p tgraph-bufferize 2>&1 | filecheck %s

// An unregistered operation on tensors.
// CHECK-NOT: Traceback
// CHECK:     bufferize-foreign.mlir:7:8: error: foreign.op cannot be bufferized, expected operations of tgraph or in destination style
func.func @main(%a: tensor<4xf32, "cpu:0">) -> tensor<4xf32, "cpu:0"> {
  %0 = "foreign.op"(%a) : (tensor<4xf32, "cpu:0">) -> tensor<4xf32, "cpu:0">
  func.return %0 : tensor<4xf32, "cpu:0">
}
