// RUN: not plan-opt %s -p tgraph-place-devices 2>&1 | filecheck %s
// RUN: not plan-opt %s -p tgraph-infer-devices 2>&1 | filecheck %s --check-prefix=INFER

func.func @assign(%w: !tgraph.variable<tensor<4xf32>> {tgraph.device = "cpu:0"}, %v: tensor<4xf32> {tgraph.device = "gpu:0"}) {
  tgraph.assign %w, %v {tgraph.device = "gpu:0"} : tensor<4xf32>
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     device-of-variable.mlir:5:3: error: tgraph.assign is on gpu:0 and its variable on cpu:0; variables do not cross devices
// INFER-NOT: Traceback
// INFER:     device-of-variable.mlir:5:3: error: tgraph.assign is on cpu:0 because of argument 0 and on gpu:0 because of tgraph.assign ({{.*}}device-of-variable.mlir:5:3); only tgraph.device_copy crosses devices
