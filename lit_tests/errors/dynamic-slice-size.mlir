// RUN: not plan-opt %s 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK: dynamic-slice-size.mlir:6:{{[0-9]+}}: error: tgraph.dynamic_slice: slice has size 5 along dimension 0 of size 4, expected 0 to 4
func.func @main(%x: tensor<4xf32>, %i: tensor<i32>) {
  %0 = tgraph.dynamic_slice %x, %i {slice_sizes = array<i64: 5>} : (tensor<4xf32>, tensor<i32>) -> tensor<5xf32>
  func.return
}
