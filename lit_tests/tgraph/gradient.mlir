// RUN: plan-opt %s | filecheck %s
// RUN: plan-opt %s | plan-opt | filecheck %s
// RUN: plan-opt %s --print-op-generic | plan-opt | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK:         %0, %1 = tgraph.gradient %x, %x wrt %x, %v : tensor<f32>, tensor<f32> wrt tensor<f32>, !tgraph.variable<tensor<2xf32>>
// CHECK-NEXT:    %2 = tgraph.gradient %y heads %y wrt %y {mirror = "cheap"} : tensor<2xf32> wrt tensor<2xf32>
func.func @main(%x: tensor<f32>, %y: tensor<2xf32>, %v: !tgraph.variable<tensor<2xf32>>) {
  %0, %1 = tgraph.gradient %x, %x wrt %x, %v : tensor<f32>, tensor<f32> wrt tensor<f32>, !tgraph.variable<tensor<2xf32>>
  %2 = tgraph.gradient %y heads %y wrt %y {mirror = "cheap"} : tensor<2xf32> wrt tensor<2xf32>
  func.return
}
