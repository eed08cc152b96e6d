// RUN: not plan-opt %s -p tgraph-place-devices 2>&1 | filecheck %s

func.func @f(%x: tensor<4xf32>) {
  %0 = tgraph.negate %x {tgraph.device = 1 : i32} : tensor<4xf32>
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     device-no-string.mlir:4:8: error: tgraph.device is 1 : i32, expected a string
