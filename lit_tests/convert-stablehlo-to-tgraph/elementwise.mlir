// RUN: plan-opt %s -p convert-stablehlo-to-tgraph | filecheck %s

// Most operations keep their names; a square becomes a product; barriers are erased.
// CHECK-LABEL: @names
// CHECK-NEXT:    %0 = tgraph.add %arg0, %arg1 : tensor<4xf32>
// CHECK-NEXT:    %1 = tgraph.multiply %0, %0 : tensor<4xf32>
// CHECK-NEXT:    %2 = tgraph.convert %1 : (tensor<4xf32>) -> tensor<4xi32>
// CHECK-NEXT:    %3 = tgraph.is_finite %1 : (tensor<4xf32>) -> tensor<4xi1>
// CHECK-NEXT:    func.return %2, %3 : tensor<4xi32>, tensor<4xi1>
"func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xi32>, tensor<4xi1>), sym_name = "names"}> ({
^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
  %0 = "stablehlo.add"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.optimization_barrier"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "chlo.square"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "stablehlo.convert"(%2) : (tensor<4xf32>) -> tensor<4xi32>
  %4 = "stablehlo.is_finite"(%2) : (tensor<4xf32>) -> tensor<4xi1>
  "func.return"(%3, %4) : (tensor<4xi32>, tensor<4xi1>) -> ()
}) : () -> ()

// Scalar predicates and bounds are broadcast: all operands have one shape in tgraph.
// CHECK-LABEL: @scalars
// CHECK-NEXT:    %0 = tgraph.compare %arg0, %arg1 {direction = "LT"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT:    %1 = tgraph.broadcast_in_dim %0 {broadcast_dimensions = array<i64>} : (tensor<i1>) -> tensor<4xi1>
// CHECK-NEXT:    %2 = tgraph.select %1, %arg2, %arg2
// CHECK-NEXT:    %3 = tgraph.broadcast_in_dim %arg0 {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT:    %4 = tgraph.clamp %3, %arg2, %2 : tensor<4xf32>
"func.func"() <{function_type = (tensor<f32>, tensor<f32>, tensor<4xf32>) -> tensor<4xf32>, sym_name = "scalars"}> ({
^bb0(%low: tensor<f32>, %high: tensor<f32>, %x: tensor<4xf32>):
  %0 = "stablehlo.compare"(%low, %high) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %1 = "stablehlo.select"(%0, %x, %x) : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "stablehlo.clamp"(%low, %x, %1) : (tensor<f32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  "func.return"(%2) : (tensor<4xf32>) -> ()
}) : () -> ()
