// RUN: python -c 'print("func.func @f() attributes {a = " + "[" * 100000)' | not plan-opt 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK:     plan-opt: error: the program is nested too deeply
