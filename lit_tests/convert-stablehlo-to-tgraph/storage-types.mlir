// RUN: plan-opt %s -p convert-stablehlo-to-tgraph,canonicalize | filecheck %s

// Each operation on f8 computes in f32 and rounds its result. What moves elements takes
// them as they are, and so does a contraction, once canonicalize has removed conversions
// that lose nothing.
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

// A float beyond the range of i4 becomes its limit.
// CHECK-LABEL: @limited
// CHECK-DAG:   tgraph.constant<-8.000000e+00 : f32>
// CHECK-DAG:   tgraph.constant<7.000000e+00 : f32>
// CHECK:       tgraph.clamp
// CHECK:       tgraph.convert {{.*}} : (tensor<4xf32>) -> tensor<4xi4>
func.func @limited(%x: tensor<4xf32>) -> tensor<4xi4> {
  %0 = "stablehlo.convert"(%x) : (tensor<4xf32>) -> tensor<4xi4>
  func.return %0 : tensor<4xi4>
}
