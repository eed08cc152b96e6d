// RUN: not plan-opt %s 2>&1 | filecheck %s

func.func @f(%x: tensor<4xf32, "cpu:0">) -> tensor<4xf32> {
  %0 = tgraph.device_copy %x : (tensor<4xf32, "cpu:0">) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// CHECK-NOT: Traceback
// CHECK:     device-copy-nowhere.mlir:4:8: error: tgraph.device_copy: copies to tensor<4xf32>, expected a type with a device, or the attribute tgraph.device
