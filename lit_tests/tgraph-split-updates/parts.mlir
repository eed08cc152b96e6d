// RUN: plan-opt %s -p tgraph-split-updates 2>&1 | filecheck %s

!row = tensor<1x8xf32>
!w = tensor<5x8xf32>
!v = !tgraph.variable<!w>

// The rows of a gradient are computed in sequence, the last first. Each row of weights
// is updated before the next one is needed, which is read from the variable.
// CHECK:       remark: the update of 1 variables is split into 5 parts
// CHECK-LABEL: func.func @sgd
// CHECK:         %g4 = tgraph.multiply %x, %x
// CHECK-NEXT:    [[V4:%[a-z0-9_]+]] = tgraph.read %v
// CHECK:         [[STEP:%[a-z0-9_]+]] = tgraph.multiply {{.*}}, %g4
// CHECK-NEXT:    [[W4:%[a-z0-9_]+]] = tgraph.slice [[V4]] {start_indices = array<i64: 4, 0>
// CHECK-NEXT:    [[N4:%[a-z0-9_]+]] = tgraph.subtract [[W4]], [[STEP]]
// CHECK-NEXT:    [[U4:%[a-z0-9_]+]] = tgraph.dynamic_update_slice [[V4]], [[N4]]
// CHECK-NEXT:    tgraph.assign %v, [[U4]]
// CHECK:         [[V:%[a-z0-9_]+]] = tgraph.read %v
// CHECK-NEXT:    [[W3:%[a-z0-9_]+]] = tgraph.slice [[V]] {start_indices = array<i64: 3, 0>
// CHECK-NEXT:    %g3 = tgraph.multiply %g4, [[W3]]
// CHECK-NOT:     tgraph.concatenate
func.func @sgd(%v: !v, %x: !row) {
  %w = tgraph.read %v : !w
  %w3 = tgraph.slice %w {start_indices = array<i64: 3, 0>, limit_indices = array<i64: 4, 8>, strides = array<i64: 1, 1>} : (!w) -> !row
  %w2 = tgraph.slice %w {start_indices = array<i64: 2, 0>, limit_indices = array<i64: 3, 8>, strides = array<i64: 1, 1>} : (!w) -> !row
  %w1 = tgraph.slice %w {start_indices = array<i64: 1, 0>, limit_indices = array<i64: 2, 8>, strides = array<i64: 1, 1>} : (!w) -> !row
  %w0 = tgraph.slice %w {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 1, 8>, strides = array<i64: 1, 1>} : (!w) -> !row
  %g4 = tgraph.multiply %x, %x : !row
  %g3 = tgraph.multiply %g4, %w3 : !row
  %g2 = tgraph.multiply %g3, %w2 : !row
  %g1 = tgraph.multiply %g2, %w1 : !row
  %g0 = tgraph.multiply %g1, %w0 : !row
  %some = tgraph.concatenate %g0, %g1 {dimension = 0 : i64} : (!row, !row) -> tensor<2x8xf32>
  %g = tgraph.concatenate %some, %g2, %g3, %g4 {dimension = 0 : i64} : (tensor<2x8xf32>, !row, !row, !row) -> !w
  %rate = tgraph.constant<0.01 : f32> : !w
  %step = tgraph.multiply %rate, %g : !w
  %new = tgraph.subtract %w, %step : !w
  tgraph.assign %v, %new : !w
  func.return
}
