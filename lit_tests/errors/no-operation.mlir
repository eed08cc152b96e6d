// RUN: not plan-opt %s 2>&1 | filecheck %s

// CHECK-NOT:  Traceback
// CHECK:      no-operation.mlir:8:3: error: expected an operation or '}'
// CHECK:      no-operation.mlir:7:19: note: to match this '{'
// CHECK-NEXT: func.func @main
func.func @main() {
  )
}
