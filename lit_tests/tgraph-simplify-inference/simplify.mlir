// RUN: plan-opt %s -p tgraph-simplify-inference | filecheck %s

!x = tensor<8x4x16xf32>
!c = tensor<16xf32>

// Four full-size operations become two; all others have the size of the channels, even
// the square root, which followed the broadcast.
// CHECK-LABEL: func.func @batch_norm
// CHECK-NEXT:    %[[EPS:.*]] = tgraph.constant<1.000000e-05 : f32> : tensor<16xf32>
// CHECK-NEXT:    %[[V:.*]] = tgraph.add %var, %[[EPS]] : tensor<16xf32>
// CHECK-NEXT:    %[[STD:.*]] = tgraph.sqrt %[[V]] : tensor<16xf32>
// CHECK-NEXT:    %[[N:.*]] = tgraph.negate %mean : tensor<16xf32>
// CHECK-NEXT:    %[[T:.*]] = tgraph.divide %[[N]], %[[STD]] : tensor<16xf32>
// CHECK-NEXT:    %[[ONE:.*]] = tgraph.constant<1.000000e+00 : f32> : tensor<16xf32>
// CHECK-NEXT:    %[[S:.*]] = tgraph.divide %[[ONE]], %[[STD]] : tensor<16xf32>
// CHECK-NEXT:    %[[TG:.*]] = tgraph.multiply %[[T]], %gamma : tensor<16xf32>
// CHECK-NEXT:    %[[SCALE:.*]] = tgraph.multiply %[[S]], %gamma : tensor<16xf32>
// CHECK-NEXT:    %[[SHIFT:.*]] = tgraph.add %[[TG]], %beta : tensor<16xf32>
// CHECK-NEXT:    %[[A:.*]] = tgraph.broadcast_in_dim %[[SCALE]]
// CHECK-NEXT:    %[[M:.*]] = tgraph.multiply %x, %[[A]] : tensor<8x4x16xf32>
// CHECK-NEXT:    %[[B:.*]] = tgraph.broadcast_in_dim %[[SHIFT]]
// CHECK-NEXT:    %[[R:.*]] = tgraph.add %[[M]], %[[B]] : tensor<8x4x16xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @batch_norm(%x: !x, %gamma: !c {tgraph.parameter}, %beta: !c {tgraph.parameter}, %mean: !c {tgraph.parameter}, %var: !c {tgraph.parameter}) -> !x {
  %v = tgraph.broadcast_in_dim %var {broadcast_dimensions = array<i64: 2>} : (!c) -> !x
  %eps = tgraph.constant<1.0e-5 : f32> : !x
  %ve = tgraph.add %v, %eps : !x
  %std = tgraph.sqrt %ve : !x
  %m = tgraph.broadcast_in_dim %mean {broadcast_dimensions = array<i64: 2>} : (!c) -> !x
  %g = tgraph.broadcast_in_dim %gamma {broadcast_dimensions = array<i64: 2>} : (!c) -> !x
  %b = tgraph.broadcast_in_dim %beta {broadcast_dimensions = array<i64: 2>} : (!c) -> !x
  %0 = tgraph.subtract %x, %m : !x
  %1 = tgraph.divide %0, %std : !x
  %2 = tgraph.multiply %1, %g : !x
  %3 = tgraph.add %2, %b : !x
  func.return %3 : !x
}

// Statistics that are no parameters belong to a training step, which stays.
// CHECK-LABEL: func.func @training
// CHECK-NEXT:    tgraph.broadcast_in_dim
// CHECK-NEXT:    tgraph.subtract
// CHECK-NEXT:    tgraph.subtract
// CHECK-NEXT:    func.return
func.func @training(%x: !x, %mean: !c) -> !x {
  %m = tgraph.broadcast_in_dim %mean {broadcast_dimensions = array<i64: 2>} : (!c) -> !x
  %0 = tgraph.subtract %x, %m : !x
  %1 = tgraph.subtract %0, %m : !x
  func.return %1 : !x
}

// An intermediate value with another reader is not computed twice.
// CHECK-LABEL: func.func @two_users
// CHECK:         tgraph.multiply
// CHECK-NEXT:    tgraph.multiply
// CHECK-NEXT:    func.return
func.func @two_users(%x: !x, %s: !c {tgraph.parameter}) -> (!x, !x) {
  %b = tgraph.broadcast_in_dim %s {broadcast_dimensions = array<i64: 2>} : (!c) -> !x
  %0 = tgraph.multiply %x, %b : !x
  %1 = tgraph.multiply %0, %b : !x
  func.return %0, %1 : !x, !x
}

// Dropout with rate 0 drops nothing and scales by 1.
// CHECK-LABEL: func.func @dropout
// CHECK-NEXT:    func.return %x
func.func @dropout(%x: !x) -> !x {
  %keep = tgraph.constant<true> : tensor<8x4x16xi1>
  %zero = tgraph.constant<0.0 : f32> : !x
  %one = tgraph.constant<1.0 : f32> : !x
  %0 = tgraph.divide %x, %one : !x
  %1 = tgraph.select %keep, %0, %zero : (tensor<8x4x16xi1>, !x, !x) -> !x
  func.return %1 : !x
}

// A dead reader does not break the chain.
// CHECK-LABEL: func.func @dead
// CHECK:         %[[S:.*]] = tgraph.multiply %a, %b : tensor<16xf32>
// CHECK-NEXT:    %[[T:.*]] = tgraph.broadcast_in_dim %[[S]]
// CHECK-NEXT:    %[[R:.*]] = tgraph.multiply %x, %[[T]]
// CHECK-NEXT:    func.return %[[R]]
func.func @dead(%x: !x, %a: !c {tgraph.parameter}, %b: !c {tgraph.parameter}) -> !x {
  %0 = tgraph.broadcast_in_dim %a {broadcast_dimensions = array<i64: 2>} : (!c) -> !x
  %1 = tgraph.multiply %x, %0 : !x
  %2 = tgraph.negate %1 : !x
  %3 = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 2>} : (!c) -> !x
  %4 = tgraph.multiply %1, %3 : !x
  func.return %4 : !x
}
