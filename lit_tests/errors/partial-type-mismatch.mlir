// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @f(%a: tensor<?x4xf32>, %b: tensor<2x5xf32>) {
  %0 = tgraph.add %a, %b : (tensor<?x4xf32>, tensor<2x5xf32>) -> tensor<?x?xf32>
  func.return
}

// The known parts of types are verified without any pass.
// CHECK-NOT: Traceback
// CHECK:     partial-type-mismatch.mlir:4:8: error: tgraph.add: operand 1 has type tensor<2x5xf32>, expected size 4 along dimension 1, like dimension 1 of operand 0 of type tensor<2x4xf32>
