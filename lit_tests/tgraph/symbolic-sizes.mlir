// RUN: plan-opt %s | plan-opt | filecheck %s

// Sizes are polynomials in normal form, so equal sizes print alike. `?` is an unknown
// size. The device comes last.
// CHECK:      func.func @f(%a: tensor<?x4xf32, #tgraph.dims<2*n + 1>>, %b: tensor<?x?xf32, #tgraph.dims<m*n - 3, ?>>, %c: tensor<?xf32, #tgraph.dims<n, "cpu:0">>, %d: tensor<?x?xf32, #tgraph.dims<64*floordiv(n + 63, 64), max(3, n - 8)>>) {
func.func @f(%a: tensor<?x4xf32, #tgraph.dims<1 + n + n>>,
             %b: tensor<?x?xf32, #tgraph.dims<n*(m + 1) - n - 3, ?>>,
             %c: tensor<?xf32, #tgraph.dims<n, "cpu:0">>,
             %d: tensor<?x?xf32, #tgraph.dims<64*floordiv(n + 63, 64), max(3, n - 8)>>) {
  // Shapes are compared as expressions: (2*n + 1) * 4 elements are 8*n + 4.
  // CHECK: tgraph.reshape %a : (tensor<?x4xf32, #tgraph.dims<2*n + 1>>) -> tensor<?xf32, #tgraph.dims<8*n + 4>>
  %0 = tgraph.reshape %a : (tensor<?x4xf32, #tgraph.dims<2*n + 1>>) -> tensor<?xf32, #tgraph.dims<8*n + 4>>
  // CHECK: tgraph.concatenate %c, %c {dimension = 0 : i64} : {{.*}} -> tensor<?xf32, #tgraph.dims<2*n, "cpu:0">>
  %1 = tgraph.concatenate %c, %c {dimension = 0 : i64} : (tensor<?xf32, #tgraph.dims<n, "cpu:0">>, tensor<?xf32, #tgraph.dims<n, "cpu:0">>) -> tensor<?xf32, #tgraph.dims<2*n, "cpu:0">>
  func.return
}
