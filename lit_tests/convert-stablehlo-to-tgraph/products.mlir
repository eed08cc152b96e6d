// RUN: plan-opt %s -p convert-stablehlo-to-tgraph | filecheck %s

// CHECK-LABEL: @dot
// CHECK-NEXT:    %0 = tgraph.dot_general %arg0, %arg1 {lhs_batching_dimensions = array<i64: 0>, rhs_batching_dimensions = array<i64: 1>, lhs_contracting_dimensions = array<i64: 2>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<2x3x4xf16>, tensor<4x2x5xf16>) -> tensor<2x3x5xf16>
// If the result type is wider, the operands are converted to it.
// CHECK-NEXT:    %1 = tgraph.convert %arg0 : (tensor<2x3x4xf16>) -> tensor<2x3x4xf32>
// CHECK-NEXT:    %2 = tgraph.convert %arg1 : (tensor<4x2x5xf16>) -> tensor<4x2x5xf32>
// CHECK-NEXT:    %3 = tgraph.dot_general %1, %2
// CHECK-SAME:      -> tensor<3x4x4x5xf32>
"func.func"() <{function_type = (tensor<2x3x4xf16>, tensor<4x2x5xf16>) -> (), sym_name = "dot"}> ({
^bb0(%a: tensor<2x3x4xf16>, %b: tensor<4x2x5xf16>):
  %0 = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<2x3x4xf16>, tensor<4x2x5xf16>) -> tensor<2x3x5xf16>
  %1 = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<2x3x4xf16>, tensor<4x2x5xf16>) -> tensor<3x4x4x5xf32>
  "func.return"() : () -> ()
}) : () -> ()

// A window reversed in one dimension becomes a kernel reversed in it.
// CHECK-LABEL: @convolution
// CHECK-NEXT:    %0 = tgraph.reverse %arg1 {dimensions = array<i64: 3>} : tensor<6x4x3x2xf32>
// CHECK-NEXT:    %1 = tgraph.convolution %arg0, %0 {dim_labels = "b01f_oi01->bf01", window_strides = array<i64: 2, 1>, padding_low = array<i64: 1, 0>, padding_high = array<i64: 2, 3>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 2>, feature_group_count = 2 : i64} : (tensor<2x9x8x8xf32>, tensor<6x4x3x2xf32>) -> tensor<2x6x5x9xf32>
"func.func"() <{function_type = (tensor<2x9x8x8xf32>, tensor<6x4x3x2xf32>) -> (), sym_name = "convolution"}> ({
^bb0(%x: tensor<2x9x8x8xf32>, %k: tensor<6x4x3x2xf32>):
  %0 = "stablehlo.convolution"(%x, %k) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[o, i, 0, 1]->[b, f, 0, 1]>, feature_group_count = 2 : i64, padding = dense<[[1, 2], [0, 3]]> : tensor<2x2xi64>, rhs_dilation = array<i64: 1, 2>, window_reversal = array<i1: false, true>, window_strides = array<i64: 2, 1>}> : (tensor<2x9x8x8xf32>, tensor<6x4x3x2xf32>) -> tensor<2x6x5x9xf32>
  "func.return"() : () -> ()
}) : () -> ()
