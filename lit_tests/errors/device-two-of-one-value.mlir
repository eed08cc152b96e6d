// RUN: not plan-opt %s -p tgraph-infer-devices 2>&1 | filecheck %s
// RUN: not plan-opt %s -p tgraph-place-devices 2>&1 | filecheck %s

func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = tgraph.negate %x : tensor<4xf32>
  %1 = tgraph.on_device %0, "cpu:0" : tensor<4xf32>
  %2 = tgraph.on_device %0, "gpu:0" : tensor<4xf32>
  func.return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-NOT: Traceback
// CHECK:     device-two-of-one-value.mlir:7:8: error: tgraph.on_device puts the value of tgraph.negate ({{.*}}device-two-of-one-value.mlir:5:8) on gpu:0, but it is already on cpu:0; a value has one device
