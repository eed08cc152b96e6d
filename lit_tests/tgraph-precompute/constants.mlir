// RUN: plan-opt %s -p 'tgraph-precompute{fold-bytes=64}' | filecheck %s

// CHECK-LABEL: func.func @main

// A splat is computed as one number, however large the tensor is.
// CHECK-NEXT:    tgraph.constant<4.000000e+00 : f32> : tensor<1024xf32>

// A mask of 16 bytes, with all its operands, is small enough; one of 100 bytes is not.
// CHECK-NEXT:    tgraph.constant<dense<{{\[}}[true, false, false, false], [true, true, false, false], [true, true, true, false], [true, true, true, true]]> : tensor<4x4xi1>>
// CHECK-NEXT:    tgraph.iota
// CHECK-NEXT:    tgraph.iota
// CHECK-NEXT:    tgraph.compare
// CHECK-NEXT:    func.return
func.func @main() -> (tensor<1024xf32>, tensor<4x4xi1>, tensor<10x10xi1>) {
  %a = tgraph.constant<2.0 : f32> : tensor<1024xf32>
  %b = tgraph.multiply %a, %a : tensor<1024xf32>
  %i = tgraph.iota {dimension = 0 : i64} : () -> tensor<4x4xi32>
  %j = tgraph.iota {dimension = 1 : i64} : () -> tensor<4x4xi32>
  %c = tgraph.compare %i, %j {direction = "GE"} : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi1>
  %k = tgraph.iota {dimension = 0 : i64} : () -> tensor<10x10xi32>
  %l = tgraph.iota {dimension = 1 : i64} : () -> tensor<10x10xi32>
  %d = tgraph.compare %k, %l {direction = "GE"} : (tensor<10x10xi32>, tensor<10x10xi32>) -> tensor<10x10xi1>
  func.return %b, %c, %d : tensor<1024xf32>, tensor<4x4xi1>, tensor<10x10xi1>
}
