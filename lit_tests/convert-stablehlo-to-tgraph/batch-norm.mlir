// RUN: plan-opt %s -p convert-stablehlo-to-tgraph | filecheck %s

// Operations on values with the size of the channels are computed at that size.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[E:.*]] = tgraph.constant<1.000000e-03 : f32> : tensor<3xf32>
// CHECK-NEXT:    %[[V:.*]] = tgraph.add %arg4, %[[E]] : tensor<3xf32>
// CHECK-NEXT:    %[[D:.*]] = tgraph.sqrt %[[V]] : tensor<3xf32>
// CHECK-NEXT:    %[[M:.*]] = tgraph.broadcast_in_dim %arg3 {broadcast_dimensions = array<i64: 1>}
// CHECK-NEXT:    tgraph.subtract %arg0, %[[M]] : tensor<2x3xf32>
// CHECK-NEXT:    tgraph.broadcast_in_dim %[[D]]
// CHECK-NEXT:    tgraph.divide
// CHECK-NEXT:    tgraph.broadcast_in_dim %arg1
// CHECK-NEXT:    tgraph.multiply
// CHECK-NEXT:    tgraph.broadcast_in_dim %arg2
// CHECK-NEXT:    tgraph.add
// CHECK-NEXT:    func.return
"func.func"() <{function_type = (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<?x3xf32>, sym_name = "main"}> ({
^bb0(%x: tensor<2x3xf32>, %scale: tensor<3xf32>, %offset: tensor<3xf32>, %mean: tensor<3xf32>, %variance: tensor<3xf32>):
  %0 = "stablehlo.batch_norm_inference"(%x, %scale, %offset, %mean, %variance) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  "func.return"(%0) : (tensor<?x3xf32>) -> ()
}) : () -> ()
