// RUN: not plan-opt %s 2>&1 | filecheck %s

// An unterminated string, which xDSL's own lexer takes forever to reject.
"test.op"() {name = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
} : () -> ()

// CHECK-NOT: Traceback
// CHECK:     open-string.mlir:4:21: error: end of file reached before closing string literal
