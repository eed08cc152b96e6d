// RUN: plan-opt %s -p tgraph-fuse | filecheck %s

// The product is stored in 8 bits: its group does not include the conversion to 32
// bits, which only the sum reads.

// CHECK: tgraph.fusion
// CHECK:   tgraph.dot_general
// CHECK:   tgraph.yield {{.*}} : tensor<64x32xi8>
// CHECK: tgraph.fusion
// CHECK:   tgraph.convert {{.*}} : (tensor<64x32xi8>) -> tensor<64x32xi32>
// CHECK:   tgraph.reduce
func.func @main(%x: tensor<64x8xi8>, %w: tensor<8x32xi8>) -> tensor<32xi32> {
  %sums = tgraph.dot_general %x, %w {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>}
    : (tensor<64x8xi8>, tensor<8x32xi8>) -> tensor<64x32xi32>
  %least = tgraph.constant<-128 : i32> : tensor<64x32xi32>
  %most = tgraph.constant<127 : i32> : tensor<64x32xi32>
  %0 = tgraph.clamp %least, %sums, %most : tensor<64x32xi32>
  %narrow = tgraph.convert %0 : (tensor<64x32xi32>) -> tensor<64x32xi8>
  %wide = tgraph.convert %narrow : (tensor<64x32xi8>) -> tensor<64x32xi32>
  %sum = tgraph.reduce %wide {kind = "add", dimensions = array<i64: 0>}
    : (tensor<64x32xi32>) -> tensor<32xi32>
  func.return %sum : tensor<32xi32>
}
