// RUN: plan-opt %s -p canonicalize | filecheck %s

// Positions along the reduced dimension need no tensor, whichever operand they are.
// CHECK-LABEL: @reduced
// CHECK-NEXT:    tgraph.reduce_by %x, %zero, %low {dimensions = array<i64: 1>, positions = array<i64: 0>} : (tensor<4x8xf32>, tensor<i32>, tensor<f32>) -> (tensor<4xi32>, tensor<4xf32>) {
func.func @reduced(%x: tensor<4x8xf32>, %low: tensor<f32>, %zero: tensor<i32>) -> tensor<4xi32> {
  %n = tgraph.iota {dimension = 1 : i64} : tensor<4x8xi32>
  %i, %v = tgraph.reduce_by %n, %x, %zero, %low {dimensions = array<i64: 1>} : (tensor<4x8xi32>, tensor<4x8xf32>, tensor<i32>, tensor<f32>) -> (tensor<4xi32>, tensor<4xf32>) {
  ^bb0(%i: tensor<i32>, %a: tensor<f32>, %j: tensor<i32>, %b: tensor<f32>):
    %0 = tgraph.compare %a, %b {direction = "GE"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %1 = tgraph.select %0, %a, %b : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %2 = tgraph.select %0, %i, %j : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    tgraph.yield %2, %1 : tensor<i32>, tensor<f32>
  }
  func.return %i : tensor<4xi32>
}

// Broadcast positions along the sorted dimension need no tensor, either.
// CHECK-LABEL: @sorted
// CHECK-NEXT:    tgraph.sort %x {count = 2 : i64, dimension = 1 : i64, positions = array<i64: 1>} : (tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>) {
func.func @sorted(%x: tensor<4x8xf32>) -> tensor<4x2xi32> {
  %n = tgraph.iota {dimension = 0 : i64} : tensor<8xi32>
  %m = tgraph.broadcast_in_dim %n {broadcast_dimensions = array<i64: 1>} : (tensor<8xi32>) -> tensor<4x8xi32>
  %v, %i = tgraph.sort %x, %m {count = 2 : i64, dimension = 1 : i64} : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4x2xf32>, tensor<4x2xi32>) {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
    %0 = tgraph.compare %a, %b {direction = "GT"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    tgraph.yield %0 : tensor<i1>
  }
  func.return %i : tensor<4x2xi32>
}

// Positions along another dimension are stored.
// CHECK-LABEL: @rows
// CHECK-NEXT:    tgraph.iota
// CHECK-NEXT:    tgraph.sort %x, %n {dimension = 1 : i64}
func.func @rows(%x: tensor<4x8xf32>) -> tensor<4x8xi32> {
  %n = tgraph.iota {dimension = 0 : i64} : tensor<4x8xi32>
  %v, %i = tgraph.sort %x, %n {dimension = 1 : i64} : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xi32>) {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
    %0 = tgraph.compare %a, %b {direction = "GT"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    tgraph.yield %0 : tensor<i1>
  }
  func.return %i : tensor<4x8xi32>
}

// If positions are the only operand, they stay, as they define the shape.
// CHECK-LABEL: @alone
// CHECK-NEXT:    tgraph.iota
func.func @alone() -> tensor<8xi32> {
  %n = tgraph.iota {dimension = 0 : i64} : tensor<8xi32>
  %i = tgraph.sort %n {dimension = 0 : i64} : tensor<8xi32> {
  ^bb0(%i: tensor<i32>, %j: tensor<i32>):
    %0 = tgraph.compare %i, %j {direction = "GT"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tgraph.yield %0 : tensor<i1>
  }
  func.return %i : tensor<8xi32>
}

// A dimension of size 1 is sorted.
// CHECK-LABEL: @one
// CHECK-NEXT:    %i = tgraph.iota {dimension = 1 : i64} : tensor<4x1xi32>
// CHECK-NEXT:    func.return %x, %i
func.func @one(%x: tensor<4x1xf32>) -> (tensor<4x1xf32>, tensor<4x1xi32>) {
  %v, %i = tgraph.sort %x {dimension = 1 : i64, positions = array<i64: 1>} : (tensor<4x1xf32>) -> (tensor<4x1xf32>, tensor<4x1xi32>) {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
    %0 = tgraph.compare %a, %b {direction = "GT"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    tgraph.yield %0 : tensor<i1>
  }
  func.return %v, %i : tensor<4x1xf32>, tensor<4x1xi32>
}

// A sort that returns no elements stays.
// CHECK-LABEL: @none
// CHECK-NEXT:    tgraph.sort
func.func @none(%x: tensor<4x1xf32>) -> tensor<4x0xf32> {
  %v = tgraph.sort %x {count = 0 : i64, dimension = 1 : i64} : (tensor<4x1xf32>) -> tensor<4x0xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %0 = tgraph.compare %a, %b {direction = "GT"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    tgraph.yield %0 : tensor<i1>
  }
  func.return %v : tensor<4x0xf32>
}
