// RUN: not plan-opt %s -p 'plan-memory{alignment=48}' 2>&1 | filecheck %s
// RUN: not plan-opt %s -p 'plan-memory{alignment=wide}' 2>&1 | filecheck %s --check-prefix=KIND
// RUN: not plan-opt %s -p 'plan-pipeline{strategy=magic}' 2>&1 | filecheck %s --check-prefix=NESTED

func.func @f() {
  func.return
}

// CHECK-NOT:  Traceback
// CHECK:      plan-opt: error: pass plan-memory: alignment is 48, expected a power of two
// KIND-NOT:   Traceback
// KIND:       plan-opt: error: pass plan-memory: option 'alignment' is 'wide', expected int
// NESTED-NOT: Traceback
// NESTED:     plan-opt: error: pass plan-pipeline: strategy is 'magic', expected one of {{.*}}greedy-by-size
