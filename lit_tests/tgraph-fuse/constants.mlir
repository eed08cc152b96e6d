// RUN: plan-opt %s -p tgraph-fuse | filecheck %s

// A constant with several numbers keeps its shape and is broadcast in the group,
// instead of being stored in the larger shape.
// CHECK-LABEL: func.func @offsets
// CHECK-NEXT:    %[[C:.*]] = tgraph.constant<dense<[1, 9]> : tensor<2xui8>> : tensor<2xui8>
// CHECK-NEXT:    tgraph.fusion({{.*}} = %x, %[[B:.*]] = %[[C]])
// CHECK:           %[[W:.*]] = tgraph.broadcast_in_dim %[[B]]
// CHECK-NEXT:      tgraph.convert %[[W]] : (tensor<2x2xui8>) -> tensor<2x2xi32>
func.func @offsets(%x: tensor<2x2xui8>, %w: tensor<2x2xi32>) -> tensor<2x2xi32> {
  %0 = tgraph.constant<dense<[1, 9]> : tensor<2xui8>> : tensor<2xui8>
  %1 = tgraph.convert %x : (tensor<2x2xui8>) -> tensor<2x2xi32>
  %2 = tgraph.convert %0 : (tensor<2xui8>) -> tensor<2xi32>
  %3 = tgraph.broadcast_in_dim %2 {broadcast_dimensions = array<i64: 1>} : (tensor<2xi32>) -> tensor<2x2xi32>
  %4 = tgraph.subtract %1, %3 : tensor<2x2xi32>
  %5 = tgraph.dot_general %w, %4 {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<2x2xi32>
  func.return %5 : tensor<2x2xi32>
}
