// RUN: plan-opt %s -p tgraph-hoist-invariants | filecheck %s
// RUN: plan-opt %s -p 'tgraph-hoist-invariants{max-growth=2}' | filecheck %s --check-prefix=GROWS

!n = tensor<i32>
!vn = !tgraph.variable<!n>
!v = tensor<64xf32>
!vv = !tgraph.variable<!v>
!m = tensor<64x64xf32>

// Both operations and their constant operand are hoisted. The sum of squares and the
// vector that the loop carries stay.
// CHECK-LABEL: func.func @scaled
// CHECK:         [[D:%.+]] = tgraph.constant<5.000000e-01 : f32>
// CHECK-NEXT:    [[S:%.+]] = tgraph.multiply %a, [[D]] : tensor<64x64xf32>
// CHECK-NEXT:    [[T:%.+]] = tgraph.tanh [[S]] : tensor<64x64xf32>
// CHECK-NEXT:    tgraph.while {{%.+}}, %v, [[T]] :
// CHECK:         } do {
// CHECK-NEXT:    ^{{.+}}, [[M:%[^ ]+]]: tensor<64x64xf32>):
// CHECK-NOT:       tgraph.tanh
// CHECK:           tgraph.dot_general [[M]],
func.func @scaled(%a: !m, %v: !v) -> !v {
  %zero = tgraph.constant<0 : i32> : !n
  %0:2 = tgraph.while %zero, %v, %a : (!n, !v, !m) -> (!n, !v) {
  ^bb0(%vi: !vn, %vx: !vv, %m: !m):
    %i = tgraph.read %vi : !n
    %last = tgraph.constant<9 : i32> : !n
    %p = tgraph.compare %i, %last {direction = "LT"} : (!n, !n) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%vi: !vn, %vx: !vv, %m: !m):
    %i = tgraph.read %vi : !n
    %x = tgraph.read %vx : !v
    %one = tgraph.constant<1 : i32> : !n
    %half = tgraph.constant<5.0e-01 : f32> : !m
    %s = tgraph.multiply %m, %half : !m
    %t = tgraph.tanh %s : !m
    %y = tgraph.dot_general %t, %x {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (!m, !v) -> !v
    %j = tgraph.add %i, %one : !n
    tgraph.assign %vi, %j : !n
    tgraph.assign %vx, %y : !v
    tgraph.yield
  }
  func.return %0#1 : !v
}

// The two matrices are not live at the same time in the loop: hoisted, both would be,
// which needs 100 % more bytes.
// CHECK-LABEL: func.func @in_turn
// CHECK-NOT:     tgraph.exponential
// CHECK:         } do {
// CHECK:           tgraph.exponential
// CHECK:           tgraph.tanh
// GROWS-LABEL: func.func @in_turn
// GROWS:         tgraph.exponential
// GROWS:         tgraph.tanh
// GROWS:         tgraph.while
// GROWS-NOT:     tgraph.exponential
// GROWS-NOT:     tgraph.tanh
func.func @in_turn(%a: !m, %v: !v) -> !v {
  %zero = tgraph.constant<0 : i32> : !n
  %0:2 = tgraph.while %zero, %v, %a : (!n, !v, !m) -> (!n, !v) {
  ^bb0(%vi: !vn, %vx: !vv, %m: !m):
    %i = tgraph.read %vi : !n
    %last = tgraph.constant<9 : i32> : !n
    %p = tgraph.compare %i, %last {direction = "LT"} : (!n, !n) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%vi: !vn, %vx: !vv, %m: !m):
    %i = tgraph.read %vi : !n
    %x = tgraph.read %vx : !v
    %one = tgraph.constant<1 : i32> : !n
    %e = tgraph.exponential %m : !m
    %y = tgraph.dot_general %e, %x {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (!m, !v) -> !v
    %t = tgraph.tanh %m : !m
    %z = tgraph.dot_general %t, %y {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (!m, !v) -> !v
    %j = tgraph.add %i, %one : !n
    tgraph.assign %vi, %j : !n
    tgraph.assign %vx, %z : !v
    tgraph.yield
  }
  func.return %0#1 : !v
}

// The assigned value is computed directly into the variable; before the loop, it would
// be copied there.
// CHECK-LABEL: func.func @assigned
// GROWS-LABEL: func.func @assigned
// CHECK:         } do {
// CHECK:           [[E:%.+]] = tgraph.exponential
// CHECK:           tgraph.assign {{%.+}}, [[E]]
func.func @assigned(%w: !v, %v: !v) -> !v {
  %zero = tgraph.constant<0 : i32> : !n
  %0:2 = tgraph.while %zero, %v, %w : (!n, !v, !v) -> (!n, !v) {
  ^bb0(%vi: !vn, %vx: !vv, %c: !v):
    %i = tgraph.read %vi : !n
    %last = tgraph.constant<9 : i32> : !n
    %p = tgraph.compare %i, %last {direction = "LT"} : (!n, !n) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%vi: !vn, %vx: !vv, %c: !v):
    %i = tgraph.read %vi : !n
    %one = tgraph.constant<1 : i32> : !n
    %e = tgraph.exponential %c : !v
    %j = tgraph.add %i, %one : !n
    tgraph.assign %vi, %j : !n
    tgraph.assign %vx, %e : !v
    tgraph.yield
  }
  func.return %0#1 : !v
}

// An operation is hoisted out of both loops.
// CHECK-LABEL: func.func @nested
// CHECK:         tgraph.tanh %a : tensor<64x64xf32>
// CHECK:         tgraph.while
// CHECK:         tgraph.while
// CHECK-NOT:     tgraph.tanh
func.func @nested(%a: !m, %v: !v) -> !v {
  %zero = tgraph.constant<0 : i32> : !n
  %0:2 = tgraph.while %zero, %v, %a : (!n, !v, !m) -> (!n, !v) {
  ^bb0(%vi: !vn, %vx: !vv, %m: !m):
    %i = tgraph.read %vi : !n
    %last = tgraph.constant<9 : i32> : !n
    %p = tgraph.compare %i, %last {direction = "LT"} : (!n, !n) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%vi: !vn, %vx: !vv, %m: !m):
    %i = tgraph.read %vi : !n
    %x = tgraph.read %vx : !v
    %c0 = tgraph.constant<0 : i32> : !n
    %one = tgraph.constant<1 : i32> : !n
    %1:2 = tgraph.while %c0, %x, %m : (!n, !v, !m) -> (!n, !v) {
    ^bb1(%vj: !vn, %vy: !vv, %k: !m):
      %j = tgraph.read %vj : !n
      %end = tgraph.constant<3 : i32> : !n
      %q = tgraph.compare %j, %end {direction = "LT"} : (!n, !n) -> tensor<i1>
      tgraph.yield %q : tensor<i1>
    } do {
    ^bb1(%vj: !vn, %vy: !vv, %k: !m):
      %j = tgraph.read %vj : !n
      %y = tgraph.read %vy : !v
      %c1 = tgraph.constant<1 : i32> : !n
      %t = tgraph.tanh %k : !m
      %z = tgraph.dot_general %t, %y {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (!m, !v) -> !v
      %j1 = tgraph.add %j, %c1 : !n
      tgraph.assign %vj, %j1 : !n
      tgraph.assign %vy, %z : !v
      tgraph.yield
    }
    %i1 = tgraph.add %i, %one : !n
    tgraph.assign %vi, %i1 : !n
    tgraph.assign %vx, %1#1 : !v
    tgraph.yield
  }
  func.return %0#1 : !v
}
