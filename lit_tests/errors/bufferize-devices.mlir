// RUN: not plan-opt %s -p tgraph-bufferize 2>&1 | filecheck %s

// Either all tensors have a device, or none.
// CHECK-NOT: Traceback
// CHECK:     bufferize-devices.mlir:6:1: error: func.func: tensor<4xf32> has no device; run tgraph-place-devices first
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32, "cpu:0">) -> tensor<4xf32> {
  func.return %a : tensor<4xf32>
}
