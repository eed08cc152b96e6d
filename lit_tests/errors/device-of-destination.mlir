// RUN: not plan-opt %s -p tgraph-place-devices 2>&1 | filecheck %s

// An operation that writes in place to memory of another device.
func.func @f(%w: !tgraph.variable<tensor<4xf32>> {tgraph.device = "cpu:0"}, %v: tensor<4xf32>) {
  %0 = tgraph.negate %v outs(%w) {tgraph.device = "gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     device-of-destination.mlir:5:8: error: tgraph.negate is on gpu:0 and its variable on cpu:0; variables do not cross devices
