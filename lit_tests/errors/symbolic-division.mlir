// RUN: not plan-opt %s 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK:     symbolic-division.mlir:5:48: error: floordiv has 1 arguments, expected 2
func.func @main(%x: tensor<?xf32, #tgraph.dims<floordiv(n)>>) {
  func.return
}
