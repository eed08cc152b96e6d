// RUN: not plan-opt %s -p 'cse,plan-memory{alignment 64}' 2>&1 | filecheck %s

func.func @f() {
  func.return
}

// CHECK-NOT:  Traceback
// CHECK:      plan-opt: error: pass-pipeline:1:27: expected argument name here
// CHECK-NEXT: cse,plan-memory{alignment 64}
