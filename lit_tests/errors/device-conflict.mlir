// RUN: not plan-opt %s -p tgraph-infer-devices 2>&1 | filecheck %s

// No copy lies between %1 and %3: the error shows both places.
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.device_copy %x {tgraph.device = "cpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tgraph.negate %0 : tensor<4xf32>
  %2 = tgraph.device_copy %x {tgraph.device = "gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = tgraph.add %2, %1 : tensor<4xf32>
  func.return %3 : tensor<4xf32>
}

// CHECK-NOT: Traceback
// CHECK:     device-conflict.mlir:8:8: error: tgraph.add is on cpu:0 because of tgraph.device_copy ({{.*}}device-conflict.mlir:5:8) and on gpu:0 because of tgraph.device_copy ({{.*}}device-conflict.mlir:7:8); only tgraph.device_copy crosses devices
