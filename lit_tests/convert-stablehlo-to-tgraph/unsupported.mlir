// RUN: not plan-opt %s -p convert-stablehlo-to-tgraph 2>&1 | filecheck %s

// One error lists all unsupported operations, also in regions and called functions.
// CHECK-NOT:  Traceback
// CHECK:      unsupported.mlir:17:10: error: stablehlo.custom_call @spell is not supported
// CHECK:      unsupported.mlir:20:8: note: stablehlo.custom_call @magic is not supported
// CHECK-NEXT: unsupported.mlir:27:8: note: func.call is not supported: @again calls itself
// CHECK-NEXT: unsupported.mlir:29:8: note: stablehlo.reduce_window is not supported with tgraph.reshape on single elements
"func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
^bb0(%a: tensor<4xf32>):
  %0 = "stablehlo.while"(%a) ({
  ^bb1(%x: tensor<4xf32>):
    %c = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    "stablehlo.return"(%c) : (tensor<i1>) -> ()
  }, {
  ^bb1(%x: tensor<4xf32>):
    %y = "stablehlo.custom_call"(%x) <{call_target_name = "spell"}> : (tensor<4xf32>) -> tensor<4xf32>
    "stablehlo.return"(%y) : (tensor<4xf32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.custom_call"(%0) <{call_target_name = "magic"}> : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "stablehlo.compare"(%0, %1) <{compare_type = #stablehlo<comparison_type TOTALORDER>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %3 = "func.call"(%1) <{callee = @again}> : (tensor<4xf32>) -> tensor<4xf32>
  "func.return"(%3) : (tensor<4xf32>) -> ()
}) : () -> ()
"func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "again", sym_visibility = "private"}> ({
^bb0(%x: tensor<4xf32>):
  %0 = "func.call"(%x) <{callee = @again}> : (tensor<4xf32>) -> tensor<4xf32>
  %z = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
  %1 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 2>}> ({
  ^bb1(%a: tensor<f32>, %b: tensor<f32>):
    %r = "stablehlo.reshape"(%a) : (tensor<f32>) -> tensor<1xf32>
    %s = "stablehlo.reshape"(%r) : (tensor<1xf32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<3xf32>
  "func.return"(%0) : (tensor<4xf32>) -> ()
}) : () -> ()
