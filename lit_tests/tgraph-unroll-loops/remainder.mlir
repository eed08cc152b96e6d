// RUN: plan-opt %s -p tgraph-unroll-loops 2>&1 | filecheck %s

!n = tensor<i32>
!vn = !tgraph.variable<!n>
!x = tensor<1x4xf32>
!vx = !tgraph.variable<!x>
!w = tensor<2x4xf32>
!vw = !tgraph.variable<!w>

// Two of three layers are in the loop: all three are unrolled, each with its row. The
// rows that the loop stacks are concatenated with the row of the third layer.
// CHECK:       remark: the loop is fully unrolled: 2 iterations
// CHECK-LABEL: func.func @remainder
// CHECK-NOT:     tgraph.while
// CHECK:         [[W0:%[a-z0-9_]+]] = tgraph.slice %w {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 1, 4>
// CHECK:         [[X1:%[a-z0-9_]+]] = tgraph.multiply %x, [[W0]]
// CHECK:         [[W1:%[a-z0-9_]+]] = tgraph.slice %w {start_indices = array<i64: 1, 0>, limit_indices = array<i64: 2, 4>
// CHECK:         [[X2:%[a-z0-9_]+]] = tgraph.multiply [[X1]], [[W1]]
// CHECK:         [[KEPT:%[a-z0-9_]+]] = tgraph.concatenate %x, [[X1]]
// CHECK:         %last = tgraph.slice %w {start_indices = array<i64: 2, 0>
// CHECK:         %y = tgraph.multiply [[X2]], %last
// CHECK:         tgraph.concatenate [[KEPT]], [[X2]]
func.func @remainder(%w: tensor<3x4xf32>, %x: !x) -> (!x, tensor<3x4xf32>) {
  %zero = tgraph.constant<0 : i32> : !n
  %empty = tgraph.constant<0.0 : f32> : !w
  %first = tgraph.slice %w {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 2, 4>, strides = array<i64: 1, 1>} : (tensor<3x4xf32>) -> !w
  %0:3 = tgraph.while %zero, %x, %empty, %first : (!n, !x, !w, !w) -> (!n, !x, !w) {
  ^bb0(%vi: !vn, %vx: !vx, %vs: !vw, %ws: !w):
    %i = tgraph.read %vi : !n
    %two = tgraph.constant<2 : i32> : !n
    %p = tgraph.compare %i, %two {direction = "LT"} : (!n, !n) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%vi: !vn, %vx: !vx, %vs: !vw, %ws: !w):
    %i = tgraph.read %vi : !n
    %at = tgraph.read %vx : !x
    %s = tgraph.read %vs : !w
    %c0 = tgraph.constant<0 : i32> : !n
    %c1 = tgraph.constant<1 : i32> : !n
    %row = tgraph.dynamic_slice %ws, %i, %c0 {slice_sizes = array<i64: 1, 4>} : (!w, !n, !n) -> !x
    %next = tgraph.multiply %at, %row : !x
    %stacked = tgraph.dynamic_update_slice %s, %at, %i, %c0 : (!w, !x, !n, !n) -> !w
    %n = tgraph.add %i, %c1 : !n
    tgraph.assign %vi, %n : !n
    tgraph.assign %vx, %next : !x
    tgraph.assign %vs, %stacked : !w
    tgraph.yield
  }
  %last = tgraph.slice %w {start_indices = array<i64: 2, 0>, limit_indices = array<i64: 3, 4>, strides = array<i64: 1, 1>} : (tensor<3x4xf32>) -> !x
  %y = tgraph.multiply %0#1, %last : !x
  %all = tgraph.concatenate %0#2, %0#1 {dimension = 0 : i64} : (!w, !x) -> tensor<3x4xf32>
  func.return %y, %all : !x, tensor<3x4xf32>
}

// A loop over all rows stays, however few there are.
// CHECK-LABEL: func.func @all
// CHECK:         tgraph.while
func.func @all(%w: !w, %x: !x) -> !x {
  %zero = tgraph.constant<0 : i32> : !n
  %0:2 = tgraph.while %zero, %x, %w : (!n, !x, !w) -> (!n, !x) {
  ^bb0(%vi: !vn, %vx: !vx, %ws: !w):
    %i = tgraph.read %vi : !n
    %two = tgraph.constant<2 : i32> : !n
    %p = tgraph.compare %i, %two {direction = "LT"} : (!n, !n) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%vi: !vn, %vx: !vx, %ws: !w):
    %i = tgraph.read %vi : !n
    %at = tgraph.read %vx : !x
    %c0 = tgraph.constant<0 : i32> : !n
    %c1 = tgraph.constant<1 : i32> : !n
    %row = tgraph.dynamic_slice %ws, %i, %c0 {slice_sizes = array<i64: 1, 4>} : (!w, !n, !n) -> !x
    %next = tgraph.multiply %at, %row : !x
    %n = tgraph.add %i, %c1 : !n
    tgraph.assign %vi, %n : !n
    tgraph.assign %vx, %next : !x
    tgraph.yield
  }
  func.return %0#1 : !x
}
