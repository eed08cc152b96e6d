// RUN: plan-opt %s -p tgraph-fuse | filecheck %s
// RUN: plan-opt %s -p tgraph-fuse -o %t && plan-opt %t -p tgraph-fuse | diff %t -

// The weights of a layer are read in place in the stacked weights of all layers.
// CHECK-LABEL: func.func @layer
// CHECK-NOT:     tgraph.dynamic_slice
// CHECK:         tgraph.fusion
// CHECK:           [[SLICE:%.+]] = tgraph.dynamic_slice {{.*}} -> tensor<1x64x64xf32>
// CHECK-NEXT:      [[WEIGHTS:%.+]] = tgraph.reshape [[SLICE]]
// CHECK-NEXT:      tgraph.dot_general {{%.+}}, [[WEIGHTS]]
// CHECK-NEXT:      tgraph.tanh
func.func @layer(%x: tensor<8x64xf32>, %w: tensor<12x64x64xf32>, %i: tensor<i32>) -> tensor<8x64xf32> {
  %0 = tgraph.constant<0 : i32> : tensor<i32>
  %s = tgraph.dynamic_slice %w, %i, %0, %0 {slice_sizes = array<i64: 1, 64, 64>} : (tensor<12x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x64xf32>
  %r = tgraph.reshape %s : (tensor<1x64x64xf32>) -> tensor<64x64xf32>
  %d = tgraph.dot_general %x, %r {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %t = tgraph.tanh %d : tensor<8x64xf32>
  func.return %t : tensor<8x64xf32>
}

// A small slice is copied.
// CHECK-LABEL: func.func @small
// CHECK:         tgraph.dynamic_slice
// CHECK-NOT:     tgraph.fusion
func.func @small(%x: tensor<64xf32>, %b: tensor<12x64xf32>, %i: tensor<i32>) -> tensor<64xf32> {
  %0 = tgraph.constant<0 : i32> : tensor<i32>
  %s = tgraph.dynamic_slice %b, %i, %0 {slice_sizes = array<i64: 1, 64>} : (tensor<12x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1x64xf32>
  %r = tgraph.reshape %s : (tensor<1x64xf32>) -> tensor<64xf32>
  %a = tgraph.add %x, %r : tensor<64xf32>
  func.return %a : tensor<64xf32>
}

// A slice of a value that is then updated in place is copied.
// CHECK-LABEL: func.func @updated
// CHECK:         tgraph.dynamic_slice
// CHECK-NOT:     tgraph.fusion
// CHECK:         tgraph.dynamic_update_slice
func.func @updated(%x: tensor<12x1024xf32>, %i: tensor<i32>) -> tensor<12x1024xf32> {
  %0 = tgraph.constant<0 : i32> : tensor<i32>
  %e = tgraph.exponential %x : tensor<12x1024xf32>
  %s = tgraph.dynamic_slice %e, %i, %0 {slice_sizes = array<i64: 1, 1024>} : (tensor<12x1024xf32>, tensor<i32>, tensor<i32>) -> tensor<1x1024xf32>
  %t = tgraph.tanh %s : tensor<1x1024xf32>
  %u = tgraph.dynamic_update_slice %e, %t, %i, %0 : (tensor<12x1024xf32>, tensor<1x1024xf32>, tensor<i32>, tensor<i32>) -> tensor<12x1024xf32>
  func.return %u : tensor<12x1024xf32>
}

// A slice on another device is copied, and so is a slice of columns.
// CHECK-LABEL: func.func @elsewhere
// CHECK:         tgraph.dynamic_slice
// CHECK:         tgraph.dynamic_slice
// CHECK-NOT:     tgraph.fusion
func.func @elsewhere(%x: tensor<1024xf32>, %w: tensor<12x1024xf32>, %v: tensor<1024x12xf32>, %i: tensor<i32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %0 = tgraph.constant<0 : i32> : tensor<i32>
  %s = tgraph.dynamic_slice %w, %i, %0 {slice_sizes = array<i64: 1, 1024>, tgraph.device = "gpu:1"} : (tensor<12x1024xf32>, tensor<i32>, tensor<i32>) -> tensor<1x1024xf32>
  %r = tgraph.reshape %s : (tensor<1x1024xf32>) -> tensor<1024xf32>
  %a = tgraph.add %x, %r {tgraph.device = "gpu:0"} : tensor<1024xf32>
  %t = tgraph.dynamic_slice %v, %0, %i {slice_sizes = array<i64: 1024, 1>} : (tensor<1024x12xf32>, tensor<i32>, tensor<i32>) -> tensor<1024x1xf32>
  %u = tgraph.reshape %t : (tensor<1024x1xf32>) -> tensor<1024xf32>
  %b = tgraph.multiply %x, %u : tensor<1024xf32>
  func.return %a, %b : tensor<1024xf32>, tensor<1024xf32>
}
