// RUN: plan-opt %s -p canonicalize | filecheck %s

// At constants it is a slice, which is a view; starts are clamped.
// CHECK-LABEL: @known
// CHECK-NEXT:    tgraph.slice %x {start_indices = array<i64: 3>, limit_indices = array<i64: 5>, strides = array<i64: 1>}
func.func @known(%x: tensor<5xf32>) -> tensor<2xf32> {
  %c = tgraph.constant<9 : i32> : tensor<i32>
  %0 = tgraph.dynamic_slice %x, %c {slice_sizes = array<i64: 2>} : (tensor<5xf32>, tensor<i32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
