// RUN: plan-opt %s -p tgraph-split-concatenations | filecheck %s
// RUN: plan-opt %s -p tgraph-split-concatenations -o %t && plan-opt %t -p tgraph-split-concatenations | diff %t -

// Each part replaces the old part before the next one is computed.
// CHECK-LABEL: func.func @parts
// CHECK:         [[OLD:%.+]] = tgraph.read %v
// CHECK-NEXT:    [[A:%.+]] = tgraph.slice [[OLD]] {start_indices = array<i64: 0, 0>
// CHECK-NEXT:    [[SUM:%.+]] = tgraph.add [[A]], %g
// CHECK:         [[ONE:%.+]] = tgraph.dynamic_update_slice [[OLD]], [[SUM]], {{.*}} outs(%v)
// CHECK-NEXT:    [[B:%.+]] = tgraph.slice [[ONE]] {start_indices = array<i64: 2, 0>
// CHECK-NEXT:    [[PRODUCT:%.+]] = tgraph.multiply [[B]], %h
// CHECK:         %both = tgraph.dynamic_update_slice [[ONE]], [[PRODUCT]], {{.*}} outs(%v)
// CHECK-NOT:     tgraph.concatenate
func.func @parts(%v: !tgraph.variable<tensor<8x4xf32>>, %g: tensor<2x4xf32>, %h: tensor<6x4xf32>) {
  %old = tgraph.read %v : tensor<8x4xf32>
  %a = tgraph.slice %old {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 2, 4>, strides = array<i64: 1, 1>} : (tensor<8x4xf32>) -> tensor<2x4xf32>
  %b = tgraph.slice %old {start_indices = array<i64: 2, 0>, limit_indices = array<i64: 8, 4>, strides = array<i64: 1, 1>} : (tensor<8x4xf32>) -> tensor<6x4xf32>
  %sum = tgraph.add %a, %g : tensor<2x4xf32>
  %product = tgraph.multiply %b, %h : tensor<6x4xf32>
  %both = tgraph.concatenate %sum, %product outs(%v) {dimension = 0 : i64} : (tensor<2x4xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  func.return
}

// The first part waits until the second has read the old part that it replaces.
// CHECK-LABEL: func.func @rotation
// CHECK:         [[X:%.+]] = tgraph.add
// CHECK-NEXT:    [[Y:%.+]] = tgraph.subtract
// CHECK:         [[ONE:%.+]] = tgraph.dynamic_update_slice {{.*}}, [[Y]],
// CHECK:         tgraph.dynamic_update_slice [[ONE]], [[X]],
// CHECK-NOT:     tgraph.concatenate
func.func @rotation(%v: !tgraph.variable<tensor<2x64xf32>>) {
  %old = tgraph.read %v : tensor<2x64xf32>
  %a = tgraph.slice %old {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 1, 64>, strides = array<i64: 1, 1>} : (tensor<2x64xf32>) -> tensor<1x64xf32>
  %b = tgraph.slice %old {start_indices = array<i64: 1, 0>, limit_indices = array<i64: 2, 64>, strides = array<i64: 1, 1>} : (tensor<2x64xf32>) -> tensor<1x64xf32>
  %x = tgraph.add %a, %b : tensor<1x64xf32>
  %y = tgraph.subtract %b, %a : tensor<1x64xf32>
  %n = tgraph.concatenate %x, %y outs(%v) {dimension = 0 : i64} : (tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<2x64xf32>
  func.return
}

// An unchanged part needs no update.
// CHECK-LABEL: func.func @stays
// CHECK-COUNT-1: tgraph.dynamic_update_slice
// CHECK-NOT:     tgraph.dynamic_update_slice
// CHECK:         func.return
func.func @stays(%v: !tgraph.variable<tensor<2x64xf32>>) {
  %old = tgraph.read %v : tensor<2x64xf32>
  %a = tgraph.slice %old {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 1, 64>, strides = array<i64: 1, 1>} : (tensor<2x64xf32>) -> tensor<1x64xf32>
  %b = tgraph.slice %old {start_indices = array<i64: 1, 0>, limit_indices = array<i64: 2, 64>, strides = array<i64: 1, 1>} : (tensor<2x64xf32>) -> tensor<1x64xf32>
  %y = tgraph.subtract %b, %a : tensor<1x64xf32>
  %n = tgraph.concatenate %a, %y outs(%v) {dimension = 0 : i64} : (tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<2x64xf32>
  func.return
}

// A concatenation stays if parts move, if no part depends on the old contents, or if
// all old contents are read after each part is computed.
// CHECK-LABEL: func.func @moves
// CHECK:         tgraph.concatenate
// CHECK-LABEL: func.func @new
// CHECK:         tgraph.concatenate
// CHECK-LABEL: func.func @read
// CHECK:         tgraph.concatenate
func.func @moves(%v: !tgraph.variable<tensor<2x64xf32>>) {
  %old = tgraph.read %v : tensor<2x64xf32>
  %a = tgraph.slice %old {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 1, 64>, strides = array<i64: 1, 1>} : (tensor<2x64xf32>) -> tensor<1x64xf32>
  %b = tgraph.negate %a : tensor<1x64xf32>
  %n = tgraph.concatenate %b, %a outs(%v) {dimension = 0 : i64} : (tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<2x64xf32>
  func.return
}
func.func @new(%v: !tgraph.variable<tensor<2x64xf32>>, %g: tensor<1x64xf32>) {
  %a = tgraph.negate %g : tensor<1x64xf32>
  %b = tgraph.sqrt %g : tensor<1x64xf32>
  %n = tgraph.concatenate %a, %b outs(%v) {dimension = 0 : i64} : (tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<2x64xf32>
  func.return
}
func.func @read(%v: !tgraph.variable<tensor<2x64xf32>>, %g: tensor<1x64xf32>) -> tensor<2x64xf32> {
  %old = tgraph.read %v : tensor<2x64xf32>
  %a = tgraph.negate %g : tensor<1x64xf32>
  %b = tgraph.sqrt %g : tensor<1x64xf32>
  %r = tgraph.negate %old : tensor<2x64xf32>
  %n = tgraph.concatenate %a, %b outs(%v) {dimension = 0 : i64} : (tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<2x64xf32>
  func.return %r : tensor<2x64xf32>
}
