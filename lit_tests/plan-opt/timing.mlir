// RUN: plan-opt %s -p 'plan-pipeline,cse' --timing -o /dev/null 2>&1 | filecheck %s

// CHECK:      CPU ms   share
// CHECK-NEXT: %  read
// CHECK-NEXT: %  plan-pipeline
// CHECK-NEXT: %    plan-check
// CHECK-NEXT: %    convert-stablehlo-to-tgraph
// CHECK:      %    plan-memory
// CHECK-NEXT: %  cse
// CHECK-NEXT: %  verify
// CHECK-NEXT: %  print
// CHECK-NEXT: 100.0%  total
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.negate %a : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
