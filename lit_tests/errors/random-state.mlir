// RUN: not plan-opt %s 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK: random-state.mlir:6:{{[0-9]+}}: error: tgraph.rng_bit_generator: operand 0 has type tensor<4xf32>, expected 2 integers of 64 bits for threefry
func.func @main(%x: tensor<4xf32>, %i: tensor<i32>) {
  %0, %1 = tgraph.rng_bit_generator %x {algorithm = "threefry"} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<3xui32>)
  func.return
}
