// RUN: not plan-opt %s -p tgraph-place-devices 2>&1 | filecheck %s
// RUN: not plan-opt %s -p tgraph-infer-devices 2>&1 | filecheck %s

func.func @f(%x: tensor<4xf32> {tgraph.device = "cpu:0"}, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = tgraph.negate %x : tensor<4xf32>
  %1 = tgraph.abs %y : tensor<4xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-NOT: Traceback
// CHECK:     device-undetermined.mlir:6:8: error: tgraph.abs has no device: no annotation, operand or user determines one, and the pass has no default device
