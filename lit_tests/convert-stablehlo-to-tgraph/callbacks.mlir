// REQUIRES: jax
// RUN: plan-opt %s -p convert-stablehlo-to-tgraph | filecheck %s

// Tokens go, and with them the number in `tf.aliasing_output` changes: the variable holds
// the first result.
// CHECK-LABEL: @main
// CHECK-SAME:    (%arg0: !tgraph.variable<tensor<4xf32>> {tgraph.result = 0 : i32}) {
func.func public @main(
    %t: !stablehlo.token {jax.token = true},
    %x: tensor<4xf32> {tf.aliasing_output = 1 : i32})
    -> (!stablehlo.token {jax.token = true}, tensor<4xf32>) {
  %c = stablehlo.constant dense<3> : tensor<i32>
  // CHECK: tgraph.while {{.*}} -> (tensor<i32>, tensor<4xf32>)
  %0:3 = stablehlo.while(%s = %t, %i = %c, %y = %x) : !stablehlo.token, tensor<i32>, tensor<4xf32>
  cond {
    %1 = stablehlo.compare NE, %i, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    // CHECK:      } do {
    // CHECK:        %[[NEXT:.*]] = tgraph.host_callback %{{.*}} {callback = 2 : i64, has_side_effect} : tensor<4xf32>
    // CHECK:        tgraph.assign %{{.*}}, %[[NEXT]]
    %1:2 = func.call @call(%s, %y) : (!stablehlo.token, tensor<4xf32>) -> (!stablehlo.token, tensor<4xf32>)
    %2 = stablehlo.add %i, %i : tensor<i32>
    stablehlo.return %1#0, %2, %1#1 : !stablehlo.token, tensor<i32>, tensor<4xf32>
  }
  // A branch without results stays if it has an effect.
  // CHECK:      tgraph.if {{.*}} -> () {
  // CHECK:        tgraph.host_callback {callback = 1 : i64, has_side_effect} : () -> ()
  // CHECK-NEXT:   tgraph.yield
  // CHECK-NOT:  tgraph.if
  "stablehlo.case"(%0#1) ({
    stablehlo.return
  }, {
    stablehlo.custom_call @xla_ffi_python_cpu_callback() {has_side_effect = true, mhlo.backend_config = {index = 1 : ui64}} : () -> ()
    stablehlo.return
  }) : (tensor<i32>) -> ()
  "stablehlo.case"(%0#1) ({
    stablehlo.return
  }, {
    %1 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%c) {mhlo.backend_config = {index = 0 : ui64}} : (tensor<i32>) -> tensor<i32>
    stablehlo.return
  }) : (tensor<i32>) -> ()
  return %0#0, %0#2 : !stablehlo.token, tensor<4xf32>
}
func.func private @call(%t: !stablehlo.token, %x: tensor<4xf32>) -> (!stablehlo.token, tensor<4xf32>) {
  %0:2 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%t, %x) {has_side_effect = true, mhlo.backend_config = {index = 2 : ui64}} : (!stablehlo.token, tensor<4xf32>) -> (!stablehlo.token, tensor<4xf32>)
  return %0#0, %0#1 : !stablehlo.token, tensor<4xf32>
}
