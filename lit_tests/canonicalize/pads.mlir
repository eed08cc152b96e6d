// RUN: plan-opt %s -p canonicalize | filecheck %s

// Operands without elements, as in a roll by 0, add nothing.
// CHECK-LABEL: func.func @empty_operands
// CHECK-NEXT:    %0 = tgraph.concatenate %x, %x {dimension = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT:    func.return %x, %0, %none : tensor<4x4xf32>, tensor<8x4xf32>, tensor<0x4xf32>
func.func @empty_operands(%x: tensor<4x4xf32>, %none: tensor<0x4xf32>) -> (tensor<4x4xf32>, tensor<8x4xf32>, tensor<0x4xf32>) {
  %0 = tgraph.concatenate %x, %none {dimension = 0 : i64} : (tensor<4x4xf32>, tensor<0x4xf32>) -> tensor<4x4xf32>
  %1 = tgraph.concatenate %none, %x, %none, %x {dimension = 0 : i64} : (tensor<0x4xf32>, tensor<4x4xf32>, tensor<0x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %2 = tgraph.concatenate %none, %none {dimension = 0 : i64} : (tensor<0x4xf32>, tensor<0x4xf32>) -> tensor<0x4xf32>
  func.return %0, %1, %2 : tensor<4x4xf32>, tensor<8x4xf32>, tensor<0x4xf32>
}

// CHECK-LABEL: func.func @only_padding
// CHECK-NEXT:    %0 = tgraph.broadcast_in_dim %v {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<2x4xf32>
// CHECK-NEXT:    func.return %0
func.func @only_padding(%none: tensor<0x4xf32>, %v: tensor<f32>) -> tensor<2x4xf32> {
  %0 = tgraph.pad %none, %v {low = array<i64: 2, 0>, high = array<i64: 0, 0>, interior = array<i64: 1, 0>} : (tensor<0x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  func.return %0 : tensor<2x4xf32>
}

// A pad that removes elements is a slice, which needs no memory.
// CHECK-LABEL: func.func @negative
// CHECK-NEXT:    %0 = tgraph.slice %x {start_indices = array<i64: 0, 1>, limit_indices = array<i64: 3, 4>, strides = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<3x3xf32>
// CHECK-NEXT:    %1 = tgraph.pad %0, %v {low = array<i64: 0, 0>, high = array<i64: 0, 2>, interior = array<i64: 0, 0>} : (tensor<3x3xf32>, tensor<f32>) -> tensor<3x5xf32>
// CHECK-NEXT:    func.return %0, %1
func.func @negative(%x: tensor<4x4xf32>, %v: tensor<f32>) -> (tensor<3x3xf32>, tensor<3x5xf32>) {
  %0 = tgraph.pad %x, %v {low = array<i64: 0, -1>, high = array<i64: -1, 0>, interior = array<i64: 0, 0>} : (tensor<4x4xf32>, tensor<f32>) -> tensor<3x3xf32>
  %1 = tgraph.pad %0, %v {low = array<i64: 0, 0>, high = array<i64: 0, 2>, interior = array<i64: 0, 0>} : (tensor<3x3xf32>, tensor<f32>) -> tensor<3x5xf32>
  func.return %0, %1 : tensor<3x3xf32>, tensor<3x5xf32>
}

// A slice would not remove elements of the interior padding, or of other padding.
// CHECK-LABEL: func.func @negative_with_interior
// CHECK-NEXT:    tgraph.pad
// CHECK-NEXT:    tgraph.pad
// CHECK-NEXT:    func.return
func.func @negative_with_interior(%x: tensor<4xf32>, %v: tensor<f32>) -> (tensor<6xf32>, tensor<1xf32>) {
  %0 = tgraph.pad %x, %v {low = array<i64: -1>, high = array<i64: 0>, interior = array<i64: 1>} : (tensor<4xf32>, tensor<f32>) -> tensor<6xf32>
  %1 = tgraph.pad %x, %v {low = array<i64: -5>, high = array<i64: 2>, interior = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<1xf32>
  func.return %0, %1 : tensor<6xf32>, tensor<1xf32>
}

// CHECK-LABEL: func.func @slices
// CHECK-NEXT:    %0 = tgraph.broadcast_in_dim %v {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<2x4xf32>
// CHECK-NEXT:    %1 = tgraph.pad %x, %v {low = array<i64: 1, 0>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<4x4xf32>, tensor<f32>) -> tensor<5x4xf32>
// CHECK-NEXT:    func.return %0, %x, %1
func.func @slices(%x: tensor<4x4xf32>, %v: tensor<f32>) -> (tensor<2x4xf32>, tensor<4x4xf32>, tensor<5x4xf32>) {
  %0 = tgraph.pad %x, %v {low = array<i64: 2, 0>, high = array<i64: 1, 0>, interior = array<i64: 0, 0>} : (tensor<4x4xf32>, tensor<f32>) -> tensor<7x4xf32>
  %1 = tgraph.slice %0 {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 2, 4>, strides = array<i64: 1, 1>} : (tensor<7x4xf32>) -> tensor<2x4xf32>
  %2 = tgraph.slice %0 {start_indices = array<i64: 2, 0>, limit_indices = array<i64: 6, 4>, strides = array<i64: 1, 1>} : (tensor<7x4xf32>) -> tensor<4x4xf32>
  %3 = tgraph.slice %0 {start_indices = array<i64: 1, 0>, limit_indices = array<i64: 6, 4>, strides = array<i64: 1, 1>} : (tensor<7x4xf32>) -> tensor<5x4xf32>
  func.return %1, %2, %3 : tensor<2x4xf32>, tensor<4x4xf32>, tensor<5x4xf32>
}

// The padded value is stored anyway.
// CHECK-LABEL: func.func @slice_and_pad
// CHECK-NEXT:    tgraph.pad
// CHECK-NEXT:    tgraph.slice
func.func @slice_and_pad(%x: tensor<4xf32>, %v: tensor<f32>) -> (tensor<5xf32>, tensor<3xf32>) {
  %0 = tgraph.pad %x, %v {low = array<i64: 1>, high = array<i64: 0>, interior = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<5xf32>
  %1 = tgraph.slice %0 {start_indices = array<i64: 0>, limit_indices = array<i64: 3>, strides = array<i64: 1>} : (tensor<5xf32>) -> tensor<3xf32>
  func.return %0, %1 : tensor<5xf32>, tensor<3xf32>
}

// Scalars have no dimensions to pad. The attributes keep the operations.
// CHECK-LABEL: func.func @scalars
// CHECK-NEXT:    %0 = tgraph.slice %x {{.*}}tgraph.device = "cpu:0"
// CHECK-NEXT:    %1 = tgraph.pad %0, %v {{.*}}tgraph.device = "cpu:0"
// CHECK-NEXT:    func.return %1
func.func @scalars(%x: tensor<f32>, %v: tensor<f32>) -> tensor<f32> {
  %0 = tgraph.pad %x, %v {low = array<i64>, high = array<i64>, interior = array<i64>, tgraph.device = "cpu:0"} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %1 = tgraph.slice %0 {start_indices = array<i64>, limit_indices = array<i64>, strides = array<i64>, tgraph.device = "cpu:0"} : tensor<f32>
  func.return %1 : tensor<f32>
}
