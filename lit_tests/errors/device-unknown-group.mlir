// RUN: not plan-opt %s -p 'tgraph-place-devices{groups="a=cpu:0","b=gpu:0"}' 2>&1 | filecheck %s

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.negate %x {tgraph.group = "zz"} : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// CHECK-NOT: Traceback
// CHECK:     device-unknown-group.mlir:4:8: error: group 'zz' has no device; the groups with devices are a, b
