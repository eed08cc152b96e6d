// RUN: plan-opt %s -p 'tgraph-tile{max-slowdown=1.0 tiles=2}' | filecheck %s
// RUN: plan-opt %s -p 'tgraph-tile{max-slowdown=0.0}' | filecheck %s --check-prefix=NONE

// The middle is wide and both ends are narrow: half of it at a time needs half of the
// memory. Rows of the result need the same rows of %a, and all of %b and %c. The halves
// are computed in sequence, directly into the result.
// CHECK-LABEL: func.func @middle
// CHECK-NEXT:    [[A0:%[a-z0-9_]+]] = tgraph.slice %a {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 32, 16>
// CHECK-NEXT:    [[P0:%[a-z0-9_]+]] = tgraph.dot_general [[A0]], %b
// CHECK-SAME:        -> tensor<32x512xf32>
// CHECK-NEXT:    [[Q0:%[a-z0-9_]+]] = tgraph.exponential [[P0]] : tensor<32x512xf32>
// CHECK-NEXT:    [[R0:%[a-z0-9_]+]] = tgraph.dot_general [[Q0]], %c
// CHECK-NEXT:    [[A1:%[a-z0-9_]+]] = tgraph.slice %a {start_indices = array<i64: 32, 0>, limit_indices = array<i64: 64, 16>
// CHECK-NEXT:    [[P1:%[a-z0-9_]+]] = tgraph.dot_general [[A1]], %b
// CHECK-NEXT:    [[Q1:%[a-z0-9_]+]] = tgraph.exponential [[P1]]
// CHECK-NEXT:    [[R1:%[a-z0-9_]+]] = tgraph.dot_general [[Q1]], %c
// CHECK-NEXT:    [[R:%[a-z0-9_]+]] = tgraph.concatenate [[R0]], [[R1]] {dimension = 0 : i64, tgraph.in_place}
// CHECK-NEXT:    func.return [[R]]

// No slowdown is allowed, so nothing changes.
// NONE-LABEL: func.func @middle
// NONE-NOT:      tgraph.slice
func.func @middle(%a: tensor<64x16xf32>, %b: tensor<16x512xf32>, %c: tensor<512x16xf32>) -> tensor<64x16xf32> {
  %p = tgraph.dot_general %a, %b {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<64x16xf32>, tensor<16x512xf32>) -> tensor<64x512xf32>
  %q = tgraph.exponential %p : tensor<64x512xf32>
  %r = tgraph.dot_general %q, %c {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<64x512xf32>, tensor<512x16xf32>) -> tensor<64x16xf32>
  func.return %r : tensor<64x16xf32>
}

// All rows are summed, so no row of the middle can be freed before the sum ends; tiles
// of columns would cut the sum of %r.
// CHECK-LABEL: func.func @no_dimension_in_common
// CHECK-NOT:     tgraph.slice
// CHECK:         func.return
func.func @no_dimension_in_common(%a: tensor<64x16xf32>, %b: tensor<16x512xf32>) -> tensor<f32> {
  %p = tgraph.dot_general %a, %b {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<64x16xf32>, tensor<16x512xf32>) -> tensor<64x512xf32>
  %q = tgraph.exponential %p : tensor<64x512xf32>
  %r = tgraph.reduce %q {kind = "add", dimensions = array<i64: 0, 1>} : (tensor<64x512xf32>) -> tensor<f32>
  func.return %r : tensor<f32>
}

// The body of the group and its constants are tiled as well, and views in between are
// created for each tile. Tiles of columns read all of %a; tiles of rows would read all
// of %b, which is larger.
// CHECK-LABEL: func.func @groups
// CHECK:         tgraph.fusion({{.*}}) : (tensor<64x16xf32>, tensor<16x256xf32>, tensor<256xf32>) -> tensor<64x256xf32>
// CHECK:           tgraph.constant<0.000000e+00 : f32> : tensor<64x256xf32>
// CHECK:         tgraph.reshape {{.*}} : (tensor<64x256xf32>) -> tensor<64x4x64xf32>
// CHECK:         tgraph.reduce {{.*}} : (tensor<64x4x64xf32>) -> tensor<64x4xf32>
// CHECK:         tgraph.concatenate {{.*}} : (tensor<64x4xf32>, tensor<64x4xf32>) -> tensor<64x8xf32>
func.func @groups(%a: tensor<64x16xf32>, %b: tensor<16x512xf32>, %bias: tensor<512xf32>) -> tensor<64x8xf32> {
  %p = tgraph.fusion(%x = %a, %y = %b, %z = %bias) : (tensor<64x16xf32>, tensor<16x512xf32>, tensor<512xf32>) -> tensor<64x512xf32> {
    %0 = tgraph.dot_general %x, %y {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<64x16xf32>, tensor<16x512xf32>) -> tensor<64x512xf32>
    %1 = tgraph.broadcast_in_dim %z {broadcast_dimensions = array<i64: 1>} : (tensor<512xf32>) -> tensor<64x512xf32>
    %2 = tgraph.add %0, %1 : tensor<64x512xf32>
    %3 = tgraph.constant<0.0 : f32> : tensor<64x512xf32>
    %4 = tgraph.maximum %2, %3 : tensor<64x512xf32>
    tgraph.yield %4 : tensor<64x512xf32>
  }
  %q = tgraph.reshape %p : (tensor<64x512xf32>) -> tensor<64x8x64xf32>
  %r = tgraph.reduce %q {kind = "add", dimensions = array<i64: 2>} : (tensor<64x8x64xf32>) -> tensor<64x8xf32>
  func.return %r : tensor<64x8xf32>
}
