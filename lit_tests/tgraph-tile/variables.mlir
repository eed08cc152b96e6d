// RUN: plan-opt %s -p 'tgraph-tile{max-slowdown=1.0 tiles=2 reuse-outputs=false}' | filecheck %s
// RUN: plan-opt %s -p 'tgraph-tile{max-slowdown=1.0 tiles=2 reuse-outputs=false},tgraph-bufferize' | filecheck %s --check-prefix=BUF

// A gradient that updates two variables: half of it at a time, which immediately
// updates rows of both. The second half reads the rows that are not yet written.
// CHECK-LABEL: func.func @update
// CHECK:         [[G0:%[a-z0-9_]+]] = tgraph.dot_general {{.*}} -> tensor<32x64xf32, "cpu:0">
// CHECK-NEXT:    [[R0:%[a-z0-9_]+]] = tgraph.slice [[M:%[a-z0-9_]+]] {start_indices = array<i64: 0, 0>
// CHECK-NEXT:    [[N0:%[a-z0-9_]+]] = tgraph.add [[R0]], [[G0]]
// CHECK:         [[U0:%[a-z0-9_]+]] = tgraph.dynamic_update_slice [[M]], [[N0]], {{.*}} outs(%m)
// CHECK:         tgraph.dynamic_update_slice {{.*}} outs(%v)
// CHECK:         [[G1:%[a-z0-9_]+]] = tgraph.dot_general {{.*}} -> tensor<32x64xf32, "cpu:0">
// CHECK-NEXT:    [[R1:%[a-z0-9_]+]] = tgraph.slice [[U0]] {start_indices = array<i64: 32, 0>
// CHECK-NEXT:    [[N1:%[a-z0-9_]+]] = tgraph.add [[R1]], [[G1]]
// CHECK:         tgraph.dynamic_update_slice [[U0]], [[N1]], {{.*}} outs(%m)

// Nothing is copied: the sums are computed in the variables.
// BUF-LABEL: func.func @update
// BUF:         memref.alloc() : memref<32x64xf32, "cpu:0">
// BUF-NOT:     memref.copy
// BUF-NOT:     dynamic_update_slice
// BUF:         return
func.func @update(%m: !tgraph.variable<tensor<64x64xf32, "cpu:0">>, %v: !tgraph.variable<tensor<64x64xf32, "cpu:0">>, %x: tensor<8x64xf32, "cpu:0">) {
  %0 = tgraph.read %m : tensor<64x64xf32, "cpu:0">
  %1 = tgraph.read %v : tensor<64x64xf32, "cpu:0">
  %g = tgraph.dot_general %x, %x {lhs_contracting_dimensions = array<i64: 0>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<8x64xf32, "cpu:0">, tensor<8x64xf32, "cpu:0">) -> tensor<64x64xf32, "cpu:0">
  %2 = tgraph.add %0, %g outs(%m) : tensor<64x64xf32, "cpu:0">
  %3 = tgraph.multiply %1, %g outs(%v) : tensor<64x64xf32, "cpu:0">
  func.return
}
