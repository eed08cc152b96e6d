// RUN: plan-opt %s -p 'tgraph-fuse{mode=none}' | filecheck %s

// The gradient of a relu: only %y is live after it is computed.
// CHECK-LABEL: func.func @relu
// CHECK: tgraph.compare %y, %zero {direction = "GT"}
func.func @relu(%a: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %x = tgraph.negate %a : tensor<4xf32>
  %zero = tgraph.constant<0.0 : f32> : tensor<4xf32>
  %y = tgraph.maximum %x, %zero : tensor<4xf32>
  %m = tgraph.compare %x, %zero {direction = "GT"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %d = tgraph.select %m, %g, %zero : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y, %d : tensor<4xf32>, tensor<4xf32>
}

// Swapped operands, an equal but separate constant, the inverse comparison, and
// minimum.
// CHECK-LABEL: func.func @forms
// CHECK: tgraph.compare %one_1, %y {direction = "GE"}
// CHECK: tgraph.compare %z, %b {direction = "GE"}
func.func @forms(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>, tensor<4xf32>, tensor<4xi1>) {
  %x = tgraph.negate %a : tensor<4xf32>
  %one = tgraph.constant<1.0 : f32> : tensor<4xf32>
  %y = tgraph.maximum %one, %x : tensor<4xf32>
  %one_1 = tgraph.constant<1.0 : f32> : tensor<4xf32>
  %m = tgraph.compare %one_1, %x {direction = "GE"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %w = tgraph.exponential %a : tensor<4xf32>
  %z = tgraph.minimum %w, %b : tensor<4xf32>
  %n = tgraph.compare %w, %b {direction = "GE"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  func.return %y, %m, %z, %n : tensor<4xf32>, tensor<4xi1>, tensor<4xf32>, tensor<4xi1>
}

// Unchanged: another bound, a comparison that differs from the result if both are
// equal, a comparison before the maximum, and a value that is stored anyway.
// CHECK-LABEL: func.func @kept
// CHECK: tgraph.compare %x0, %two {direction = "GT"}
// CHECK: tgraph.compare %x1, %one {direction = "GE"}
// CHECK: tgraph.compare %x2, %one {direction = "GT"}
// CHECK: tgraph.compare %x3, %one {direction = "GT"}
func.func @kept(%a: tensor<4xf32>) -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %one = tgraph.constant<1.0 : f32> : tensor<4xf32>
  %two = tgraph.constant<2.0 : f32> : tensor<4xf32>
  %x0 = tgraph.negate %a : tensor<4xf32>
  %y0 = tgraph.maximum %x0, %one : tensor<4xf32>
  %m0 = tgraph.compare %x0, %two {direction = "GT"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %x1 = tgraph.exponential %a : tensor<4xf32>
  %y1 = tgraph.maximum %x1, %one : tensor<4xf32>
  %m1 = tgraph.compare %x1, %one {direction = "GE"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %x2 = tgraph.tanh %a : tensor<4xf32>
  %m2 = tgraph.compare %x2, %one {direction = "GT"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %y2 = tgraph.maximum %x2, %one : tensor<4xf32>
  %x3 = tgraph.abs %a : tensor<4xf32>
  %y3 = tgraph.maximum %x3, %one : tensor<4xf32>
  %m3 = tgraph.compare %x3, %one {direction = "GT"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %z3 = tgraph.multiply %x3, %x3 : tensor<4xf32>
  func.return %m0, %m1, %m2, %m3, %y0, %y1, %y2, %y3, %z3 : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
