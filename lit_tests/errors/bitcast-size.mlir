// RUN: not plan-opt %s 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK: bitcast-size.mlir:6:{{[0-9]+}}: error: tgraph.bitcast_convert: operand 0 has type tensor<4xf32>, expected elements of the size of i16
func.func @main(%x: tensor<4xf32>, %i: tensor<i32>) {
  %0 = tgraph.bitcast_convert %x : (tensor<4xf32>) -> tensor<4xi16>
  func.return
}
