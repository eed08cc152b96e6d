// RUN: not plan-opt %s -p 'specialize-sizes{sizes="n=4"}' 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK:     specialize-requires.mlir:5:1: error: n is 4, expected n - 8 >= 0
func.func @main(%x: tensor<?xf32, #tgraph.dims<n>>) attributes {tgraph.requires = #tgraph.dims<n - 8>} {
  func.return
}
