// RUN: plan-opt %s -p tgraph-hoist-transposes | filecheck %s

// A transpose of a result moves to the operands, where it is a view.
// CHECK-LABEL: func.func @result
// CHECK-NEXT:    %[[X:.*]] = tgraph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
// CHECK-NEXT:    %[[B:.*]] = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 0>} : (tensor<8xf32>) -> tensor<8x4xf32>
// CHECK-NEXT:    %[[S:.*]] = tgraph.add %[[X]], %[[B]] : tensor<8x4xf32>
// CHECK-NEXT:    %[[R:.*]] = tgraph.tanh %[[S]] : tensor<8x4xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @result(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<8x4xf32> {
  %0 = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<4x8xf32>
  %1 = tgraph.add %x, %0 : tensor<4x8xf32>
  %2 = tgraph.tanh %1 : tensor<4x8xf32>
  %3 = tgraph.transpose %2 {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  func.return %3 : tensor<8x4xf32>
}

// Patches: no strides can express the result, which is reshaped and transposed.
// CHECK-LABEL: func.func @patches
// CHECK-NEXT:    %[[V:.*]] = tgraph.reshape %x : (tensor<4x8xf32>) -> tensor<2x2x2x4xf32>
// CHECK-NEXT:    %[[X:.*]] = tgraph.transpose %[[V]] {permutation = array<i64: 0, 2, 1, 3>}
// CHECK-NEXT:    %[[N:.*]] = tgraph.negate %[[X]] : tensor<2x2x2x4xf32>
// CHECK-NEXT:    %[[R:.*]] = tgraph.reshape %[[N]] : (tensor<2x2x2x4xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @patches(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = tgraph.negate %x : tensor<4x8xf32>
  %1 = tgraph.reshape %0 : (tensor<4x8xf32>) -> tensor<2x2x2x4xf32>
  %2 = tgraph.transpose %1 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x2x2x4xf32>) -> tensor<2x2x2x4xf32>
  %3 = tgraph.reshape %2 : (tensor<2x2x2x4xf32>) -> tensor<4x8xf32>
  func.return %3 : tensor<4x8xf32>
}

// Two operations with transposes in between both use the last order.
// CHECK-LABEL: func.func @chain
// CHECK-NEXT:    tgraph.transpose %x {permutation = array<i64: 1, 2, 0>}
// CHECK-NEXT:    tgraph.negate
// CHECK-NEXT:    tgraph.tanh
// CHECK-NEXT:    func.return
func.func @chain(%x: tensor<2x3x4xf32>) -> tensor<3x4x2xf32> {
  %0 = tgraph.negate %x : tensor<2x3x4xf32>
  %1 = tgraph.transpose %0 {permutation = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %2 = tgraph.tanh %1 : tensor<2x4x3xf32>
  %3 = tgraph.transpose %2 {permutation = array<i64: 2, 1, 0>} : (tensor<2x4x3xf32>) -> tensor<3x4x2xf32>
  func.return %3 : tensor<3x4x2xf32>
}

// A contraction reads a view in place. Other operations read the value computed here.
// CHECK-LABEL: func.func @stays
// CHECK-NEXT:    %0 = tgraph.negate %x : tensor<4x8xf32>
// CHECK-NEXT:    %1 = tgraph.transpose %0
// CHECK-NEXT:    %2 = tgraph.dot_general %x, %1
// CHECK-NEXT:    %3 = tgraph.tanh %x : tensor<4x8xf32>
// CHECK-NEXT:    %4 = tgraph.transpose %3
func.func @stays(%x: tensor<4x8xf32>) -> (tensor<4x4xf32>, tensor<4x8xf32>, tensor<8x4xf32>) {
  %0 = tgraph.negate %x : tensor<4x8xf32>
  %1 = tgraph.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %2 = tgraph.dot_general %x, %1 {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %3 = tgraph.tanh %x : tensor<4x8xf32>
  %4 = tgraph.transpose %3 {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  func.return %2, %3, %4 : tensor<4x4xf32>, tensor<4x8xf32>, tensor<8x4xf32>
}

// A mask that needs only iotas and numbers is computed again for the transposed reader.
// CHECK-LABEL: func.func @triangle
// CHECK:         %lower = tgraph.compare %i, %j {direction = "LE"}
// CHECK-NEXT:    %0 = tgraph.select %lower, %x, %y
// CHECK-NEXT:    [[j:%.*]] = tgraph.iota {dimension = 1 : i64} : tensor<4x4xi32>
// CHECK-NEXT:    [[i:%.*]] = tgraph.iota {dimension = 0 : i64} : tensor<4x4xi32>
// CHECK-NEXT:    [[m:%.*]] = tgraph.compare [[j]], [[i]] {direction = "LE"}
// CHECK-NEXT:    [[y:%.*]] = tgraph.transpose %y
// CHECK-NEXT:    [[x:%.*]] = tgraph.transpose %x
// CHECK-NEXT:    tgraph.select [[m]], [[y]], [[x]]
func.func @triangle(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %i = tgraph.iota {dimension = 0 : i64} : tensor<4x4xi32>
  %j = tgraph.iota {dimension = 1 : i64} : tensor<4x4xi32>
  %lower = tgraph.compare %i, %j {direction = "LE"} : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi1>
  %0 = tgraph.select %lower, %x, %y : (tensor<4x4xi1>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = tgraph.select %lower, %y, %x : (tensor<4x4xi1>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = tgraph.transpose %1 {permutation = array<i64: 1, 0>} : tensor<4x4xf32>
  func.return %0, %2 : tensor<4x4xf32>, tensor<4x4xf32>
}
