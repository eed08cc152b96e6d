// RUN: plan-opt %s -p tgraph-eliminate-assigns -o %t 2>&1 | filecheck %s

// A training step has a variable for each weight. A remark that applies to all of them
// at one location is printed once, with the number of variables.

func.func @f(%a: !tgraph.variable<tensor<4xf32>>, %b: !tgraph.variable<tensor<4xf32>>, %c: !tgraph.variable<tensor<4xf32>>, %x: tensor<4xf32>) {
  %0 = tgraph.negate %x : tensor<4xf32>
  %1 = tgraph.negate %x : tensor<4xf32>
  %2 = tgraph.exponential %x : tensor<4xf32>
  tgraph.assign %a, %0 : tensor<4xf32> loc("m.mlir":2:3)
  tgraph.assign %b, %1 : tensor<4xf32> loc("m.mlir":2:3)
  tgraph.assign %c, %2 : tensor<4xf32> loc("m.mlir":2:3)
  func.return
}

// CHECK:      m.mlir:2:3: remark: assign is eliminated: tgraph.negate writes the variable
// CHECK-NEXT: remark: 1 more like this
// CHECK-NEXT: m.mlir:2:3: remark: assign is eliminated: tgraph.exponential writes the variable
// CHECK-NOT:  more
