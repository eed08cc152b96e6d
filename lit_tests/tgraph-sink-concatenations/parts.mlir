// RUN: plan-opt %s -p tgraph-fuse,tgraph-sink-concatenations 2>&1 | filecheck %s

!x = tensor<8x64xf32>

// CHECK:      remark: concatenations moved after elementwise operations: 1; the peak goes from 2048 to 0 bytes
// CHECK-NEXT: {{.*}}remark: concatenations moved after elementwise operations: 1; the peak goes from 5888 to 0 bytes

// Rows rolled by one: each part of the sum has one source, and is computed in the
// result.
// CHECK-LABEL: func.func @roll
// CHECK-DAG:     [[LAST:%[a-z0-9_]+]] = tgraph.slice %x {start_indices = array<i64: 7, 0>
// CHECK-DAG:     [[Y0:%[a-z0-9_]+]] = tgraph.slice %y {{.*}} limit_indices = array<i64: 1, 64>
// CHECK:         [[A:%[a-z0-9_]+]] = tgraph.add [[LAST]], [[Y0]] : tensor<1x64xf32>
// CHECK-DAG:     [[OTHERS:%[a-z0-9_]+]] = tgraph.slice %x {{.*}} limit_indices = array<i64: 7, 64>
// CHECK-DAG:     [[Y1:%[a-z0-9_]+]] = tgraph.slice %y {start_indices = array<i64: 1, 0>
// CHECK:         [[B:%[a-z0-9_]+]] = tgraph.add [[OTHERS]], [[Y1]] : tensor<7x64xf32>
// CHECK:         [[SUM:%[a-z0-9_]+]] = tgraph.concatenate [[A]], [[B]] {dimension = 0 : i64, tgraph.in_place}
// CHECK-NEXT:    func.return [[SUM]]
func.func @roll(%x: !x, %y: !x) -> !x {
  %0 = tgraph.slice %x {start_indices = array<i64: 7, 0>, limit_indices = array<i64: 8, 64>, strides = array<i64: 1, 1>} : (!x) -> tensor<1x64xf32>
  %1 = tgraph.slice %x {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 7, 64>, strides = array<i64: 1, 1>} : (!x) -> tensor<7x64xf32>
  %2 = tgraph.concatenate %0, %1 {dimension = 0 : i64} : (tensor<1x64xf32>, tensor<7x64xf32>) -> !x
  %3 = tgraph.add %2, %y : !x
  func.return %3 : !x
}

// The gradient of x[1:] - x[:-1], padded on both sides. The operand that both pads
// share is recomputed, which is faster than storing it. Padding is a scalar.
// CHECK-LABEL: func.func @differences
// CHECK-NOT:     tgraph.pad
// CHECK:         tgraph.constant<0.000000e+00 : f32> : tensor<1x64xf32>
// CHECK:         tgraph.concatenate {{%[^,]+}}, {{%[^,]+}}, {{%[^,]+}} {dimension = 0 : i64, tgraph.in_place}
// CHECK-SAME:      (tensor<1x64xf32>, tensor<6x64xf32>, tensor<1x64xf32>) -> tensor<8x64xf32>
func.func @differences(%x: !x) -> !x {
  %zero = tgraph.constant<0.0 : f32> : tensor<f32>
  %0 = tgraph.slice %x {start_indices = array<i64: 1, 0>, limit_indices = array<i64: 8, 64>, strides = array<i64: 1, 1>} : (!x) -> tensor<7x64xf32>
  %1 = tgraph.slice %x {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 7, 64>, strides = array<i64: 1, 1>} : (!x) -> tensor<7x64xf32>
  %2 = tgraph.subtract %0, %1 : tensor<7x64xf32>
  %3 = tgraph.sign %2 : tensor<7x64xf32>
  %4 = tgraph.negate %3 : tensor<7x64xf32>
  %5 = tgraph.pad %3, %zero {low = array<i64: 1, 0>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<7x64xf32>, tensor<f32>) -> !x
  %6 = tgraph.pad %4, %zero {low = array<i64: 0, 0>, high = array<i64: 1, 0>, interior = array<i64: 0, 0>} : (tensor<7x64xf32>, tensor<f32>) -> !x
  %7 = tgraph.add %5, %6 : !x
  func.return %7 : !x
}

// Parts in two dimensions: the first row is all padding, the others start with padding.
// CHECK-LABEL: func.func @corner
// CHECK:         [[A:%[a-z0-9_]+]] = tgraph.fusion{{.*}} -> tensor<1x641xf32> {
// CHECK:         [[B:%[a-z0-9_]+]] = tgraph.fusion{{.*}} -> tensor<800x1xf32> {
// CHECK:         [[C:%[a-z0-9_]+]] = tgraph.multiply %x, {{.*}} : tensor<800x640xf32>
// CHECK:         [[D:%[a-z0-9_]+]] = tgraph.concatenate [[B]], [[C]] {dimension = 1 : i64, tgraph.in_place}
// CHECK:         tgraph.concatenate [[A]], [[D]] {dimension = 0 : i64, tgraph.in_place}
func.func @corner(%x: tensor<800x640xf32>, %y: tensor<801x641xf32>, %number: tensor<f32>) -> tensor<801x641xf32> {
  %0 = tgraph.pad %x, %number {low = array<i64: 1, 1>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<800x640xf32>, tensor<f32>) -> tensor<801x641xf32>
  %1 = tgraph.multiply %0, %y : tensor<801x641xf32>
  func.return %1 : tensor<801x641xf32>
}
