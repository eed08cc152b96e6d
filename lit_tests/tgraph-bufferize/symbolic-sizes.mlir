// RUN: plan-opt %s -p tgraph-bufferize | filecheck %s

// All sizes are first computed from those of arguments, each once: n from 2*n + 1.
// Memrefs of arguments and results keep the expressions of their `?`.
// CHECK:      func.func @main(%x: memref<?x8xf32, "cpu:0"> {tgraph.dims = #tgraph.dims<2*n + 1>}, %0: memref<8x?xf32, "cpu:0"> {tgraph.result = 0 : i32, tgraph.dims = #tgraph.dims<n>}) {
// CHECK:      %[[SIZE:.*]] = memref.dim %x, %c0 : memref<?x8xf32, "cpu:0">
// CHECK:      %[[REST:.*]] = arith.addi %[[SIZE]], %{{.*}} : index
// CHECK:      %[[N:.*]] = arith.floordivsi %[[REST]], %{{.*}} : index
// CHECK:      %[[ALLOC:.*]] = memref.alloc(%[[N]]) : memref<?x8xf32, "cpu:0">
// A view with another shape is a view even if its memref type is the same.
// CHECK:      memref.reinterpret_cast %[[ALLOC]] to offset: [0], sizes: [8, %[[N]]], strides: [1, 8] : memref<?x8xf32, "cpu:0"> to memref<8x?xf32, strided<[1, 8]>, "cpu:0">
func.func @main(%x: tensor<?x8xf32, #tgraph.dims<2*n + 1, "cpu:0">>) -> tensor<8x?xf32, #tgraph.dims<n, "cpu:0">> {
  %0 = tgraph.slice %x {start_indices = array<i64: 1, 0>, limit_indices = array<i64: -9223372036854775808, 8>, strides = array<i64: 2, 1>, tgraph.dims = #tgraph.dims<2*n + 1>} : (tensor<?x8xf32, #tgraph.dims<2*n + 1, "cpu:0">>) -> tensor<?x8xf32, #tgraph.dims<n, "cpu:0">>
  %1 = tgraph.exponential %0 : tensor<?x8xf32, #tgraph.dims<n, "cpu:0">>
  %2 = tgraph.transpose %1 {permutation = array<i64: 1, 0>} : (tensor<?x8xf32, #tgraph.dims<n, "cpu:0">>) -> tensor<8x?xf32, #tgraph.dims<n, "cpu:0">>
  %3 = tgraph.negate %2 : tensor<8x?xf32, #tgraph.dims<n, "cpu:0">>
  func.return %3 : tensor<8x?xf32, #tgraph.dims<n, "cpu:0">>
}
