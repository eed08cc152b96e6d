// REQUIRES: jax
// RUN: plan-opt %s -p convert-stablehlo-to-tgraph --split-input-file | filecheck %s

// The first value is carried. The second is returned unchanged and the third is from
// outside: both become invariant operands. The bound becomes a constant in the loop.
// CHECK-LABEL: @loop
// CHECK:         %[[ZERO:.*]] = tgraph.constant<0 : i32> : tensor<i32>
// CHECK:         tgraph.while %[[ZERO]], %arg0, %arg1, %arg2 :
// CHECK-SAME:      -> (tensor<i32>, tensor<4xf32>) {
// CHECK-NEXT:    ^{{.*}}(%[[I:.*]]: !tgraph.variable<tensor<i32>>, %{{.*}}: !tgraph.variable<tensor<4xf32>>, %{{.*}}: tensor<4xf32>, %{{.*}}: tensor<4xf32>):
// CHECK-DAG:       %[[READ:.*]] = tgraph.read %[[I]]
// CHECK-DAG:       %[[BOUND:.*]] = tgraph.constant<9 : i32>
// CHECK:           %[[C:.*]] = tgraph.compare %[[READ]], %[[BOUND]] {direction = "LT"}
// CHECK-NEXT:      tgraph.yield %[[C]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:    ^{{.*}}(%[[J:.*]]: !tgraph.variable<tensor<i32>>, %[[X:.*]]: !tgraph.variable<tensor<4xf32>>, %[[W:.*]]: tensor<4xf32>, %[[V:.*]]: tensor<4xf32>):
// CHECK:           %[[XW:.*]] = tgraph.multiply %{{.*}}, %[[W]]
// CHECK-NEXT:      %[[XV:.*]] = tgraph.add %[[XW]], %[[V]]
// CHECK-NEXT:      tgraph.assign %[[J]],
// CHECK-NEXT:      tgraph.assign %[[X]], %[[XV]]
// CHECK-NEXT:      tgraph.yield
// CHECK-NEXT:    }
func.func public @loop(%x: tensor<4xf32>, %w: tensor<4xf32>, %v: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %bound = stablehlo.constant dense<9> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %a = %x, %b = %w) : tensor<i32>, tensor<4xf32>, tensor<4xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %bound, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.multiply %a, %b : tensor<4xf32>
    %3 = stablehlo.add %2, %v : tensor<4xf32>
    stablehlo.return %1, %3, %b : tensor<i32>, tensor<4xf32>, tensor<4xf32>
  }
  return %0#1 : tensor<4xf32>
}

// -----

// The last branch is the default.
// CHECK-LABEL: @case
// CHECK:         %[[ZERO:.*]] = tgraph.constant<0 : i32>
// CHECK-NEXT:    %[[FIRST:.*]] = tgraph.compare %arg1, %[[ZERO]] {direction = "EQ"}
// CHECK-NEXT:    tgraph.if %[[FIRST]], %arg0, %arg1 :
// CHECK:           tgraph.negate
// CHECK:         } else {
// CHECK:           tgraph.constant<1 : i32>
// CHECK:           tgraph.if
// CHECK:             tgraph.abs
// CHECK:           } else {
// CHECK:             tgraph.sine
func.func public @case(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %0 = "stablehlo.case"(%n) ({
    %1 = stablehlo.negate %x : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }, {
    %1 = stablehlo.abs %x : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }, {
    %1 = stablehlo.sine %x : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A composite is replaced by its decomposition.
// CHECK-LABEL: @composite
// CHECK-NEXT:    tgraph.negate %arg0 : tensor<4xf32>
// CHECK-NEXT:    func.return
func.func public @composite(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.composite "my.negate" %x {decomposition = @minus} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @minus(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
