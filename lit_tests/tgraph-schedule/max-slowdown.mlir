// RUN: plan-opt %s -p tgraph-schedule | filecheck %s --check-prefixes=CHECK,LOW
// RUN: plan-opt %s -p 'tgraph-schedule{max-slowdown=0.5}' | filecheck %s --check-prefixes=CHECK,LOW
// RUN: plan-opt %s -p 'tgraph-schedule{max-slowdown=0.1}' | filecheck %s --check-prefixes=CHECK,FAST

// With %a before %p, one matrix at a time is live on cpu:0. But cpu:1 waits for %p,
// which takes an estimated 35 % longer.

!host = tensor<128x128xf32, "cpu:0">
!other = tensor<128x128xf32, "cpu:1">
!row = tensor<128xf32, "cpu:0">
// CHECK-LABEL: func.func @main
// LOW:  %a = tgraph.dot_general
// FAST: %p = tgraph.dot_general
// LOW:  %p = tgraph.dot_general
// FAST: %a = tgraph.dot_general
func.func @main(%x: !host, %w: !host) -> (!row, !other) {
  %p = tgraph.dot_general %x, %x {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : !host
  %c = tgraph.device_copy %p : (!host) -> !other
  %q = tgraph.dot_general %c, %c {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : !other
  %r = tgraph.dot_general %q, %q {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : !other
  %a = tgraph.dot_general %x, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : !host
  %s = tgraph.reduce %a {kind = "add", dimensions = array<i64: 1>} : (!host) -> !row
  %t = tgraph.dot_general %p, %s {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (!host, !row) -> !row
  func.return %t, %r : !row, !other
}
