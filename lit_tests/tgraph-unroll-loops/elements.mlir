// RUN: plan-opt %s -p tgraph-unroll-loops 2>&1 | filecheck %s

!n = tensor<i32>
!vn = !tgraph.variable<!n>
!x = tensor<8x8xui32>
!vx = !tgraph.variable<!x>
!r = tensor<2xui32>
!vr = !tgraph.variable<!r>

// An elementwise loop, such as the rounds of Threefry: the numbers that each round
// takes from rotating lists become constants.
// CHECK:       remark: the loop is fully unrolled: 3 iterations
// CHECK-LABEL: func.func @rounds
// CHECK-NOT:     tgraph.while
// CHECK:         [[A:%[a-z0-9_]+]] = tgraph.constant<13 : ui32> : tensor<8x8xui32>
// CHECK-NEXT:    [[X1:%[a-z0-9_]+]] = tgraph.shift_left %x, [[A]]
// CHECK-NEXT:    [[B:%[a-z0-9_]+]] = tgraph.constant<17 : ui32> : tensor<8x8xui32>
// CHECK-NEXT:    [[X2:%[a-z0-9_]+]] = tgraph.shift_left [[X1]], [[B]]
// CHECK-NEXT:    [[X3:%[a-z0-9_]+]] = tgraph.shift_left [[X2]], [[A]]
// CHECK-NEXT:    func.return [[X3]]
func.func @rounds(%x: !x) -> !x {
  %zero = tgraph.constant<0 : i32> : !n
  %p = tgraph.constant<dense<[13, 15]> : !r> : !r
  %q = tgraph.constant<dense<[17, 29]> : !r> : !r
  %0:4 = tgraph.while %zero, %x, %p, %q : (!n, !x, !r, !r) -> (!n, !x, !r, !r) {
  ^bb0(%vi: !vn, %vx: !vx, %vp: !vr, %vq: !vr):
    %i = tgraph.read %vi : !n
    %three = tgraph.constant<3 : i32> : !n
    %c = tgraph.compare %i, %three {direction = "LT"} : (!n, !n) -> tensor<i1>
    tgraph.yield %c : tensor<i1>
  } do {
  ^bb0(%vi: !vn, %vx: !vx, %vp: !vr, %vq: !vr):
    %i = tgraph.read %vi : !n
    %at = tgraph.read %vx : !x
    %this = tgraph.read %vp : !r
    %other = tgraph.read %vq : !r
    %one = tgraph.constant<1 : i32> : !n
    %row = tgraph.slice %this {start_indices = array<i64: 0>, limit_indices = array<i64: 1>, strides = array<i64: 1>} : (!r) -> tensor<1xui32>
    %number = tgraph.reshape %row : (tensor<1xui32>) -> tensor<ui32>
    %by = tgraph.broadcast_in_dim %number {broadcast_dimensions = array<i64>} : (tensor<ui32>) -> !x
    %next = tgraph.shift_left %at, %by : !x
    %n = tgraph.add %i, %one : !n
    tgraph.assign %vi, %n : !n
    tgraph.assign %vx, %next : !x
    tgraph.assign %vp, %other : !r
    tgraph.assign %vq, %this : !r
    tgraph.yield
  }
  func.return %0#1 : !x
}

// 130 iterations of 2 operations exceed the limit of a group, so the loop stays.
// CHECK-LABEL: func.func @many
// CHECK:         tgraph.while
func.func @many(%x: !x) -> !x {
  %zero = tgraph.constant<0 : i32> : !n
  %0:2 = tgraph.while %zero, %x : (!n, !x) -> (!n, !x) {
  ^bb0(%vi: !vn, %vx: !vx):
    %i = tgraph.read %vi : !n
    %most = tgraph.constant<130 : i32> : !n
    %c = tgraph.compare %i, %most {direction = "LT"} : (!n, !n) -> tensor<i1>
    tgraph.yield %c : tensor<i1>
  } do {
  ^bb0(%vi: !vn, %vx: !vx):
    %i = tgraph.read %vi : !n
    %at = tgraph.read %vx : !x
    %one = tgraph.constant<1 : i32> : !n
    %next = tgraph.multiply %at, %at : !x
    %n = tgraph.add %i, %one : !n
    tgraph.assign %vi, %n : !n
    tgraph.assign %vx, %next : !x
    tgraph.yield
  }
  func.return %0#1 : !x
}

// A value of another shape would be stored between two groups, so the loop stays.
// CHECK-LABEL: func.func @rows
// CHECK:         tgraph.while
func.func @rows(%x: !x, %row: tensor<8xui32>) -> !x {
  %zero = tgraph.constant<0 : i32> : !n
  %0:3 = tgraph.while %zero, %x, %row : (!n, !x, tensor<8xui32>) -> (!n, !x, tensor<8xui32>) {
  ^bb0(%vi: !vn, %vx: !vx, %vr: !tgraph.variable<tensor<8xui32>>):
    %i = tgraph.read %vi : !n
    %three = tgraph.constant<3 : i32> : !n
    %c = tgraph.compare %i, %three {direction = "LT"} : (!n, !n) -> tensor<i1>
    tgraph.yield %c : tensor<i1>
  } do {
  ^bb0(%vi: !vn, %vx: !vx, %vr: !tgraph.variable<tensor<8xui32>>):
    %i = tgraph.read %vi : !n
    %at = tgraph.read %vx : !x
    %r = tgraph.read %vr : tensor<8xui32>
    %one = tgraph.constant<1 : i32> : !n
    %square = tgraph.multiply %r, %r : tensor<8xui32>
    %whole = tgraph.broadcast_in_dim %square {broadcast_dimensions = array<i64: 1>} : (tensor<8xui32>) -> !x
    %next = tgraph.multiply %at, %whole : !x
    %n = tgraph.add %i, %one : !n
    tgraph.assign %vi, %n : !n
    tgraph.assign %vx, %next : !x
    tgraph.assign %vr, %square : tensor<8xui32>
    tgraph.yield
  }
  func.return %0#1 : !x
}
