// RUN: not plan-opt %s -p 'plan-memory{bounds="n=8"}' 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK:     error: {{.*}}bounds are 'n=8', expected a list such as n<=64,m<=3
func.func @main() {
  func.return
}
