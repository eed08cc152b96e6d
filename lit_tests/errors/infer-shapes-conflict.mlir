// RUN: not plan-opt %s -p tgraph-infer-shapes 2>&1 | filecheck %s

func.func @f(%x: tensor<2x?xf32>, %y: tensor<?x3xf32>) {
  %0 = tgraph.dot_general %x, %x {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<2x?xf32>, tensor<2x?xf32>) -> tensor<?x?xf32>
  %1 = tgraph.add %0, %y : (tensor<?x?xf32>, tensor<?x3xf32>) -> tensor<?x?xf32>
  func.return
}

// The error has both types, and the origin of the inferred one.
// CHECK-NOT: Traceback
// CHECK:     infer-shapes-conflict.mlir:4:8: error: tgraph.dot_general: the result has type tensor<2x3xf32>, expected size 2 along dimension 1, like dimension 1 of operand 1 of type tensor<2x2xf32>
// CHECK:     infer-shapes-conflict.mlir:5:8: note: the type of result 0 was inferred by tgraph.add
