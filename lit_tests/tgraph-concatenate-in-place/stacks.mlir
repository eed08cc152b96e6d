// RUN: plan-opt %s -p 'tgraph-place-devices{default="cpu:0"},tgraph-concatenate-in-place,tgraph-bufferize' 2>&1 | filecheck %s

!x = tensor<8x64xf32>

// CHECK: remark: concatenations whose operands are computed in place: 1; the peak goes from 4096 to 0 bytes

// Stacked values are computed through the reshape, or the broadcast that only reshapes:
// into strided elements of the result.
// CHECK-LABEL: func.func @stack
// CHECK-NOT:     memref.alloc
// CHECK:         %[[SINES:.*]] = memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [8, 64], strides: [128, 2]
// CHECK-NEXT:    tgraph.sine %x outs(%[[SINES]])
// CHECK:         %[[COSINES:.*]] = memref.reinterpret_cast %{{.*}} to offset: [1], sizes: [8, 64], strides: [128, 2]
// CHECK-NEXT:    tgraph.cosine %x outs(%[[COSINES]])
// CHECK-NOT:     tgraph
// CHECK:         func.return
func.func @stack(%x: !x) -> tensor<8x64x2xf32> {
  %0 = tgraph.sine %x : !x
  %1 = tgraph.cosine %x : !x
  %2 = tgraph.reshape %0 : (!x) -> tensor<8x64x1xf32>
  %3 = tgraph.broadcast_in_dim %1 {broadcast_dimensions = array<i64: 0, 1>} : (!x) -> tensor<8x64x1xf32>
  %4 = tgraph.concatenate %2, %3 {dimension = 2 : i64} : (tensor<8x64x1xf32>, tensor<8x64x1xf32>) -> tensor<8x64x2xf32>
  func.return %4 : tensor<8x64x2xf32>
}
