// RUN: plan-opt %s -p convert-stablehlo-to-tgraph | filecheck %s

// A splat becomes one number, even if all its elements are listed.
// CHECK:      %0 = tgraph.constant<0xff800000 : f32> : tensor<f32>
// CHECK-NEXT: %1 = tgraph.constant<1.500000e+00 : f32> : tensor<4096x4096xf32>
// CHECK-NEXT: %2 = tgraph.constant<0 : i32> : tensor<1xi32>
// CHECK-NEXT: %3 = tgraph.constant<true> : tensor<2xi1>
// CHECK-NEXT: %4 = tgraph.constant<dense<[1, 2]> : tensor<2xi32>> : tensor<2xi32>
// CHECK-NEXT: %5 = tgraph.constant<dense<[true, false]> : tensor<2xi1>> : tensor<2xi1>
// CHECK-NEXT: %6 = tgraph.constant<dense<[0x7fc00000, 1.000000e+00]> : tensor<2xf32>> : tensor<2xf32>
// CHECK-NEXT: %7 = tgraph.constant<dense<[1.500000e+00, 0xff80]> : tensor<2xbf16>> : tensor<2xbf16>
// CHECK-NEXT: %8 = tgraph.iota {dimension = 1 : i64} : tensor<2x3xi32>
"func.func"() <{function_type = () -> (), sym_name = "main"}> ({
  %0 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
  %1 = "stablehlo.constant"() <{value = dense<1.5> : tensor<4096x4096xf32>}> : () -> tensor<4096x4096xf32>
  %2 = "stablehlo.constant"() <{value = dense<[0]> : tensor<1xi32>}> : () -> tensor<1xi32>
  %3 = "stablehlo.constant"() <{value = dense<[true, true]> : tensor<2xi1>}> : () -> tensor<2xi1>
  %4 = "stablehlo.constant"() <{value = dense<[1, 2]> : tensor<2xi32>}> : () -> tensor<2xi32>
  %5 = "stablehlo.constant"() <{value = dense<[true, false]> : tensor<2xi1>}> : () -> tensor<2xi1>
  %6 = "stablehlo.constant"() <{value = dense<[0x7FC00000, 1.0]> : tensor<2xf32>}> : () -> tensor<2xf32>
  %7 = "stablehlo.constant"() <{value = dense<[1.5, 0xFF80]> : tensor<2xbf16>}> : () -> tensor<2xbf16>
  %8 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<2x3xi32>
  "func.return"() : () -> ()
}) : () -> ()
