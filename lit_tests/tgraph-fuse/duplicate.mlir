// RUN: plan-opt %s -p tgraph-fuse | filecheck %s
// RUN: plan-opt %s -p 'tgraph-fuse{duplicate=false}' | filecheck %s --check-prefix KEPT

// Computing the centered values twice is cheaper than storing them for both readers.
func.func @normalized(%x: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %total = tgraph.reduce %x {kind = "add", dimensions = array<i64: 0>} : (tensor<64x32xf32>) -> tensor<32xf32>
  %mean = tgraph.broadcast_in_dim %total {broadcast_dimensions = array<i64: 1>} : (tensor<32xf32>) -> tensor<64x32xf32>
  %centered = tgraph.subtract %x, %mean : tensor<64x32xf32>
  %squares = tgraph.multiply %centered, %centered : tensor<64x32xf32>
  %power = tgraph.reduce %squares {kind = "add", dimensions = array<i64: 0>} : (tensor<64x32xf32>) -> tensor<32xf32>
  %scale = tgraph.broadcast_in_dim %power {broadcast_dimensions = array<i64: 1>} : (tensor<32xf32>) -> tensor<64x32xf32>
  %y = tgraph.divide %centered, %scale : tensor<64x32xf32>
  func.return %y : tensor<64x32xf32>
}

// CHECK-LABEL: @normalized
// CHECK: tgraph.reduce
// CHECK: tgraph.fusion(
// CHECK: tgraph.subtract
// CHECK: tgraph.reduce
// CHECK: tgraph.fusion(
// CHECK: tgraph.subtract
// CHECK: tgraph.divide
// KEPT-LABEL: @normalized
// KEPT: tgraph.subtract
// KEPT-NOT: tgraph.subtract

// A mask depends on indices only, so each of its readers computes it.
func.func @mask(%x: tensor<4x64xf32>, %y: tensor<2x4x64xf32>) -> (tensor<4xf32>, tensor<2x4xf32>) {
  %zero = tgraph.constant<0.0 : f32> : tensor<4x64xf32>
  %row = tgraph.iota {dimension = 0} : tensor<4x64xi32>
  %column = tgraph.iota {dimension = 1} : tensor<4x64xi32>
  %mask = tgraph.compare %row, %column {direction = "GE"} : (tensor<4x64xi32>, tensor<4x64xi32>) -> tensor<4x64xi1>
  %a = tgraph.select %mask, %x, %zero : (tensor<4x64xi1>, tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  %sums = tgraph.reduce %a {kind = "add", dimensions = array<i64: 1>} : (tensor<4x64xf32>) -> tensor<4xf32>
  %masks = tgraph.broadcast_in_dim %mask {broadcast_dimensions = array<i64: 1, 2>} : (tensor<4x64xi1>) -> tensor<2x4x64xi1>
  %zeros = tgraph.constant<0.0 : f32> : tensor<2x4x64xf32>
  %b = tgraph.select %masks, %y, %zeros : (tensor<2x4x64xi1>, tensor<2x4x64xf32>, tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
  %others = tgraph.reduce %b {kind = "add", dimensions = array<i64: 2>} : (tensor<2x4x64xf32>) -> tensor<2x4xf32>
  func.return %sums, %others : tensor<4xf32>, tensor<2x4xf32>
}

// CHECK-LABEL: @mask
// CHECK: tgraph.fusion(
// CHECK: tgraph.compare
// CHECK: tgraph.select
// CHECK: tgraph.reduce
// CHECK: tgraph.fusion(
// CHECK: tgraph.iota {dimension = 1
// CHECK: tgraph.iota {dimension = 2
// CHECK: tgraph.compare
// CHECK: tgraph.select
// CHECK: tgraph.reduce
// KEPT-LABEL: @mask
// KEPT: tgraph.compare
// KEPT: tgraph.fusion(
// KEPT-NOT: tgraph.compare
