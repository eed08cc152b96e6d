// REQUIRES: jax
// RUN: python -c 'import sys; sys.stdout.buffer.write(b"ML\xefR" + bytes(100))' > %t
// RUN: not plan-opt %t 2>&1 | filecheck %s

// CHECK-NOT: Traceback
// CHECK:     plan-opt: error: {{.*}}broken-bytecode.mlir.tmp is not valid MLIR bytecode: {{.+}}
