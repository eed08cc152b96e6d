// RUN: not plan-opt %s -p plan-pipeline 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK: scalar-among-tensors.mlir:6:{{[0-9]+}}: error: arith.constant has a result of type f32 in a function on tensors, expected a tensor
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %z = arith.constant 0.0 : f32
  %0 = linalg.fill ins(%z : f32) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
