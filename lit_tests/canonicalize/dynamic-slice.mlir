// RUN: plan-opt %s -p canonicalize | filecheck %s

// A dynamic slice at constant starts, which are clamped, becomes a slice, a view.
// CHECK-LABEL: @known
// CHECK-NEXT:    tgraph.slice %x {start_indices = array<i64: 3>, limit_indices = array<i64: 5>, strides = array<i64: 1>}
func.func @known(%x: tensor<5xf32>) -> tensor<2xf32> {
  %c = tgraph.constant<9 : i32> : tensor<i32>
  %0 = tgraph.dynamic_slice %x, %c {slice_sizes = array<i64: 2>} : (tensor<5xf32>, tensor<i32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}

// Rows of an unrolled scan are sliced one by one if nothing else is read.
// CHECK-LABEL: func.func @parts
// CHECK:         [[A:%[a-z0-9_]+]] = tgraph.dynamic_slice %x, %i, {{.*}} {slice_sizes = array<i64: 1, 1, 8>}
// CHECK:         [[ONE:%[a-z0-9_]+]] = tgraph.constant<1 : i32>
// CHECK:         [[B:%[a-z0-9_]+]] = tgraph.dynamic_slice %x, %i, [[ONE]], {{.*}} {slice_sizes = array<i64: 1, 1, 8>}
// CHECK-NOT:     tgraph.slice
func.func @parts(%x: tensor<12x2x8xf32>, %i: tensor<i32>) -> (tensor<8xf32>, tensor<1x8xf32>) {
  %c = tgraph.constant<0 : i32> : tensor<i32>
  %r = tgraph.dynamic_slice %x, %i, %c, %c {slice_sizes = array<i64: 1, 2, 8>} : (tensor<12x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x8xf32>
  %s = tgraph.reshape %r : (tensor<1x2x8xf32>) -> tensor<2x8xf32>
  %a = tgraph.slice %s {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 1, 8>, strides = array<i64: 1, 1>} : (tensor<2x8xf32>) -> tensor<1x8xf32>
  %b = tgraph.slice %s {start_indices = array<i64: 1, 0>, limit_indices = array<i64: 2, 8>, strides = array<i64: 1, 1>} : (tensor<2x8xf32>) -> tensor<1x8xf32>
  %f = tgraph.reshape %a : (tensor<1x8xf32>) -> tensor<8xf32>
  func.return %f, %b : tensor<8xf32>, tensor<1x8xf32>
}

// Rows are not sliced one by one if they are also read together, or at unknown starts.
// CHECK-LABEL: func.func @parts_and_whole
// CHECK:         tgraph.dynamic_slice {{.*}} {slice_sizes = array<i64: 1, 2, 8>}
// CHECK:         tgraph.slice
// CHECK:         tgraph.dynamic_slice {{.*}} {slice_sizes = array<i64: 1, 2, 8>}
// CHECK:         tgraph.slice
func.func @parts_and_whole(%x: tensor<12x3x8xf32>, %i: tensor<i32>) -> (tensor<1x1x8xf32>, tensor<1x2x8xf32>, tensor<1x1x8xf32>) {
  %c = tgraph.constant<0 : i32> : tensor<i32>
  %r = tgraph.dynamic_slice %x, %i, %c, %c {slice_sizes = array<i64: 1, 2, 8>} : (tensor<12x3x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x8xf32>
  %a = tgraph.slice %r {start_indices = array<i64: 0, 0, 0>, limit_indices = array<i64: 1, 1, 8>, strides = array<i64: 1, 1, 1>} : (tensor<1x2x8xf32>) -> tensor<1x1x8xf32>
  %s = tgraph.dynamic_slice %x, %i, %i, %c {slice_sizes = array<i64: 1, 2, 8>} : (tensor<12x3x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x8xf32>
  %b = tgraph.slice %s {start_indices = array<i64: 0, 1, 0>, limit_indices = array<i64: 1, 2, 8>, strides = array<i64: 1, 1, 1>} : (tensor<1x2x8xf32>) -> tensor<1x1x8xf32>
  func.return %a, %r, %b : tensor<1x1x8xf32>, tensor<1x2x8xf32>, tensor<1x1x8xf32>
}
