// RUN: not plan-opt %s 2>&1 | filecheck %s

// A string that is not closed, which xDSL's own lexer takes for ever to refuse.
"test.op"() {name = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
} : () -> ()

// CHECK-NOT: Traceback
// CHECK:     open-string.mlir:4:21: error: end of file reached before closing string literal
