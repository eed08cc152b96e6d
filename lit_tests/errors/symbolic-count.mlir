// RUN: not plan-opt %s 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK:     symbolic-count.mlir:6:8: error: tgraph.negate: #tgraph.dims<n, m> has 2 sizes, expected 1: one for each ?
func.func @main(%x: tensor<?x4xf32, #tgraph.dims<n, m>>) {
  %0 = tgraph.negate %x : tensor<?x4xf32, #tgraph.dims<n, m>>
  func.return
}
