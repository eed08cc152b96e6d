// RUN: plan-opt %s -p tgraph-fuse-into-loops | filecheck %s
// RUN: plan-opt %s -p tgraph-rematerialize-scan-residuals | filecheck %s

!n = tensor<i32>
!vn = !tgraph.variable<!n>
!r = tensor<4xf32>
!vr = !tgraph.variable<!r>
!s = tensor<3x4xf32>
!vs = !tgraph.variable<!s>

// The value that the third loop carries is unused, so that loop does not need the stack
// of the second one, which then does not need the stack of the first.
// CHECK-LABEL: func.func @chain
// CHECK-NOT:     tensor<3x4xf32>
// CHECK:         func.return
func.func @chain(%x: !r) -> (!n, !n, !n) {
  %c0 = tgraph.constant<0 : i32> : !n
  %rows = tgraph.constant<0.0 : f32> : !s
  %i:2 = tgraph.while %c0, %rows, %x : (!n, !s, !r) -> (!n, !s) {
  ^bb0(%vi: !vn, %vs: !vs, %y: !r):
    %j = tgraph.read %vi : !n
    %c3 = tgraph.constant<3 : i32> : !n
    %p = tgraph.compare %j, %c3 {direction = "LT"} : (!n, !n) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%vi: !vn, %vs: !vs, %y: !r):
    %j = tgraph.read %vi : !n
    %c1 = tgraph.constant<1 : i32> : !n
    %z = tgraph.constant<0 : i32> : !n
    %s = tgraph.read %vs : !s
    %row = tgraph.reshape %y : (!r) -> tensor<1x4xf32>
    %t = tgraph.dynamic_update_slice %s, %row, %j, %z : (!s, tensor<1x4xf32>, !n, !n) -> !s
    %next = tgraph.add %j, %c1 : !n
    tgraph.assign %vs, %t : !s
    tgraph.assign %vi, %next : !n
    tgraph.yield
  }
  %k:2 = tgraph.while %c0, %rows, %i#1 : (!n, !s, !s) -> (!n, !s) {
  ^bb0(%vi: !vn, %vs: !vs, %given: !s):
    %j = tgraph.read %vi : !n
    %c3 = tgraph.constant<3 : i32> : !n
    %p = tgraph.compare %j, %c3 {direction = "LT"} : (!n, !n) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%vi: !vn, %vs: !vs, %given: !s):
    %j = tgraph.read %vi : !n
    %c1 = tgraph.constant<1 : i32> : !n
    %z = tgraph.constant<0 : i32> : !n
    %s = tgraph.read %vs : !s
    %row = tgraph.dynamic_slice %given, %j, %z {slice_sizes = array<i64: 1, 4>} : (!s, !n, !n) -> tensor<1x4xf32>
    %new = tgraph.tanh %row : tensor<1x4xf32>
    %t = tgraph.dynamic_update_slice %s, %new, %j, %z : (!s, tensor<1x4xf32>, !n, !n) -> !s
    %next = tgraph.add %j, %c1 : !n
    tgraph.assign %vs, %t : !s
    tgraph.assign %vi, %next : !n
    tgraph.yield
  }
  %m:2 = tgraph.while %c0, %x, %k#1 : (!n, !r, !s) -> (!n, !r) {
  ^bb0(%vi: !vn, %vr: !vr, %given: !s):
    %j = tgraph.read %vi : !n
    %c3 = tgraph.constant<3 : i32> : !n
    %p = tgraph.compare %j, %c3 {direction = "LT"} : (!n, !n) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%vi: !vn, %vr: !vr, %given: !s):
    %j = tgraph.read %vi : !n
    %c1 = tgraph.constant<1 : i32> : !n
    %z = tgraph.constant<0 : i32> : !n
    %row = tgraph.dynamic_slice %given, %j, %z {slice_sizes = array<i64: 1, 4>} : (!s, !n, !n) -> tensor<1x4xf32>
    %new = tgraph.reshape %row : (tensor<1x4xf32>) -> !r
    %next = tgraph.add %j, %c1 : !n
    tgraph.assign %vr, %new : !r
    tgraph.assign %vi, %next : !n
    tgraph.yield
  }
  func.return %i#0, %k#0, %m#0 : !n, !n, !n
}
