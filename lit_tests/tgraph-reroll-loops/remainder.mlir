// RUN: plan-opt %s -p tgraph-reroll-loops 2>&1 | filecheck %s

!n = tensor<i32>
!vn = !tgraph.variable<!n>
!x = tensor<1x4xf32>
!vx = !tgraph.variable<!x>
!w = tensor<10x4xf32>
!vw = !tgraph.variable<!w>
!all = tensor<11x4xf32>

// An iteration computes two layers, and the last of 11 layers follows the loop: all
// become iterations of one loop, which reads and stacks one row in each.
// CHECK:       remark: iterations merged into the loop that precedes them: 1
// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%w: tensor<11x4xf32>
// CHECK:         [[AT:%[a-z0-9_]+]], [[X:%[a-z0-9_]+]], [[ALL:%[a-z0-9_]+]] = tgraph.while {{.*}}, %w :
// CHECK:           tgraph.constant<11 : i32>
// CHECK:         } do {
// CHECK:           [[ROW:%[a-z0-9_]+]] = tgraph.dynamic_slice {{.*}}slice_sizes = array<i64: 1, 4>
// CHECK:           tgraph.multiply {{.*}}, [[ROW]]
// CHECK-NOT:       tgraph.multiply
// CHECK:           tgraph.dynamic_update_slice
// CHECK-NOT:       tgraph.dynamic_update_slice
// CHECK:           tgraph.yield
// CHECK-NOT:     tgraph.concatenate
// CHECK:         func.return [[X]], [[ALL]]
func.func @main(%w: !all, %x: !x) -> (!x, !all) {
  %zero = tgraph.constant<0 : i32> : !n
  %empty = tgraph.constant<0.0 : f32> : !w
  %first = tgraph.slice %w {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 10, 4>, strides = array<i64: 1, 1>} : (!all) -> !w
  %0:3 = tgraph.while %zero, %x, %empty, %first : (!n, !x, !w, !w) -> (!n, !x, !w) {
  ^bb0(%vi: !vn, %vx: !vx, %vs: !vw, %ws: !w):
    %i = tgraph.read %vi : !n
    %five = tgraph.constant<5 : i32> : !n
    %p = tgraph.compare %i, %five {direction = "LT"} : (!n, !n) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%vi: !vn, %vx: !vx, %vs: !vw, %ws: !w):
    %i = tgraph.read %vi : !n
    %at = tgraph.read %vx : !x
    %s = tgraph.read %vs : !w
    %c0 = tgraph.constant<0 : i32> : !n
    %c1 = tgraph.constant<1 : i32> : !n
    %c2 = tgraph.constant<2 : i32> : !n
    %even = tgraph.multiply %i, %c2 : !n
    %odd = tgraph.add %even, %c1 : !n
    %row0 = tgraph.dynamic_slice %ws, %even, %c0 {slice_sizes = array<i64: 1, 4>} : (!w, !n, !n) -> !x
    %next0 = tgraph.multiply %at, %row0 : !x
    %row1 = tgraph.dynamic_slice %ws, %odd, %c0 {slice_sizes = array<i64: 1, 4>} : (!w, !n, !n) -> !x
    %next1 = tgraph.multiply %next0, %row1 : !x
    %s0 = tgraph.dynamic_update_slice %s, %at, %even, %c0 : (!w, !x, !n, !n) -> !w
    %s1 = tgraph.dynamic_update_slice %s0, %next0, %odd, %c0 : (!w, !x, !n, !n) -> !w
    %n = tgraph.add %i, %c1 : !n
    tgraph.assign %vi, %n : !n
    tgraph.assign %vx, %next1 : !x
    tgraph.assign %vs, %s1 : !w
    tgraph.yield
  }
  %last = tgraph.slice %w {start_indices = array<i64: 10, 0>, limit_indices = array<i64: 11, 4>, strides = array<i64: 1, 1>} : (!all) -> !x
  %y = tgraph.multiply %0#1, %last : !x
  %stacked = tgraph.concatenate %0#2, %0#1 {dimension = 0 : i64} : (!w, !x) -> !all
  func.return %y, %stacked : !x, !all
}
