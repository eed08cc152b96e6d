// RUN: not plan-opt %t.no-such-file 2>&1 | filecheck %s
// RUN: not plan-opt %s -o %t.no-such-folder/out.mlir 2>&1 | filecheck %s --check-prefix=OUT

func.func @f() {
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     no-such-file: error: no such file or directory
// OUT-NOT:   Traceback
// OUT:       no-such-folder/out.mlir: error: no such file or directory
