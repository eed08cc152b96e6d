// RUN: plan-opt %s | plan-opt - | filecheck %s
// RUN: plan-opt %s --print-op-generic | plan-opt | filecheck %s

// CHECK:      func.func @f(%a: !tgraph.variable<tensor<4xf32>>) -> tensor<4xf32> {
// CHECK-NEXT:   %0 = tgraph.read %a : tensor<4xf32>
// CHECK-NEXT:   %1 = tgraph.negate %0 : tensor<4xf32>
// CHECK-NEXT:   tgraph.assign %a, %1 : tensor<4xf32>
func.func @f(%a: !tgraph.variable<tensor<4xf32>>) -> tensor<4xf32> {
  %0 = tgraph.read %a : tensor<4xf32>
  %1 = tgraph.negate %0 : tensor<4xf32>
  tgraph.assign %a, %1 : tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
