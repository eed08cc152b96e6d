// RUN: plan-opt %s -p tgraph-infer-shapes 2>%t.err | filecheck %s
// RUN: filecheck %s --check-prefix REMARK --input-file %t.err

// Types propagate forward through the product, backward to the weight and the bias,
// whose element type is found too, and then to the constant, which could have any size.
// CHECK-LABEL: func.func @layer
// CHECK-SAME:    (%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %b: tensor<4x16xf32>) -> tensor<4x16xf32>
// CHECK-NEXT:    tgraph.dot_general
// CHECK-SAME:      (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
// CHECK-NEXT:    tgraph.add %y, %b : tensor<4x16xf32>
// CHECK-NEXT:    tgraph.constant<0.000000e+00 : f32> : tensor<4x16xf32>
// CHECK-NEXT:    tgraph.maximum %s, %zero : tensor<4x16xf32>
// CHECK-NEXT:    func.return %r : tensor<4x16xf32>
func.func @layer(%x: tensor<4x8xf32>, %w: tensor<?x16xf32>, %b: tensor<?x?xnone>) -> tensor<?x?xf32> {
  %y = tgraph.dot_general %x, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<4x8xf32>, tensor<?x16xf32>) -> tensor<?x?xf32>
  %s = tgraph.add %y, %b : (tensor<?x?xf32>, tensor<?x?xnone>) -> tensor<?x?xf32>
  %zero = tgraph.constant<0.0 : f32> : tensor<?x?xf32>
  %r = tgraph.maximum %s, %zero : tensor<?x?xf32>
  func.return %r : tensor<?x?xf32>
}

// A variable has the type of the assigned value; the device stays.
// CHECK-LABEL: func.func @state
// CHECK-SAME:    (%v: !tgraph.variable<tensor<2x3xf32, "cpu:0">>, %x: tensor<2x3xf32, "cpu:0">)
// CHECK-NEXT:    tgraph.read %v : tensor<2x3xf32, "cpu:0">
func.func @state(%v: !tgraph.variable<tensor<?x3xf32, "cpu:0">>, %x: tensor<2x?xf32, "cpu:0">) {
  %old = tgraph.read %v : tensor<?x3xf32, "cpu:0">
  %new = tgraph.add %old, %x : (tensor<?x3xf32, "cpu:0">, tensor<2x?xf32, "cpu:0">) -> tensor<?x3xf32, "cpu:0">
  tgraph.assign %v, %new : tensor<?x3xf32, "cpu:0">
  func.return
}

// Types that can't be inferred stay, and are counted.
// REMARK:      infer.mlir:[[# @LINE + 6]]:1: remark: 2 types stay unknown in @unknown:
// REMARK-SAME: argument 0 of type tensor<?x8xf32>, tgraph.transpose of type tensor<8x?xf32>
// REMARK-NOT:  remark
// CHECK-LABEL: func.func @unknown
// CHECK-SAME:    (%x: tensor<?x8xf32>) -> tensor<8x?xf32>
// CHECK-NEXT:    (tensor<?x8xf32>) -> tensor<8x?xf32>
func.func @unknown(%x: tensor<?x8xf32>) -> tensor<8x?xf32> {
  %t = tgraph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<?x8xf32>) -> tensor<8x?xf32>
  func.return %t : tensor<8x?xf32>
}
