// RUN: plan-opt %s -p convert-stablehlo-to-tgraph,canonicalize | filecheck %s

// Operations on f8 compute in f32 and round the result. Operations that move elements
// stay on f8, and so does a contraction after canonicalize has removed lossless
// conversions.
// CHECK-LABEL: @main
// CHECK:       %[[X:.*]] = tgraph.convert %arg0 : (tensor<4x4xf8E4M3FN>) -> tensor<4x4xf32>
// CHECK:       %[[SUM:.*]] = tgraph.add %[[X]], %{{.*}} : tensor<4x4xf32>
// CHECK-NEXT:  %[[R:.*]] = tgraph.convert %[[SUM]] : (tensor<4x4xf32>) -> tensor<4x4xf8E4M3FN>
// CHECK-NEXT:  %[[T:.*]] = tgraph.transpose %[[R]] {{.*}} : tensor<4x4xf8E4M3FN>
// CHECK-NEXT:  %[[DOT:.*]] = tgraph.dot_general %arg0, %[[T]] {{.*}} : (tensor<4x4xf8E4M3FN>, tensor<4x4xf8E4M3FN>) -> tensor<4x4xf32>
// CHECK-NEXT:  tgraph.convert %[[DOT]] : (tensor<4x4xf32>) -> tensor<4x4xf8E4M3FN>
func.func @main(%x: tensor<4x4xf8E4M3FN>) -> tensor<4x4xf8E4M3FN> {
  %0 = "stablehlo.add"(%x, %x) : (tensor<4x4xf8E4M3FN>, tensor<4x4xf8E4M3FN>) -> tensor<4x4xf8E4M3FN>
  %1 = "stablehlo.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<4x4xf8E4M3FN>) -> tensor<4x4xf8E4M3FN>
  %2 = "stablehlo.dot"(%x, %1) : (tensor<4x4xf8E4M3FN>, tensor<4x4xf8E4M3FN>) -> tensor<4x4xf8E4M3FN>
  func.return %2 : tensor<4x4xf8E4M3FN>
}

// A float beyond the range of i4 is clamped to its limit.
// CHECK-LABEL: @limited
// CHECK-DAG:   tgraph.constant<-8.000000e+00 : f32>
// CHECK-DAG:   tgraph.constant<7.000000e+00 : f32>
// CHECK:       tgraph.clamp
// CHECK:       tgraph.convert {{.*}} : (tensor<4xf32>) -> tensor<4xi4>
func.func @limited(%x: tensor<4xf32>) -> tensor<4xi4> {
  %0 = "stablehlo.convert"(%x) : (tensor<4xf32>) -> tensor<4xi4>
  func.return %0 : tensor<4xi4>
}
