// RUN: not plan-opt %s 2>&1 | filecheck %s

// Sizes that are not known to be equal do not match.
// CHECK-NOT: Traceback
// CHECK:     symbolic-shapes.mlir:7:8: error: tgraph.add: {{.*}}tensor<?xf32, #tgraph.dims<m>>
func.func @main(%x: tensor<?xf32, #tgraph.dims<n>>, %y: tensor<?xf32, #tgraph.dims<m>>) {
  %0 = tgraph.add %x, %y : (tensor<?xf32, #tgraph.dims<n>>, tensor<?xf32, #tgraph.dims<m>>) -> tensor<?xf32, #tgraph.dims<n>>
  func.return
}
