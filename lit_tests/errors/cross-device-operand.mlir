// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @f(%a: tensor<4xf32, "cpu:0">, %b: tensor<4xf32, "gpu:0">) -> tensor<4xf32, "cpu:0"> {
  %0 = tgraph.add %a, %b : (tensor<4xf32, "cpu:0">, tensor<4xf32, "gpu:0">) -> tensor<4xf32, "cpu:0">
  func.return %0 : tensor<4xf32, "cpu:0">
}

// CHECK-NOT: Traceback
// CHECK:     cross-device-operand.mlir:4:8: error: tgraph.add: has operands and results on cpu:0, gpu:0; only tgraph.device_copy crosses devices
