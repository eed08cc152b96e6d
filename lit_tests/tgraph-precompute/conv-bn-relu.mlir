// RUN: plan-opt %s -p tgraph-simplify-inference,tgraph-fold-scale-axis,tgraph-precompute,cse,tgraph-fuse | filecheck %s

// All passes together: the scale is in the weight, the shift in one sum, and both are
// computed once.
// CHECK-LABEL: func.func @precompute
// CHECK-SAME:    -> (tensor<8xf32>, tensor<3x3x4x8xf32>)
// CHECK:         tgraph.sqrt
// CHECK:         tgraph.multiply {{.*}} : tensor<3x3x4x8xf32>
// CHECK:       func.func @main
// CHECK-SAME:    (%x: tensor<2x6x6x4xf32>, %{{[0-9]+}}: tensor<8xf32> {tgraph.parameter, tgraph.precomputed = 0 : i32}, %{{[0-9]+}}: tensor<3x3x4x8xf32> {tgraph.parameter, tgraph.precomputed = 1 : i32})
// CHECK-NOT:     tgraph.multiply
// CHECK:           tgraph.convolution
// CHECK-NOT:     tgraph.multiply
// CHECK:           tgraph.add
// CHECK-NOT:     tgraph.multiply
// CHECK:           tgraph.maximum
// CHECK-NEXT:      tgraph.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return
!x = tensor<2x6x6x4xf32>
!y = tensor<2x6x6x8xf32>
!c = tensor<8xf32>
func.func @main(%x: !x, %w: tensor<3x3x4x8xf32> {tgraph.parameter}, %bias: !c {tgraph.parameter}, %gamma: !c {tgraph.parameter}, %beta: !c {tgraph.parameter}, %mean: !c {tgraph.parameter}, %var: !c {tgraph.parameter}) -> !y {
  %0 = tgraph.convolution %x, %w {dim_labels = "b01f_01io->b01f", window_strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (!x, tensor<3x3x4x8xf32>) -> !y
  %b = tgraph.broadcast_in_dim %bias {broadcast_dimensions = array<i64: 3>} : (!c) -> !y
  %1 = tgraph.add %0, %b : !y
  %m = tgraph.broadcast_in_dim %mean {broadcast_dimensions = array<i64: 3>} : (!c) -> !y
  %2 = tgraph.subtract %1, %m : !y
  %v = tgraph.broadcast_in_dim %var {broadcast_dimensions = array<i64: 3>} : (!c) -> !y
  %eps = tgraph.constant<1.0e-5 : f32> : !y
  %ve = tgraph.add %v, %eps : !y
  %std = tgraph.sqrt %ve : !y
  %3 = tgraph.divide %2, %std : !y
  %g = tgraph.broadcast_in_dim %gamma {broadcast_dimensions = array<i64: 3>} : (!c) -> !y
  %4 = tgraph.multiply %3, %g : !y
  %be = tgraph.broadcast_in_dim %beta {broadcast_dimensions = array<i64: 3>} : (!c) -> !y
  %5 = tgraph.add %4, %be : !y
  %zero = tgraph.constant<0.0 : f32> : !y
  %6 = tgraph.maximum %5, %zero : !y
  func.return %6 : !y
}
