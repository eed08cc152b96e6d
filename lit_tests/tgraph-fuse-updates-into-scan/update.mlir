// RUN: plan-opt %s -p tgraph-fuse-updates-into-scan 2>&1 | filecheck %s
// RUN: plan-opt %s -p plan-pipeline 2>/dev/null | filecheck %s --check-prefix=PLANNED

// Iteration i of the loop computes row 8 - i of a gradient from the same row of
// weights. The updates of the weights and of their moving average need one row at a
// time, so the loop does them: it carries both variables and stacks no gradient.
// CHECK:       remark: 1 of 1 values that the loop stacks update variables row by row, which saves 2304 bytes
// CHECK-LABEL: func.func @momentum
// CHECK:         %w = tgraph.read %vw
// CHECK:         %m = tgraph.read %vm
// The learning rate is computed from a scalar defined before the loop.
// CHECK:         %rate = tgraph.negate
// CHECK-NOT:     tgraph.multiply
// CHECK:         [[N:%[a-z0-9_]+]], [[M:%[a-z0-9_]+]], [[W:%[a-z0-9_]+]] = tgraph.while %zero, %m, %w, %x, %rate
// CHECK:         } do {
// CHECK-NEXT:    ^bb{{[01]}}(%i_1: {{.*}}, [[VM:%[a-z0-9_]+]]: !tgraph.variable<tensor<9x8x8xf32>>, [[VW:%[a-z0-9_]+]]: !tgraph.variable<tensor<9x8x8xf32>>, %xs_1: tensor<8x8xf32>, [[R:%[a-z0-9_]+]]: tensor<f32>):
// The row of weights is read where it is then written, so the weights are not copied.
// CHECK:           [[ROWS:%[a-z0-9_]+]] = tgraph.read [[VW]]
// CHECK-NEXT:      %row = tgraph.dynamic_slice [[ROWS]], %at, %c0, %c0
// CHECK:           %g = tgraph.dot_general
// CHECK-NEXT:      [[G:%[a-z0-9_]+]] = tgraph.broadcast_in_dim %g
// CHECK:           [[MS:%[a-z0-9_]+]] = tgraph.read [[VM]]
// CHECK-NEXT:      [[WS:%[a-z0-9_]+]] = tgraph.read [[VW]]
// CHECK:           [[OLD:%[a-z0-9_]+]] = tgraph.dynamic_slice [[MS]], %at, %c0, %c0
// CHECK:           tgraph.multiply {{.*}}, [[OLD]] : tensor<1x8x8xf32>
// CHECK:           [[NEW:%[a-z0-9_]+]] = tgraph.add {{.*}}, [[G]] : tensor<1x8x8xf32>
// CHECK:           tgraph.broadcast_in_dim [[R]]
// CHECK:           tgraph.dynamic_update_slice [[MS]], [[NEW]], %at, %c0, %c0
// CHECK-NEXT:      tgraph.assign [[VM]]
// CHECK-NEXT:      tgraph.dynamic_update_slice [[WS]], {{.*}}, %at, %c0, %c0
// CHECK-NEXT:      tgraph.assign [[VW]]
// CHECK:           tgraph.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    tgraph.assign %vm, [[M]]
// CHECK-NEXT:    tgraph.assign %vw, [[W]]
// CHECK-NEXT:    func.return

// All updates are in the caller's memory: no tensor of nine rows is stored.
// PLANNED-NOT:   memref<9x8x8xf32, "cpu:0">{{$}}
// PLANNED:       scf.while
// PLANNED:       tgraph.dynamic_update_slice {{.*}} outs(%vm)
// PLANNED:       tgraph.dynamic_update_slice {{.*}} outs(%vw)
func.func @momentum(%vw: !tgraph.variable<tensor<9x8x8xf32>>, %vm: !tgraph.variable<tensor<9x8x8xf32>>, %x: tensor<8x8xf32>, %lr: tensor<f32>) {
  %w = tgraph.read %vw : tensor<9x8x8xf32>
  %m = tgraph.read %vm : tensor<9x8x8xf32>
  %zero = tgraph.constant<0 : i32> : tensor<i32>
  %empty = tgraph.constant<0.0 : f32> : tensor<9x8x8xf32>
  %0:2 = tgraph.while %zero, %empty, %w, %x : (tensor<i32>, tensor<9x8x8xf32>, tensor<9x8x8xf32>, tensor<8x8xf32>) -> (tensor<i32>, tensor<9x8x8xf32>) {
  ^bb0(%i: !tgraph.variable<tensor<i32>>, %gs: !tgraph.variable<tensor<9x8x8xf32>>, %ws: tensor<9x8x8xf32>, %xs: tensor<8x8xf32>):
    %n = tgraph.read %i : tensor<i32>
    %rows = tgraph.constant<9 : i32> : tensor<i32>
    %p = tgraph.compare %n, %rows {direction = "LT"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%i: !tgraph.variable<tensor<i32>>, %gs: !tgraph.variable<tensor<9x8x8xf32>>, %ws: tensor<9x8x8xf32>, %xs: tensor<8x8xf32>):
    %n = tgraph.read %i : tensor<i32>
    %gr = tgraph.read %gs : tensor<9x8x8xf32>
    %c0 = tgraph.constant<0 : i32> : tensor<i32>
    %c1 = tgraph.constant<1 : i32> : tensor<i32>
    %c9 = tgraph.constant<9 : i32> : tensor<i32>
    %left = tgraph.subtract %c9, %n : tensor<i32>
    %at = tgraph.subtract %left, %c1 : tensor<i32>
    %row = tgraph.dynamic_slice %ws, %at, %c0, %c0 {slice_sizes = array<i64: 1, 8, 8>} : (tensor<9x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8xf32>
    %weight = tgraph.reshape %row : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
    %g = tgraph.dot_general %weight, %xs {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<8x8xf32>
    %g1 = tgraph.broadcast_in_dim %g {broadcast_dimensions = array<i64: 1, 2>} : (tensor<8x8xf32>) -> tensor<1x8x8xf32>
    %next = tgraph.dynamic_update_slice %gr, %g1, %at, %c0, %c0 : (tensor<9x8x8xf32>, tensor<1x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<9x8x8xf32>
    %n1 = tgraph.add %n, %c1 : tensor<i32>
    tgraph.assign %i, %n1 : tensor<i32>
    tgraph.assign %gs, %next : tensor<9x8x8xf32>
    tgraph.yield
  }
  %rate = tgraph.negate %lr : tensor<f32>
  %rates = tgraph.broadcast_in_dim %rate {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<9x8x8xf32>
  %most = tgraph.constant<0.9 : f32> : tensor<9x8x8xf32>
  %kept = tgraph.multiply %most, %m : tensor<9x8x8xf32>
  %m1 = tgraph.add %kept, %0#1 : tensor<9x8x8xf32>
  %step = tgraph.multiply %rates, %m1 : tensor<9x8x8xf32>
  %w1 = tgraph.add %w, %step : tensor<9x8x8xf32>
  tgraph.assign %vm, %m1 : tensor<9x8x8xf32>
  tgraph.assign %vw, %w1 : tensor<9x8x8xf32>
  func.return
}
