// A small training step: the weight is updated in place, and nothing is copied.
// RUN: plan-opt %s -p plan-pipeline | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME:    %w: memref<4x8xf32, "cpu:0"> {tgraph.result = 0 : i32, tgraph.variable}
// CHECK-NEXT:    %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8, "cpu:0">
// CHECK-NEXT:    %c0 = arith.constant 0 : index
// CHECK-NEXT:    %relu = memref.view %arena[%c0][] : memref<64xi8, "cpu:0"> to memref<2x8xf32, "cpu:0">
// CHECK-NEXT:    tgraph.fusion({{.*}}) outs(%relu)
// CHECK-NEXT:      tgraph.dot_general
// CHECK:         tgraph.dot_general %x, %relu outs(%[[G:.*]])
// CHECK:         tgraph.fusion(
// CHECK-SAME:      outs(%w)
// CHECK-NOT:     memref.copy
// CHECK:         func.return
func.func @main(%w: !tgraph.variable<tensor<4x8xf32>> {tgraph.result = 0 : i32}, %x: tensor<2x4xf32>) -> tensor<4x8xf32> {
  %old = tgraph.read %w : tensor<4x8xf32>
  %y = tgraph.dot_general %x, %old {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %zero = tgraph.constant<0.0 : f32> : tensor<2x8xf32>
  %relu = tgraph.maximum %y, %zero : tensor<2x8xf32>
  %g = tgraph.dot_general %x, %relu {lhs_contracting_dimensions = array<i64: 0>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  %rate = tgraph.constant<0.1 : f32> : tensor<4x8xf32>
  %step = tgraph.multiply %rate, %g : tensor<4x8xf32>
  %new = tgraph.subtract %old, %step : tensor<4x8xf32>
  tgraph.assign %w, %new : tensor<4x8xf32>
  func.return %g : tensor<4x8xf32>
}
