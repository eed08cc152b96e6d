// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @f(%a: tensor<4xf32>, %s: memref<64xi8>) -> tensor<4xf32> {
  %0 = tgraph.negate %a workspace(%s : memref<64xi8>) : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// CHECK-NOT: Traceback
// CHECK:     workspace-on-tensors.mlir:4:8: error: tgraph.negate: has tensor results and memref operands
