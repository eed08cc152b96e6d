// RUN: plan-opt %s -p tgraph-fuse | filecheck %s
// RUN: plan-opt %s -p tgraph-schedule | filecheck %s --check-prefix ORDER

// Unknown element types have no size, so no operand is overwritten.
// CHECK-LABEL: func.func @main
// CHECK:         tgraph.fusion(%a_1 = %a) : tensor<4xnone>
// ORDER-LABEL: func.func @main
// ORDER-NEXT:    tgraph.negate
func.func @main(%a: tensor<4xnone>) -> tensor<4xnone> {
  %0 = tgraph.negate %a : tensor<4xnone>
  %1 = tgraph.abs %0 : tensor<4xnone>
  func.return %1 : tensor<4xnone>
}
