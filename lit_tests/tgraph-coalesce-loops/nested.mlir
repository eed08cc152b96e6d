// RUN: plan-opt %s -p tgraph-coalesce-loops | filecheck %s

// A sum over two blocks of three rows becomes one loop over six rows.

!n = tensor<i32>
!vn = !tgraph.variable<!n>
!x = tensor<1x4xf32>
!vx = !tgraph.variable<!x>

func.func @sum(%w: tensor<2x3x4xf32>, %x: !x) -> !x {
  %zero = tgraph.constant<0 : i32> : !n
  %0:2 = tgraph.while %zero, %x, %w : (!n, !x, tensor<2x3x4xf32>) -> (!n, !x) {
  ^bb0(%vi: !vn, %vx: !vx, %g: tensor<2x3x4xf32>):
    %i = tgraph.read %vi : !n
    %blocks = tgraph.constant<2 : i32> : !n
    %p = tgraph.compare %i, %blocks {direction = "LT"} : (!n, !n) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%vi: !vn, %vx: !vx, %g: tensor<2x3x4xf32>):
    %i = tgraph.read %vi : !n
    %begun = tgraph.read %vx : !x
    %c0 = tgraph.constant<0 : i32> : !n
    %c1 = tgraph.constant<1 : i32> : !n
    %b = tgraph.dynamic_slice %g, %i, %c0, %c0 {slice_sizes = array<i64: 1, 3, 4>}
      : (tensor<2x3x4xf32>, !n, !n, !n) -> tensor<1x3x4xf32>
    %block = tgraph.reshape %b : (tensor<1x3x4xf32>) -> tensor<3x4xf32>
    %1:2 = tgraph.while %c0, %begun, %block : (!n, !x, tensor<3x4xf32>) -> (!n, !x) {
    ^bb1(%vj: !vn, %vy: !vx, %h: tensor<3x4xf32>):
      %j = tgraph.read %vj : !n
      %rows = tgraph.constant<3 : i32> : !n
      %q = tgraph.compare %j, %rows {direction = "LT"} : (!n, !n) -> tensor<i1>
      tgraph.yield %q : tensor<i1>
    } do {
    ^bb1(%vj: !vn, %vy: !vx, %h: tensor<3x4xf32>):
      %j = tgraph.read %vj : !n
      %y = tgraph.read %vy : !x
      %d0 = tgraph.constant<0 : i32> : !n
      %d1 = tgraph.constant<1 : i32> : !n
      %row = tgraph.dynamic_slice %h, %j, %d0 {slice_sizes = array<i64: 1, 4>}
        : (tensor<3x4xf32>, !n, !n) -> !x
      %sum = tgraph.add %y, %row : !x
      %j1 = tgraph.add %j, %d1 : !n
      tgraph.assign %vj, %j1 : !n
      tgraph.assign %vy, %sum : !x
      tgraph.yield
    }
    %i1 = tgraph.add %i, %c1 : !n
    tgraph.assign %vi, %i1 : !n
    tgraph.assign %vx, %1#1 : !x
    tgraph.yield
  }
  func.return %0#1 : !x
}

// CHECK-LABEL: @sum
// CHECK: %[[ROWS:.*]] = tgraph.reshape %w : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
// CHECK: tgraph.while %{{.*}}, %x, %[[ROWS]] :
// CHECK: tgraph.constant<6 : i32>
// CHECK-NOT: tgraph.while
// CHECK: tgraph.dynamic_slice {{.*}} : (tensor<6x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
// CHECK-NOT: tgraph.while
