// RUN: plan-opt %s -p tgraph-fuse | filecheck %s --check-prefix=RELAY
// RUN: plan-opt %s -p tgraph-fuse{mode=nnvm} | filecheck %s --check-prefix=NNVM
// RUN: plan-opt %s -p tgraph-fuse{mode=none} | filecheck %s --check-prefix=NONE
// RUN: plan-opt %s -p tgraph-fuse{max-depth=2} | filecheck %s --check-prefix=DEPTH

// %a has two readers with one operand each, which join: both modes find the diamond.
// The reader %t of %e has two operands, which NNVM's second phase does not consider.
// RELAY-LABEL: func.func @diamonds
// RELAY-NEXT:    %t = tgraph.fusion
// NNVM-LABEL:  func.func @diamonds
// NNVM-NEXT:     %e = tgraph.fusion
// NNVM-NEXT:       tgraph.negate
// NNVM-NEXT:       tgraph.abs
// NNVM-NEXT:       tgraph.floor
// NNVM-NEXT:       tgraph.add
// NNVM:          %t = tgraph.fusion
// NNVM-NEXT:       tgraph.tanh
// NNVM-NEXT:       tgraph.multiply
// NONE-LABEL:  func.func @diamonds
// NONE-NOT:      tgraph.fusion
// No group has more than two operations.
// DEPTH-LABEL: func.func @diamonds
// DEPTH-NEXT:    %a = tgraph.negate
// DEPTH-NEXT:    %c = tgraph.floor
// DEPTH-NEXT:    %e = tgraph.fusion
// DEPTH-NEXT:      tgraph.abs
// DEPTH-NEXT:      tgraph.add
// DEPTH-NEXT:      tgraph.yield
func.func @diamonds(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = tgraph.negate %x : tensor<4xf32>
  %b = tgraph.abs %a : tensor<4xf32>
  %c = tgraph.floor %a : tensor<4xf32>
  %e = tgraph.add %b, %c : tensor<4xf32>
  %f = tgraph.tanh %e : tensor<4xf32>
  %t = tgraph.multiply %e, %f : tensor<4xf32>
  func.return %t : tensor<4xf32>
}
