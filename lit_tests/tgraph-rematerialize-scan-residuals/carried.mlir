// RUN: plan-opt %s -p tgraph-rematerialize-scan-residuals | filecheck %s

// The next iteration starts with %y, so rows of %y are rows of %x, one later, and rows
// of %w need not be stacked. The second loop runs backward: it carries the row of %x
// that it has read before, and reads %w.
// CHECK-LABEL: func.func @carried
// CHECK:         [[L:%[a-z0-9_]+]], [[LAST:%[a-z0-9_]+]], [[X:%[a-z0-9_]+]] = tgraph.while
// CHECK:         tgraph.while {{.*}}, [[LAST]], [[X]], %w :
// CHECK:         } do {
// CHECK:           [[V:%[a-z0-9_]+]] = tgraph.read
// CHECK:           [[ROW:%[a-z0-9_]+]] = tgraph.dynamic_slice %{{.*}}, %at, %c0
// CHECK:           [[NEW:%[a-z0-9_]+]] = tgraph.reshape [[ROW]]
// CHECK:           tgraph.reshape [[V]]
// CHECK:           tgraph.assign %{{.*}}, [[NEW]]
func.func @carried(%x: tensor<8xf32>, %w: tensor<4x8xf32>) -> tensor<8xf32> {
  %zero = tgraph.constant<0 : i32> : tensor<i32>
  %empty = tgraph.constant<0.0 : f32> : tensor<4x8xf32>
  %0:5 = tgraph.while %zero, %x, %empty, %empty, %empty, %w : (tensor<i32>, tensor<8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<i32>, tensor<8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  ^bb0(%i: !tgraph.variable<tensor<i32>>, %v: !tgraph.variable<tensor<8xf32>>, %a: !tgraph.variable<tensor<4x8xf32>>, %b: !tgraph.variable<tensor<4x8xf32>>, %d: !tgraph.variable<tensor<4x8xf32>>, %ws: tensor<4x8xf32>):
    %n = tgraph.read %i : tensor<i32>
    %rows = tgraph.constant<4 : i32> : tensor<i32>
    %p = tgraph.compare %n, %rows {direction = "LT"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%i: !tgraph.variable<tensor<i32>>, %v: !tgraph.variable<tensor<8xf32>>, %a: !tgraph.variable<tensor<4x8xf32>>, %b: !tgraph.variable<tensor<4x8xf32>>, %d: !tgraph.variable<tensor<4x8xf32>>, %ws: tensor<4x8xf32>):
    %n = tgraph.read %i : tensor<i32>
    %xi = tgraph.read %v : tensor<8xf32>
    %as = tgraph.read %a : tensor<4x8xf32>
    %bs = tgraph.read %b : tensor<4x8xf32>
    %ds = tgraph.read %d : tensor<4x8xf32>
    %c0 = tgraph.constant<0 : i32> : tensor<i32>
    %c1 = tgraph.constant<1 : i32> : tensor<i32>
    %wr = tgraph.dynamic_slice %ws, %n, %c0 {slice_sizes = array<i64: 1, 8>} : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    %wi = tgraph.reshape %wr : (tensor<1x8xf32>) -> tensor<8xf32>
    %s = tgraph.multiply %xi, %wi : tensor<8xf32>
    %r = tgraph.reverse %s {dimensions = array<i64: 0>} : tensor<8xf32>
    %y = tgraph.tanh %r : tensor<8xf32>
    %xr = tgraph.reshape %xi : (tensor<8xf32>) -> tensor<1x8xf32>
    %yr = tgraph.reshape %y : (tensor<8xf32>) -> tensor<1x8xf32>
    %an = tgraph.dynamic_update_slice %as, %xr, %n, %c0 : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
    %bn = tgraph.dynamic_update_slice %bs, %yr, %n, %c0 : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
    %dn = tgraph.dynamic_update_slice %ds, %wr, %n, %c0 : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
    %next = tgraph.add %n, %c1 : tensor<i32>
    tgraph.assign %i, %next : tensor<i32>
    tgraph.assign %v, %y : tensor<8xf32>
    tgraph.assign %a, %an : tensor<4x8xf32>
    tgraph.assign %b, %bn : tensor<4x8xf32>
    tgraph.assign %d, %dn : tensor<4x8xf32>
    tgraph.yield
  }
  %1:2 = tgraph.while %zero, %x, %0#2, %0#3, %0#4 : (tensor<i32>, tensor<8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<i32>, tensor<8xf32>) {
  ^bb0(%i: !tgraph.variable<tensor<i32>>, %s: !tgraph.variable<tensor<8xf32>>, %a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %d: tensor<4x8xf32>):
    %n = tgraph.read %i : tensor<i32>
    %rows = tgraph.constant<4 : i32> : tensor<i32>
    %p = tgraph.compare %n, %rows {direction = "LT"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%i: !tgraph.variable<tensor<i32>>, %s: !tgraph.variable<tensor<8xf32>>, %a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %d: tensor<4x8xf32>):
    %n = tgraph.read %i : tensor<i32>
    %t = tgraph.read %s : tensor<8xf32>
    %c0 = tgraph.constant<0 : i32> : tensor<i32>
    %c1 = tgraph.constant<1 : i32> : tensor<i32>
    %c3 = tgraph.constant<3 : i32> : tensor<i32>
    %at = tgraph.subtract %c3, %n : tensor<i32>
    %ar = tgraph.dynamic_slice %a, %at, %c0 {slice_sizes = array<i64: 1, 8>} : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    %br = tgraph.dynamic_slice %b, %at, %c0 {slice_sizes = array<i64: 1, 8>} : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    %dr = tgraph.dynamic_slice %d, %at, %c0 {slice_sizes = array<i64: 1, 8>} : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    %xy = tgraph.multiply %ar, %br : tensor<1x8xf32>
    %xyw = tgraph.multiply %xy, %dr : tensor<1x8xf32>
    %e = tgraph.reshape %xyw : (tensor<1x8xf32>) -> tensor<8xf32>
    %sum = tgraph.add %t, %e : tensor<8xf32>
    %next = tgraph.add %n, %c1 : tensor<i32>
    tgraph.assign %i, %next : tensor<i32>
    tgraph.assign %s, %sum : tensor<8xf32>
    tgraph.yield
  }
  func.return %1#1 : tensor<8xf32>
}
