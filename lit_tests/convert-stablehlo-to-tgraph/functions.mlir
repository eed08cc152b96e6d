// RUN: plan-opt %s -p convert-stablehlo-to-tgraph | filecheck %s

// Donated arguments become variables: the first one for result 1; the second, without a
// named result, for the first remaining result of its type. The function returns the
// other results. Each call is inlined.
// CHECK:      builtin.module @step {
// CHECK-NEXT:   func.func public @main(%arg0: !tgraph.variable<tensor<4xf32>> {tgraph.result = 1 : i32}, %arg1: !tgraph.variable<tensor<4xf32>> {tgraph.result = 2 : i32}, %arg2: tensor<f32>) -> (tensor<f32> {tgraph.name = "loss"}) {
// CHECK-NEXT:     %0 = tgraph.read %arg0 : tensor<4xf32>
// CHECK-NEXT:     %1 = tgraph.read %arg1 : tensor<4xf32>
// CHECK-NEXT:     %2 = tgraph.negate %0 : tensor<4xf32>
// CHECK-NEXT:     %3 = tgraph.tanh %2 : tensor<4xf32>
// CHECK-NEXT:     %4 = tgraph.negate %1 : tensor<4xf32>
// CHECK-NEXT:     %5 = tgraph.tanh %4 : tensor<4xf32>
// CHECK-NEXT:     tgraph.assign %arg0, %3 : tensor<4xf32>
// CHECK-NEXT:     tgraph.assign %arg1, %5 : tensor<4xf32>
// CHECK-NEXT:     func.return %arg2 : tensor<f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
"builtin.module"() <{sym_name = "step"}> ({
  "func.func"() <{arg_attrs = [{tf.aliasing_output = 1 : i32}, {jax.buffer_donor = true}, {mhlo.layout_mode = "default"}], function_type = (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>), res_attrs = [{jax.result_info = "loss"}, {}, {}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<f32>):
    %0 = "func.call"(%a) <{callee = @outer}> : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "func.call"(%b) <{callee = @outer}> : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%c, %0, %1) : (tensor<f32>, tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "outer", sym_visibility = "private"}> ({
  ^bb0(%x: tensor<4xf32>):
    %0 = "func.call"(%x) <{callee = @inner}> : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%1) : (tensor<4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "inner", sym_visibility = "private"}> ({
  ^bb0(%x: tensor<4xf32>):
    %0 = "stablehlo.negate"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%0) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32} : () -> ()
