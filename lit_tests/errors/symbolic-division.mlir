// RUN: not plan-opt %s 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK:     symbolic-division.mlir:5:48: error: floordiv of 1, expected 2 arguments, and a divisor other than 0
func.func @main(%x: tensor<?xf32, #tgraph.dims<floordiv(n)>>) {
  func.return
}
