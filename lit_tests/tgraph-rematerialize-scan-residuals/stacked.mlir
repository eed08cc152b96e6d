// RUN: plan-opt %s -p tgraph-rematerialize-scan-residuals | filecheck %s

// 1 - y depends on y, which is stacked as well. Only y is stacked, and the second loop
// recomputes the rest from its rows.
// CHECK-LABEL: func.func @derived
// CHECK:         [[L:%[a-z0-9_]+]], [[S:%[a-z0-9_]+]] = tgraph.while
// CHECK:           tgraph.tanh
// CHECK-NOT:       tgraph.subtract
// CHECK:           tgraph.assign
// CHECK:         tgraph.while {{.*}}, [[S]] : (tensor<i32>, tensor<8xf32>, tensor<4x8xf32>) -> (tensor<i32>, tensor<8xf32>)
// CHECK:           [[ROW:%[a-z0-9_]+]] = tgraph.dynamic_slice
// CHECK:           [[Y:%[a-z0-9_]+]] = tgraph.reshape [[ROW]]
// CHECK:           [[ONE:%[a-z0-9_]+]] = tgraph.constant<1.000000e+00 : f32> : tensor<8xf32>
// CHECK-NEXT:      [[D:%[a-z0-9_]+]] = tgraph.subtract [[ONE]], [[Y]] : tensor<8xf32>
// CHECK:           tgraph.reshape [[D]]
func.func @derived(%x: tensor<8xf32>) -> tensor<8xf32> {
  %zero = tgraph.constant<0 : i32> : tensor<i32>
  %empty = tgraph.constant<0.0 : f32> : tensor<4x8xf32>
  %0:3 = tgraph.while %zero, %empty, %empty, %x : (tensor<i32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>) -> (tensor<i32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  ^bb0(%i: !tgraph.variable<tensor<i32>>, %a: !tgraph.variable<tensor<4x8xf32>>, %b: !tgraph.variable<tensor<4x8xf32>>, %w: tensor<8xf32>):
    %n = tgraph.read %i : tensor<i32>
    %rows = tgraph.constant<4 : i32> : tensor<i32>
    %p = tgraph.compare %n, %rows {direction = "LT"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%i: !tgraph.variable<tensor<i32>>, %a: !tgraph.variable<tensor<4x8xf32>>, %b: !tgraph.variable<tensor<4x8xf32>>, %w: tensor<8xf32>):
    %n = tgraph.read %i : tensor<i32>
    %as = tgraph.read %a : tensor<4x8xf32>
    %bs = tgraph.read %b : tensor<4x8xf32>
    %c0 = tgraph.constant<0 : i32> : tensor<i32>
    %c1 = tgraph.constant<1 : i32> : tensor<i32>
    %ones = tgraph.constant<1.0 : f32> : tensor<8xf32>
    %f = tgraph.convert %n : (tensor<i32>) -> tensor<f32>
    %fs = tgraph.broadcast_in_dim %f {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<8xf32>
    %v = tgraph.multiply %fs, %w : tensor<8xf32>
    %y = tgraph.tanh %v : tensor<8xf32>
    %z = tgraph.subtract %ones, %y : tensor<8xf32>
    %yr = tgraph.broadcast_in_dim %y {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<1x8xf32>
    %zr = tgraph.broadcast_in_dim %z {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<1x8xf32>
    %an = tgraph.dynamic_update_slice %as, %yr, %n, %c0 : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
    %bn = tgraph.dynamic_update_slice %bs, %zr, %n, %c0 : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
    %next = tgraph.add %n, %c1 : tensor<i32>
    tgraph.assign %i, %next : tensor<i32>
    tgraph.assign %a, %an : tensor<4x8xf32>
    tgraph.assign %b, %bn : tensor<4x8xf32>
    tgraph.yield
  }
  %1:2 = tgraph.while %zero, %x, %0#1, %0#2 : (tensor<i32>, tensor<8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<i32>, tensor<8xf32>) {
  ^bb0(%i: !tgraph.variable<tensor<i32>>, %s: !tgraph.variable<tensor<8xf32>>, %a: tensor<4x8xf32>, %b: tensor<4x8xf32>):
    %n = tgraph.read %i : tensor<i32>
    %rows = tgraph.constant<4 : i32> : tensor<i32>
    %p = tgraph.compare %n, %rows {direction = "LT"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%i: !tgraph.variable<tensor<i32>>, %s: !tgraph.variable<tensor<8xf32>>, %a: tensor<4x8xf32>, %b: tensor<4x8xf32>):
    %n = tgraph.read %i : tensor<i32>
    %t = tgraph.read %s : tensor<8xf32>
    %c0 = tgraph.constant<0 : i32> : tensor<i32>
    %c1 = tgraph.constant<1 : i32> : tensor<i32>
    %c3 = tgraph.constant<3 : i32> : tensor<i32>
    %at = tgraph.subtract %c3, %n : tensor<i32>
    %ar = tgraph.dynamic_slice %a, %at, %c0 {slice_sizes = array<i64: 1, 8>} : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    %br = tgraph.dynamic_slice %b, %at, %c0 {slice_sizes = array<i64: 1, 8>} : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    %y = tgraph.reshape %ar : (tensor<1x8xf32>) -> tensor<8xf32>
    %z = tgraph.reshape %br : (tensor<1x8xf32>) -> tensor<8xf32>
    %yz = tgraph.multiply %y, %z : tensor<8xf32>
    %sum = tgraph.add %t, %yz : tensor<8xf32>
    %next = tgraph.add %n, %c1 : tensor<i32>
    tgraph.assign %i, %next : tensor<i32>
    tgraph.assign %s, %sum : tensor<8xf32>
    tgraph.yield
  }
  func.return %1#1 : tensor<8xf32>
}
