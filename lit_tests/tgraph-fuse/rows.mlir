// RUN: plan-opt %s -p tgraph-fuse | filecheck %s

// Softmax: two reductions over rows and all operations in between form one group.
// CHECK-LABEL: func.func @softmax
// CHECK-NEXT:    %y = tgraph.fusion(%[[X:.*]] = %x) : tensor<4x8xf32> {
// CHECK-NEXT:      tgraph.reduce %[[X]] {kind = "maximum"
// CHECK-NEXT:      tgraph.broadcast_in_dim
// CHECK-NEXT:      tgraph.subtract
// CHECK-NEXT:      tgraph.exponential
// CHECK-NEXT:      tgraph.reduce {{.*}} {kind = "add"
// CHECK-NEXT:      tgraph.broadcast_in_dim
// CHECK-NEXT:      tgraph.divide
// CHECK-NEXT:      tgraph.yield
// CHECK:         func.return
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %m = tgraph.reduce %x {kind = "maximum", dimensions = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %mb = tgraph.broadcast_in_dim %m {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x8xf32>
  %d = tgraph.subtract %x, %mb : tensor<4x8xf32>
  %e = tgraph.exponential %d : tensor<4x8xf32>
  %s = tgraph.reduce %e {kind = "add", dimensions = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %sb = tgraph.broadcast_in_dim %s {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x8xf32>
  %y = tgraph.divide %e, %sb : tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}

// One number per row may be used in operations, here at shape 4x1; %g is an operand.
// CHECK-LABEL: func.func @rms_norm
// CHECK-NEXT:    tgraph.fusion(%{{.*}} = %x, %{{.*}} = %g)
// CHECK-COUNT-8: tgraph
// CHECK:         tgraph.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return
func.func @rms_norm(%x: tensor<4x8xf32>, %g: tensor<8xf32>) -> tensor<4x8xf32> {
  %x2 = tgraph.multiply %x, %x : tensor<4x8xf32>
  %s = tgraph.reduce %x2 {kind = "add", dimensions = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %s1 = tgraph.broadcast_in_dim %s {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x1xf32>
  %r = tgraph.rsqrt %s1 : tensor<4x1xf32>
  %rb = tgraph.broadcast_in_dim %r {broadcast_dimensions = array<i64: 0, 1>} : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %gb = tgraph.broadcast_in_dim %g {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<4x8xf32>
  %xr = tgraph.multiply %x, %rb : tensor<4x8xf32>
  %y = tgraph.multiply %xr, %gb : tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}

// Groups are over rows, not columns: a sum over the first dimension ends a group.
// CHECK-LABEL: func.func @columns
// CHECK-NEXT:    %s = tgraph.fusion(%{{.*}} = %x)
// CHECK-NEXT:      tgraph.exponential
// CHECK-NEXT:      tgraph.reduce
// CHECK-NEXT:      tgraph.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    %y = tgraph.fusion(%{{.*}} = %s, %{{.*}} = %x)
func.func @columns(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tgraph.exponential %x : tensor<4x8xf32>
  %s = tgraph.reduce %e {kind = "add", dimensions = array<i64: 0>} : (tensor<4x8xf32>) -> tensor<8xf32>
  %sb = tgraph.broadcast_in_dim %s {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<4x8xf32>
  %y = tgraph.divide %x, %sb : tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}

// A row of 2^17 elements is too long for the cache: the group ends with its sum.
// CHECK-LABEL: func.func @long_row
// CHECK:         %s = tgraph.fusion
// CHECK:         tgraph.reduce
// CHECK:         %y = tgraph.fusion
func.func @long_row(%x: tensor<131072xf32>) -> tensor<131072xf32> {
  %e = tgraph.abs %x : tensor<131072xf32>
  %s = tgraph.reduce %e {kind = "add", dimensions = array<i64: 0>} : (tensor<131072xf32>) -> tensor<f32>
  %sb = tgraph.broadcast_in_dim %s {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<131072xf32>
  %y = tgraph.divide %x, %sb : tensor<131072xf32>
  func.return %y : tensor<131072xf32>
}
