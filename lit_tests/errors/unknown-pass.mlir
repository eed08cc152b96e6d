// RUN: not plan-opt %s -p plan-memry 2>&1 | filecheck %s

func.func @f() {
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     plan-opt: error: unknown pass 'plan-memry'; did you mean 'plan-memory'?
