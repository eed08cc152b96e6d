// RUN: plan-opt %s -p convert-stablehlo-to-tgraph,canonicalize | filecheck %s

// The form of jax.export: the symbol n is computed from a size, which thus is 2*n + 1;
// the second argument's size is asserted to be n. Other requirements stay.
// CHECK:      func.func public @main(%arg0: tensor<?xf32, #tgraph.dims<2*n + 1>>, %arg1: tensor<?xf32, #tgraph.dims<n>>) -> (tensor<?x3xf32, #tgraph.dims<n>>, tensor<i32>)
// CHECK-SAME: attributes {tgraph.requires = #tgraph.dims<n - 8>}
// CHECK-NEXT:   %0 = tgraph.broadcast_in_dim %arg1 {broadcast_dimensions = array<i64: 0>} : (tensor<?xf32, #tgraph.dims<n>>) -> tensor<?x3xf32, #tgraph.dims<n>>
// CHECK-NEXT:   %1 = tgraph.size {value = #tgraph.dims<3*n>} : tensor<i32>
// CHECK-NEXT:   func.return %0, %1
"func.func"() <{function_type = (tensor<?xf32>, tensor<?xf32>) -> (tensor<?x3xf32>, tensor<i32>), sym_name = "main", sym_visibility = "public"}> ({
^bb0(%x: tensor<?xf32>, %y: tensor<?xf32>):
  %one = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
  %two = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
  %eight = "stablehlo.constant"() <{value = dense<8> : tensor<i32>}> : () -> tensor<i32>
  %0 = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
  %1 = "stablehlo.subtract"(%0, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %n = "stablehlo.divide"(%1, %two) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %2 = "stablehlo.get_dimension_size"(%y) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
  %3 = "stablehlo.compare"(%2, %n) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
  "stablehlo.custom_call"(%3, %2) <{call_target_name = "shape_assertion", has_side_effect = true}> : (tensor<i1>, tensor<i32>) -> ()
  %4 = "stablehlo.compare"(%n, %eight) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
  "stablehlo.custom_call"(%4, %n) <{call_target_name = "shape_assertion", has_side_effect = true}> : (tensor<i1>, tensor<i32>) -> ()
  %5:2 = "func.call"(%n, %x, %y) <{callee = @wrapped}> : (tensor<i32>, tensor<?xf32>, tensor<?xf32>) -> (tensor<?x3xf32>, tensor<i32>)
  "func.return"(%5#0, %5#1) : (tensor<?x3xf32>, tensor<i32>) -> ()
}) : () -> ()
"func.func"() <{function_type = (tensor<i32>, tensor<?xf32>, tensor<?xf32>) -> (tensor<?x3xf32>, tensor<i32>), sym_name = "wrapped", sym_visibility = "private", arg_attrs = [{jax.global_constant = "n"}, {}, {}]}> ({
^bb0(%n: tensor<i32>, %x: tensor<?xf32>, %y: tensor<?xf32>):
  %three = "stablehlo.constant"() <{value = dense<3> : tensor<1xi32>}> : () -> tensor<1xi32>
  %0 = "stablehlo.reshape"(%n) : (tensor<i32>) -> tensor<1xi32>
  %1 = "stablehlo.concatenate"(%0, %three) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %2 = "stablehlo.dynamic_broadcast_in_dim"(%y, %1) <{broadcast_dimensions = array<i64: 0>}> : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x3xf32>
  %3 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
  %4 = "stablehlo.multiply"(%n, %3) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  "func.return"(%2, %4) : (tensor<?x3xf32>, tensor<i32>) -> ()
}) : () -> ()
