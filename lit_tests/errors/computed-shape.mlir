// RUN: not plan-opt %s -p convert-stablehlo-to-tgraph 2>&1 | filecheck %s

// A shape that is data instead of being computed from sizes.
// CHECK-NOT: Traceback
// CHECK:     computed-shape.mlir:8:8: error: stablehlo.dynamic_iota is not supported with a shape that is not computed from sizes
"func.func"() <{function_type = (tensor<1xi32>) -> tensor<?xf32>, sym_name = "main"}> ({
^bb0(%x: tensor<1xi32>):
  %0 = "stablehlo.dynamic_iota"(%x) <{iota_dimension = 0 : i64}> : (tensor<1xi32>) -> tensor<?xf32>
  "func.return"(%0) : (tensor<?xf32>) -> ()
}) : () -> ()
