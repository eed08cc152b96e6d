// RUN: python -c 'print("func.func @f() attributes {a = " + "[" * 100000)' | not plan-opt 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK:     <stdin>:1:{{[0-9]+}}: error: the program is nested too deeply
