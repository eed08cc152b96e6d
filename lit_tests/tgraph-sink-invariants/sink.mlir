// RUN: plan-opt %s -p tgraph-sink-invariants | filecheck %s

!n = tensor<i32>
!vn = !tgraph.variable<!n>
!m = tensor<64x64xf32>
!vm = !tgraph.variable<!m>

// The mask is computed in the loop. The table of sines is not, because it would add more
// than a hundredth to the loop's time, nor the matrix that a product reads.
// CHECK-LABEL: func.func @masked
// CHECK-NOT:     tgraph.compare
// CHECK:         [[S:%.+]] = tgraph.sine
// CHECK:         [[F:%.+]] = tgraph.convert
// CHECK-NEXT:    tgraph.while {{%.+}}, %a, [[S]], [[F]] :
// CHECK:         } do {
// CHECK-NEXT:    ^{{.+}}, [[T:%[^ ]+]]: tensor<64x64xf32>, [[W:%[^ ]+]]: tensor<64x64xf32>):
// CHECK:           [[M:%.+]] = tgraph.compare {{.+}} {direction = "GE"}
// CHECK:           tgraph.dot_general {{%.+}}, [[W]]
// CHECK:           [[P:%.+]] = tgraph.select [[M]],
// CHECK-NEXT:      tgraph.add [[P]], [[T]]
func.func @masked(%a: !m) -> !m {
  %zero = tgraph.constant<0 : i32> : !n
  %i = tgraph.iota {dimension = 0 : i64} : tensor<64x64xi32>
  %j = tgraph.iota {dimension = 1 : i64} : tensor<64x64xi32>
  %mask = tgraph.compare %i, %j {direction = "GE"} : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi1>
  %x = tgraph.convert %i : (tensor<64x64xi32>) -> !m
  %s = tgraph.sine %x : !m
  %f = tgraph.convert %j : (tensor<64x64xi32>) -> !m
  %0:2 = tgraph.while %zero, %a, %mask, %s, %f : (!n, !m, tensor<64x64xi1>, !m, !m) -> (!n, !m) {
  ^bb0(%vi: !vn, %vx: !vm, %m: tensor<64x64xi1>, %t: !m, %w: !m):
    %k = tgraph.read %vi : !n
    %last = tgraph.constant<9 : i32> : !n
    %p = tgraph.compare %k, %last {direction = "LT"} : (!n, !n) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%vi: !vn, %vx: !vm, %m: tensor<64x64xi1>, %t: !m, %w: !m):
    %k = tgraph.read %vi : !n
    %h = tgraph.read %vx : !m
    %one = tgraph.constant<1 : i32> : !n
    %low = tgraph.constant<-1.0e+09 : f32> : !m
    %y = tgraph.dot_general %h, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : !m
    %q = tgraph.select %m, %y, %low : (tensor<64x64xi1>, !m, !m) -> !m
    %r = tgraph.add %q, %t : !m
    %next = tgraph.add %k, %one : !n
    tgraph.assign %vi, %next : !n
    tgraph.assign %vx, %r : !m
    tgraph.yield
  }
  func.return %0#1 : !m
}

// What nested loops read is computed in the innermost one.
// CHECK-LABEL: func.func @nested
// CHECK-NOT:     tgraph.iota
// CHECK:         tgraph.while
// CHECK:         } do {
// CHECK-NOT:       tgraph.iota
// CHECK:           tgraph.while
// CHECK:           } do {
// CHECK:             [[I:%.+]] = tgraph.iota
// CHECK:             tgraph.maximum {{%.+}}, [[I]]
func.func @nested(%a: !n) -> !n {
  %zero = tgraph.constant<0 : i32> : !n
  %i = tgraph.iota {dimension = 0 : i64} : tensor<64xi32>
  %start = tgraph.constant<0 : i32> : tensor<64xi32>
  %0:2 = tgraph.while %zero, %start, %i : (!n, tensor<64xi32>, tensor<64xi32>) -> (!n, tensor<64xi32>) {
  ^bb0(%vi: !vn, %vx: !tgraph.variable<tensor<64xi32>>, %m: tensor<64xi32>):
    %k = tgraph.read %vi : !n
    %last = tgraph.constant<9 : i32> : !n
    %p = tgraph.compare %k, %last {direction = "LT"} : (!n, !n) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%vi: !vn, %vx: !tgraph.variable<tensor<64xi32>>, %m: tensor<64xi32>):
    %k = tgraph.read %vi : !n
    %h = tgraph.read %vx : tensor<64xi32>
    %one = tgraph.constant<1 : i32> : !n
    %first = tgraph.constant<0 : i32> : !n
    %1:2 = tgraph.while %first, %h, %m : (!n, tensor<64xi32>, tensor<64xi32>) -> (!n, tensor<64xi32>) {
    ^bb0(%vj: !vn, %vy: !tgraph.variable<tensor<64xi32>>, %b: tensor<64xi32>):
      %c = tgraph.read %vj : !n
      %end = tgraph.constant<9 : i32> : !n
      %q = tgraph.compare %c, %end {direction = "LT"} : (!n, !n) -> tensor<i1>
      tgraph.yield %q : tensor<i1>
    } do {
    ^bb0(%vj: !vn, %vy: !tgraph.variable<tensor<64xi32>>, %b: tensor<64xi32>):
      %c = tgraph.read %vj : !n
      %d = tgraph.read %vy : tensor<64xi32>
      %unit = tgraph.constant<1 : i32> : !n
      %e = tgraph.maximum %d, %b : tensor<64xi32>
      %next = tgraph.add %c, %unit : !n
      tgraph.assign %vj, %next : !n
      tgraph.assign %vy, %e : tensor<64xi32>
      tgraph.yield
    }
    %next = tgraph.add %k, %one : !n
    tgraph.assign %vi, %next : !n
    tgraph.assign %vx, %1#1 : tensor<64xi32>
    tgraph.yield
  }
  %end = tgraph.reduce %0#1 {kind = "add", dimensions = array<i64: 0>} : (tensor<64xi32>) -> !n
  func.return %end : !n
}
