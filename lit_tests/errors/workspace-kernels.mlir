// RUN: not plan-opt %s -p 'plan-workspaces{kernels=gpu}' 2>&1 | filecheck %s
// RUN: not plan-opt %s -p 'plan-pipeline{workspaces=gpu}' 2>&1 | filecheck %s --check-prefix=NESTED

func.func @f() {
  func.return
}

// CHECK-NOT:  Traceback
// CHECK:      plan-opt: error: pass plan-workspaces: kernels is 'gpu', expected one of none, native, numpy
// NESTED-NOT: Traceback
// NESTED:     plan-opt: error: pass plan-pipeline: workspaces is 'gpu', expected one of none, native, numpy
