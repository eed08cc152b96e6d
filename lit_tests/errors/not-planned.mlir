// A program without a plan is never written as a plan, and the error says why.

// RUN: not plan-opt %s -t c-header 2>&1 | filecheck %s
// RUN: not plan-opt %s -t json 2>&1 | filecheck %s
// CHECK: not-planned.mlir:10:1: error: argument 0 is a tensor, expected a memref: run plan-pipeline first

// RUN: not plan-opt %s -p plan-memory 2>&1 | filecheck %s --check-prefix=TENSORS
// TENSORS: not-planned.mlir:10:1: error: tensors have no memory to plan: bufferize them first, by tgraph-bufferize or mlir-opt

func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.negate %a : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
