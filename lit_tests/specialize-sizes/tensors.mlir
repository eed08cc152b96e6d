// RUN: plan-opt %s -p 'specialize-sizes{sizes="n=4,m=3"}' | filecheck %s

// At level 1, names of sizes occur in types, as scalars, and in arrays of sizes.
// CHECK:      func.func @main(%x: tensor<4x7xf32>, %v: !tgraph.variable<tensor<12xf32, "cpu:0">>) -> (tensor<4xf32>, tensor<i32>) {
// CHECK-NEXT:   %0 = tgraph.slice %x {start_indices = array<i64: 0, 6>, limit_indices = array<i64: 4, 7>, strides = array<i64: 1, 1>} : (tensor<4x7xf32>) -> tensor<4x1xf32>
// CHECK-NEXT:   %1 = tgraph.reshape %0 : (tensor<4x1xf32>) -> tensor<4xf32>
// CHECK-NEXT:   %2 = tgraph.constant<7 : i32> : tensor<i32>
func.func @main(%x: tensor<?x?xf32, #tgraph.dims<n, 2*m + 1>>, %v: !tgraph.variable<tensor<?xf32, #tgraph.dims<n*m, "cpu:0">>>) -> (tensor<?xf32, #tgraph.dims<n>>, tensor<i32>) {
  %0 = tgraph.slice %x {start_indices = array<i64: 0, -9223372036854775808>, limit_indices = array<i64: -9223372036854775808, -9223372036854775808>, strides = array<i64: 1, 1>, tgraph.dims = #tgraph.dims<2*m, n, 2*m + 1>} : (tensor<?x?xf32, #tgraph.dims<n, 2*m + 1>>) -> tensor<?x1xf32, #tgraph.dims<n>>
  %1 = tgraph.reshape %0 : (tensor<?x1xf32, #tgraph.dims<n>>) -> tensor<?xf32, #tgraph.dims<n>>
  %2 = tgraph.size {value = #tgraph.dims<2*m + 1>} : tensor<i32>
  func.return %1, %2 : tensor<?xf32, #tgraph.dims<n>>, tensor<i32>
}
