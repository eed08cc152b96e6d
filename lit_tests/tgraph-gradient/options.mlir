// RUN: plan-opt %s -p 'tgraph-gradient{wrt=v,0}' | filecheck %s
// RUN: plan-opt %s -p 'tgraph-gradient{of=1 function=other}' | filecheck %s --check-prefix=HEAD

// Gradients become more results; a variable's gradient is that of its old contents.
// CHECK-LABEL: func.func @main
// CHECK-SAME:    %x: tensor<f32>, %n: tensor<i32>, %v: !tgraph.variable<tensor<f32>>) -> (tensor<f32>, tensor<f32>, tensor<f32>)
// CHECK:         tgraph.assign %v, %y
// CHECK-NEXT:    %[[ONE:.*]] = tgraph.constant<1.000000e+00 : f32>
// CHECK-NEXT:    %[[GV:.*]] = tgraph.multiply %[[ONE]], %x
// CHECK-NEXT:    %[[GX:.*]] = tgraph.multiply %[[ONE]], %w
// CHECK-NEXT:    func.return %y, %[[GV]], %[[GX]] : tensor<f32>, tensor<f32>, tensor<f32>
func.func @main(%x: tensor<f32>, %n: tensor<i32>, %v: !tgraph.variable<tensor<f32>>) -> tensor<f32> {
  %w = tgraph.read %v : tensor<f32>
  %y = tgraph.multiply %w, %x : tensor<f32>
  tgraph.assign %v, %y : tensor<f32>
  func.return %y : tensor<f32>
}

// A result that is no scalar has a head gradient; only float arguments have gradients.
// HEAD-LABEL: func.func @other
// HEAD-SAME:    %x: tensor<4xf32>, %n: tensor<i32>, %head: tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>, tensor<4xf32>)
// HEAD:         %[[G:.*]] = tgraph.multiply %head, %y : tensor<4xf32>
// HEAD-NEXT:    func.return %n, %y, %[[G]]
func.func @other(%x: tensor<4xf32>, %n: tensor<i32>) -> (tensor<i32>, tensor<4xf32>) {
  %y = tgraph.exponential %x : tensor<4xf32>
  func.return %n, %y : tensor<i32>, tensor<4xf32>
}
