// RUN: plan-opt %s -p convert-stablehlo-to-tgraph | filecheck %s

// CHECK:      %0 = tgraph.broadcast_in_dim %arg0 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xf32>) -> tensor<2x3x6xf32>
// CHECK-NEXT: %1 = tgraph.reshape %arg0 : (tensor<2x6xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: %2 = tgraph.transpose %arg0 {permutation = array<i64: 1, 0>} : (tensor<2x6xf32>) -> tensor<6x2xf32>
// CHECK-NEXT: %3 = tgraph.slice %arg0 {start_indices = array<i64: 0, 1>, limit_indices = array<i64: 2, 6>, strides = array<i64: 1, 2>} : (tensor<2x6xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %4 = tgraph.reverse %arg0 {dimensions = array<i64: 1>} : tensor<2x6xf32>
// CHECK-NEXT: %5 = tgraph.concatenate %arg0, %3 {dimension = 1 : i64} : (tensor<2x6xf32>, tensor<2x3xf32>) -> tensor<2x9xf32>
// CHECK-NEXT: %6 = tgraph.pad %3, %arg1 {low = array<i64: 0, 1>, high = array<i64: 2, -1>, interior = array<i64: 0, 1>} : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x5xf32>
// Slices of all elements and pads by zero, as in gradients of pooling, are erased:
// CHECK-NEXT: %7 = tgraph.negate %3
"func.func"() <{function_type = (tensor<2x6xf32>, tensor<f32>) -> (), sym_name = "main"}> ({
^bb0(%a: tensor<2x6xf32>, %z: tensor<f32>):
  %0 = "stablehlo.broadcast_in_dim"(%a) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<2x6xf32>) -> tensor<2x3x6xf32>
  %1 = "stablehlo.reshape"(%a) : (tensor<2x6xf32>) -> tensor<3x4xf32>
  %2 = "stablehlo.transpose"(%a) <{permutation = array<i64: 1, 0>}> : (tensor<2x6xf32>) -> tensor<6x2xf32>
  %3 = "stablehlo.slice"(%a) <{limit_indices = array<i64: 2, 6>, start_indices = array<i64: 0, 1>, strides = array<i64: 1, 2>}> : (tensor<2x6xf32>) -> tensor<2x3xf32>
  %4 = "stablehlo.reverse"(%a) <{dimensions = array<i64: 1>}> : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %5 = "stablehlo.concatenate"(%a, %3) <{dimension = 1 : i64}> : (tensor<2x6xf32>, tensor<2x3xf32>) -> tensor<2x9xf32>
  %6 = "stablehlo.pad"(%3, %z) <{edge_padding_high = array<i64: 2, -1>, edge_padding_low = array<i64: 0, 1>, interior_padding = array<i64: 0, 1>}> : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x5xf32>
  %7 = "stablehlo.pad"(%3, %z) <{edge_padding_high = array<i64: 0, 0>, edge_padding_low = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %8 = "stablehlo.slice"(%7) <{limit_indices = array<i64: 2, 3>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %9 = "stablehlo.negate"(%8) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  "func.return"() : () -> ()
}) : () -> ()
