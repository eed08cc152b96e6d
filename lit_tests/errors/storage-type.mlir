// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @f(%a: tensor<4xf8E4M3FN>) -> tensor<4xf8E4M3FN> {
  %0 = tgraph.add %a, %a : tensor<4xf8E4M3FN>
  func.return %0 : tensor<4xf8E4M3FN>
}

// CHECK-NOT:  Traceback
// CHECK:      storage-type.mlir:4:8: error: tgraph.add: computes with elements of type f8E4M3FN, expected f32: convert them with tgraph.convert
