// RUN: not plan-opt %s -p 'plan-memory{align=8}' 2>&1 | filecheck %s

func.func @f() {
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     plan-opt: error: pass plan-memory has no option 'align', expected one of {{.*}}; did you mean 'alignment'?
