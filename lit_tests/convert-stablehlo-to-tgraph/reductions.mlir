// RUN: plan-opt %s -p convert-stablehlo-to-tgraph | filecheck %s

// An initial value that is the identity needs no operation; other values do.
// CHECK-LABEL: @reduce
// CHECK:         %1 = tgraph.reduce %arg0 {kind = "maximum", dimensions = array<i64: 0>} : (tensor<8x4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %2 = tgraph.reduce %arg0 {kind = "add", dimensions = array<i64: 1>} : (tensor<8x4xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %3 = tgraph.broadcast_in_dim %arg1 {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT:    %4 = tgraph.add %2, %3 : tensor<8xf32>
"func.func"() <{function_type = (tensor<8x4xf32>, tensor<f32>) -> (), sym_name = "reduce"}> ({
^bb0(%x: tensor<8x4xf32>, %init: tensor<f32>):
  %0 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
  %1 = "stablehlo.reduce"(%x, %0) <{dimensions = array<i64: 0>}> ({
  ^bb1(%a: tensor<f32>, %b: tensor<f32>):
    %3 = "stablehlo.maximum"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%3) : (tensor<f32>) -> ()
  }) : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = "stablehlo.reduce"(%x, %init) <{dimensions = array<i64: 1>}> ({
  ^bb1(%a: tensor<f32>, %b: tensor<f32>):
    %3 = "stablehlo.add"(%b, %a) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%3) : (tensor<f32>) -> ()
  }) : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
  "func.return"() : () -> ()
}) : () -> ()

// Pooling and its gradient; the initial value may be a broadcast.
// CHECK-LABEL: @windows
// CHECK:         tgraph.reduce_window %arg0 {kind = "add", window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>} : (tensor<8x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT:    tgraph.select_and_scatter %arg0, %arg1 {kind = "maximum", window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>} : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x4xf32>
"func.func"() <{function_type = (tensor<8x4xf32>, tensor<4x2xf32>) -> (), sym_name = "windows"}> ({
^bb0(%x: tensor<8x4xf32>, %g: tensor<4x2xf32>):
  %0 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
  %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<f32>
  %2 = "stablehlo.reduce_window"(%x, %1) <{padding = dense<[[0, 0], [0, 1]]> : tensor<2x2xi64>, window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 1>}> ({
  ^bb1(%a: tensor<f32>, %b: tensor<f32>):
    %3 = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%3) : (tensor<f32>) -> ()
  }) : (tensor<8x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %4 = "stablehlo.select_and_scatter"(%x, %g, %0) <{padding = dense<0> : tensor<2x2xi64>, window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}> ({
  ^bb1(%a: tensor<f32>, %b: tensor<f32>):
    %5 = "stablehlo.compare"(%a, %b) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%5) : (tensor<i1>) -> ()
  }, {
  ^bb1(%a: tensor<f32>, %b: tensor<f32>):
    %5 = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%5) : (tensor<f32>) -> ()
  }) : (tensor<8x4xf32>, tensor<4x2xf32>, tensor<f32>) -> tensor<8x4xf32>
  "func.return"() : () -> ()
}) : () -> ()
