// Pipelines may contain spaces.
// RUN: plan-opt %s -p ' canonicalize , cse , tgraph-place-devices{ default = "gpu:1" }' | filecheck %s

// CHECK:      func.func @f(%a: tensor<4xf32, "gpu:1">) -> tensor<4xf32, "gpu:1"> {
// CHECK-NEXT:   %0 = tgraph.negate %a : tensor<4xf32, "gpu:1">
// CHECK-NEXT:   %1 = tgraph.add %0, %0 : tensor<4xf32, "gpu:1">
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.negate %a : tensor<4xf32>
  %1 = tgraph.negate %a : tensor<4xf32>
  %2 = tgraph.add %0, %1 : tensor<4xf32>
  func.return %2 : tensor<4xf32>
}
