// RUN: plan-opt %s -p 'tgraph-tile{tile-bytes=65536}' | filecheck %s
// RUN: plan-opt %s -p 'tgraph-tile{tile-bytes=0 max-slowdown=1.0}' | filecheck %s --check-prefix=SLICES

// A chain that ends in a sum: its rows are otherwise independent. A loop computes some
// rows at a time and accumulates their sum.
// CHECK-LABEL: func.func @sum
// CHECK:         [[X:%[a-z0-9_]+]] = tgraph.reshape %x : (tensor<4096x64xf32>) -> tensor<[[#TILES:]]x[[#ROWS:]]x64xf32>
// CHECK:         tgraph.while {{.*}}, [[X]], %w {tgraph.tiles = [[#TILES]] : i32}
// CHECK:           [[I:%[a-z0-9_]+]] = tgraph.read {{.*}} : tensor<i32>
// CHECK:           tgraph.dynamic_slice {{.*}} -> tensor<1x[[#ROWS]]x64xf32>
// CHECK:             tgraph.dot_general {{.*}} tensor<[[#ROWS]]x64xf32>
// CHECK:             tgraph.tanh {{.*}} : tensor<[[#ROWS]]x64xf32>
// CHECK:             tgraph.reduce {{.*}} -> tensor<f32>
// CHECK-NEXT:        tgraph.add {{.*}} : tensor<f32>
// CHECK-NOT:     tensor<4096x64xf32>
// CHECK:         return

// Slices can't be used across the sum.
// SLICES-LABEL: func.func @sum
// SLICES-NOT:     tgraph.while
// SLICES:         return
func.func @sum(%x: tensor<4096x64xf32>, %w: tensor<64x64xf32>) -> tensor<f32> {
  %0 = tgraph.dot_general %x, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<4096x64xf32>, tensor<64x64xf32>) -> tensor<4096x64xf32>
  %1 = tgraph.tanh %0 : tensor<4096x64xf32>
  %2 = tgraph.dot_general %1, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<4096x64xf32>, tensor<64x64xf32>) -> tensor<4096x64xf32>
  %3 = tgraph.tanh %2 : tensor<4096x64xf32>
  %4 = tgraph.reduce %3 {kind = "add", dimensions = array<i64: 0, 1>} : (tensor<4096x64xf32>) -> tensor<f32>
  func.return %4 : tensor<f32>
}

// Sums of bf16 accumulate in f32, and are rounded once.
// CHECK-LABEL: func.func @narrow
// CHECK:         tgraph.while {{.*}} -> (tensor<i32>, tensor<64xf32>)
// CHECK:         tgraph.convert {{.*}} : (tensor<64xf32>) -> tensor<64xbf16>
// CHECK:         return
func.func @narrow(%x: tensor<4096x64xbf16>, %w: tensor<64x64xbf16>) -> tensor<64xbf16> {
  %0 = tgraph.dot_general %x, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<4096x64xbf16>, tensor<64x64xbf16>) -> tensor<4096x64xbf16>
  %1 = tgraph.tanh %0 : tensor<4096x64xbf16>
  %2 = tgraph.dot_general %1, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<4096x64xbf16>, tensor<64x64xbf16>) -> tensor<4096x64xbf16>
  %4 = tgraph.reduce %2 {kind = "add", dimensions = array<i64: 0>} : (tensor<4096x64xbf16>) -> tensor<64xbf16>
  func.return %4 : tensor<64xbf16>
}
