// RUN: python -c 'import sys; sys.stdout.buffer.write(bytes(range(128, 256)))' > %t
// RUN: not plan-opt %t 2>&1 | filecheck %s
// RUN: not plan-opt /dev/null 2>&1 | filecheck %s --check-prefix=EMPTY

// CHECK-NOT: Traceback
// CHECK:     error: {{.*}} is neither MLIR text, nor MLIR bytecode
// EMPTY-NOT: Traceback
// EMPTY:     null:1:1: error: the program is empty, expected an operation such as func.func
