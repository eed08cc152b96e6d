// RUN: plan-opt %s -p tgraph-gradient,cse | filecheck %s
// RUN: plan-opt %s -p 'tgraph-gradient{mirror=cheap},cse' | filecheck %s --check-prefix=CHEAP
// RUN: plan-opt %s -p 'tgraph-gradient{mirror=none},cse' | filecheck %s --check-prefix=NONE

// By default, operations marked for it are recomputed (%b from %a); products never are.
// CHECK-LABEL: func.func @main
// CHECK:         %p = tgraph.dot_general
// CHECK-NEXT:    %a = tgraph.tanh %p
// CHECK-NEXT:    %b = tgraph.exponential %a {tgraph.mirror}
// CHECK-NOT:     tgraph.dot_general
// CHECK-NOT:     tgraph.tanh
// CHECK:         %{{.*}} = tgraph.exponential %a {tgraph.recomputed} : tensor<4x4xf32>
// CHECK-NOT:     tgraph.recomputed

// CHEAP-LABEL: func.func @main
// CHEAP:         tgraph.exponential
// CHEAP-NOT:     tgraph.dot_general %x
// CHEAP:         %[[A:.*]] = tgraph.tanh %p {tgraph.recomputed} : tensor<4x4xf32>
// CHEAP-NEXT:    %[[B:.*]] = tgraph.exponential %[[A]] {tgraph.recomputed} : tensor<4x4xf32>
// CHEAP:         tgraph.multiply %{{.*}}, %[[B]]
// CHEAP-NOT:     tgraph.recomputed

// NONE-NOT: tgraph.recomputed
func.func @main(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>, %head: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %p = tgraph.dot_general %x, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<4x4xf32>
  %a = tgraph.tanh %p : tensor<4x4xf32>
  %b = tgraph.exponential %a {tgraph.mirror} : tensor<4x4xf32>
  %g = tgraph.gradient %b heads %head wrt %w : tensor<4x4xf32> wrt tensor<4x4xf32>
  func.return %b, %g : tensor<4x4xf32>, tensor<4x4xf32>
}
