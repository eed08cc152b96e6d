// RUN: plan-opt %s -p 'tgraph-tile{tile-bytes=65536}' | filecheck %s

// Padded convolutions, in tiles of rows. The first and the last tile, which have the
// padding, are before and after the loop.
// CHECK-LABEL: func.func @windows

// The first tile has the additional rows that later convolutions need: two rows of the
// last result need five of the second's, six of the first's and seven of %x.
// CHECK:         tgraph.slice %x {start_indices = array<i64: 0, 0, 0, 0>, {{.*}} -> tensor<1x7x64x16xf32>
// CHECK:         padding_low = array<i64: 1, 1>, padding_high = array<i64: 0, 1>, {{.*}} -> tensor<1x6x64x16xf32>
// CHECK:         padding_low = array<i64: 1, 1>, padding_high = array<i64: 0, 1>, {{.*}} -> tensor<1x5x64x16xf32>
// CHECK:         padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 1>, {{.*}} -> tensor<1x2x32x16xf32>

// An iteration reads the rows that the previous one saved, and saves its own last rows.
// CHECK:         tgraph.while {{.*}} {tgraph.tiles = 16 : i32}
// CHECK:           tgraph.constant<14 : i32>
// CHECK:           tgraph.dynamic_slice {{.*}} -> tensor<1x6x64x16xf32>
// CHECK-NEXT:      {{.*}} padding_low = array<i64: 0, 1>, padding_high = array<i64: 0, 1>, {{.*}} -> tensor<1x4x64x16xf32>
// CHECK:           [[KEPT:%[a-z0-9_]+]] = tgraph.read [[LINE:%[a-z0-9_]+]] : tensor<1x2x64x16xf32>
// CHECK:           [[ROWS:%[a-z0-9_]+]] = tgraph.concatenate [[KEPT]], {{.*}} {dimension = 1 : i64, tgraph.in_place} : {{.*}} -> tensor<1x6x64x16xf32>
// CHECK:           [[LAST:%[a-z0-9_]+]] = tgraph.slice [[ROWS]] {start_indices = array<i64: 0, 4, 0, 0>
// CHECK:           tgraph.assign [[LINE]], [[LAST]] : tensor<1x2x64x16xf32>
// CHECK:           tgraph.convolution [[ROWS]], {{.*}} padding_low = array<i64: 0, 1>, padding_high = array<i64: 0, 1>, {{.*}} -> tensor<1x4x64x16xf32>
// CHECK:           tgraph.dynamic_update_slice {{.*}} outs(

// The last tile has the remaining rows.
// CHECK:         tgraph.slice %x {start_indices = array<i64: 0, 61, 0, 0>, {{.*}} -> tensor<1x3x64x16xf32>
// CHECK:         padding_low = array<i64: 0, 1>, padding_high = array<i64: 1, 1>, {{.*}} -> tensor<1x2x64x16xf32>
// CHECK:         padding_low = array<i64: 0, 1>, padding_high = array<i64: 1, 1>, {{.*}} -> tensor<1x3x64x16xf32>
// CHECK:         padding_low = array<i64: 0, 0>, padding_high = array<i64: 1, 1>, {{.*}} -> tensor<1x2x32x16xf32>
// CHECK:         tgraph.dynamic_update_slice
// CHECK-NEXT:    return
func.func @windows(%x: tensor<1x64x64x16xf32>, %w: tensor<3x3x16x16xf32>) -> tensor<1x32x32x16xf32> {
  %0 = tgraph.convolution %x, %w {dim_labels = "b01f_01io->b01f", window_strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x64x64x16xf32>, tensor<3x3x16x16xf32>) -> tensor<1x64x64x16xf32>
  %1 = tgraph.tanh %0 : tensor<1x64x64x16xf32>
  %2 = tgraph.convolution %1, %w {dim_labels = "b01f_01io->b01f", window_strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x64x64x16xf32>, tensor<3x3x16x16xf32>) -> tensor<1x64x64x16xf32>
  %3 = tgraph.tanh %2 : tensor<1x64x64x16xf32>
  %4 = tgraph.convolution %3, %w {dim_labels = "b01f_01io->b01f", window_strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x64x64x16xf32>, tensor<3x3x16x16xf32>) -> tensor<1x32x32x16xf32>
  func.return %4 : tensor<1x32x32x16xf32>
}

// A pad by any number is part of its windows if only windows read it. Each tile pads
// its rows at the sides; the first and the last tile pad the top and the bottom, too.
// CHECK-LABEL: func.func @padded
// CHECK-NOT:     tensor<1x66x66x16xf32>

// CHECK:         tgraph.slice %x {start_indices = array<i64: 0, 0, 0, 0>, {{.*}} -> tensor<1x3x64x16xf32>
// CHECK-NEXT:    [[TANH:%[a-z0-9_]+]] = tgraph.tanh
// CHECK:         tgraph.pad [[TANH]], {{.*}} {low = array<i64: 0, 1, 1, 0>, high = array<i64: 0, 0, 1, 0>, {{.*}} -> tensor<1x4x66x16xf32>

// CHECK:         tgraph.while
// CHECK-NOT:     tensor<1x66x66x16xf32>
// CHECK:           tgraph.pad {{.*}} {low = array<i64: 0, 0, 1, 0>, high = array<i64: 0, 0, 1, 0>, {{.*}} -> tensor<1x4x66x16xf32>
// CHECK:           tgraph.convolution {{.*}} -> tensor<1x2x64x16xf32>

// CHECK:         tgraph.pad {{.*}} {low = array<i64: 0, 0, 1, 0>, high = array<i64: 0, 1, 1, 0>, {{.*}} -> tensor<1x4x66x16xf32>
// CHECK-NOT:     tensor<1x66x66x16xf32>
// CHECK:         return
func.func @padded(%x: tensor<1x64x64x16xf32>, %w: tensor<3x3x16x16xf32>) -> tensor<1x64x16xf32> {
  %0 = tgraph.tanh %x : tensor<1x64x64x16xf32>
  %number = tgraph.constant<3.0 : f32> : tensor<f32>
  %1 = tgraph.pad %0, %number {low = array<i64: 0, 1, 1, 0>, high = array<i64: 0, 1, 1, 0>, interior = array<i64: 0, 0, 0, 0>} : (tensor<1x64x64x16xf32>, tensor<f32>) -> tensor<1x66x66x16xf32>
  %2 = tgraph.convolution %1, %w {dim_labels = "b01f_01io->b01f", window_strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x66x66x16xf32>, tensor<3x3x16x16xf32>) -> tensor<1x64x64x16xf32>
  %3 = tgraph.reduce %2 {kind = "maximum", dimensions = array<i64: 2>} : (tensor<1x64x64x16xf32>) -> tensor<1x64x16xf32>
  func.return %3 : tensor<1x64x16xf32>
}
