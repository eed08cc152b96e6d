// RUN: plan-opt %s -p tgraph-fuse-into-loops 2>&1 | filecheck %s

!n = tensor<i32>
!vn = !tgraph.variable<!n>
!x = tensor<4x8xf32>
!vx = !tgraph.variable<!x>
!s = tensor<6x4x8xf32>
!vs = !tgraph.variable<!s>

// Six states are stacked, the last first, and every reader needs one row at a time:
// each iteration writes a row of %y and accumulates %total. The last state is not a row
// of the stack; operations that depend on it stay after the loop.
// CHECK:       remark: 3 operations that read what the loop stacks are moved into it
// CHECK-LABEL: func.func @main
// CHECK-NOT:     tensor<6x4x8xf32>
// CHECK:         tgraph.while {{.*}} -> (tensor<i32>, tensor<4x8xf32>, tensor<6x1x4x2xf32>, tensor<f32>)
// CHECK:           [[PLACE:%[0-9a-z_]+]] = tgraph.add {{.*}} : tensor<i32>
// CHECK:           %y = tgraph.dot_general {{.*}} -> tensor<1x4x2xf32>
// CHECK:           tgraph.dynamic_update_slice {{.*}}, [[PLACE]]
// CHECK:         }
// CHECK:         %scaled = tgraph.multiply
// CHECK-NOT:     tgraph.dot_general
func.func @main(%x: !x, %w: tensor<8x2xf32>) -> (tensor<6x4x2xf32>, tensor<f32>, !x) {
  %zero = tgraph.constant<0 : i32> : !n
  %empty = tgraph.constant<0.0 : f32> : !s
  %0:3 = tgraph.while %zero, %x, %empty : (!n, !x, !s) -> (!n, !x, !s) {
  ^bb0(%vi: !vn, %vx: !vx, %vs: !vs):
    %i = tgraph.read %vi : !n
    %trips = tgraph.constant<6 : i32> : !n
    %p = tgraph.compare %i, %trips {direction = "LT"} : (!n, !n) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%vi: !vn, %vx: !vx, %vs: !vs):
    %i = tgraph.read %vi : !n
    %h = tgraph.read %vx : !x
    %rows = tgraph.read %vs : !s
    %c0 = tgraph.constant<0 : i32> : !n
    %c1 = tgraph.constant<1 : i32> : !n
    %c5 = tgraph.constant<5 : i32> : !n
    %next = tgraph.sine %h : !x
    %row = tgraph.reshape %next : (!x) -> tensor<1x4x8xf32>
    %place = tgraph.subtract %c5, %i : !n
    %stacked = tgraph.dynamic_update_slice %rows, %row, %place, %c0, %c0
      : (!s, tensor<1x4x8xf32>, !n, !n, !n) -> !s
    %i1 = tgraph.add %i, %c1 : !n
    tgraph.assign %vi, %i1 : !n
    tgraph.assign %vx, %next : !x
    tgraph.assign %vs, %stacked : !s
    tgraph.yield
  }
  %y = tgraph.dot_general %0#2, %w {lhs_contracting_dimensions = array<i64: 2>, rhs_contracting_dimensions = array<i64: 0>}
    : (!s, tensor<8x2xf32>) -> tensor<6x4x2xf32>
  %squares = tgraph.multiply %0#2, %0#2 : !s
  %total = tgraph.reduce %squares {kind = "add", dimensions = array<i64: 0, 1, 2>}
    : (!s) -> tensor<f32>
  %scaled = tgraph.multiply %0#1, %0#1 : !x
  func.return %y, %total, %scaled : tensor<6x4x2xf32>, tensor<f32>, !x
}
