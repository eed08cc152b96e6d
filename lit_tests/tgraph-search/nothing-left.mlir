// RUN: plan-opt %s -p tgraph-search 2>&1 | filecheck %s
// RUN: plan-opt %s -p 'tgraph-fit{budget=1}' 2>&1 | filecheck %s --check-prefix FIT

// Nothing on tensors is left of a function whose results are unused.
// CHECK:      nothing-left.mlir:[[# @LINE + 6]]:1: remark: of {{[0-9]+}} candidates, the default takes the fewest bytes: 0 instead of 0
// CHECK:      func.func @main() {
// CHECK-NEXT:   func.return
// FIT:        func.func @main() {
// FIT-NEXT:     func.return

func.func @main() {
  %0 = tgraph.constant<1.0 : f32> : tensor<4xf32>
  func.return
}
