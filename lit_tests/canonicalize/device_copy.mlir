// RUN: plan-opt %s -p canonicalize | filecheck %s

// A copy back to the original device is the value itself.
// CHECK-LABEL: func.func @home
// CHECK-NEXT:    func.return %a
func.func @home(%a: tensor<4xf32, "cpu:0">) -> tensor<4xf32, "cpu:0"> {
  %0 = tgraph.device_copy %a : (tensor<4xf32, "cpu:0">) -> tensor<4xf32, "gpu:0">
  %1 = tgraph.device_copy %0 : (tensor<4xf32, "gpu:0">) -> tensor<4xf32, "cpu:0">
  func.return %1 : tensor<4xf32, "cpu:0">
}

// A copy to the device that holds the value is the value itself, too.
// CHECK-LABEL: func.func @nowhere
// CHECK-NEXT:    func.return %a
func.func @nowhere(%a: tensor<4xf32, "cpu:0">) -> tensor<4xf32, "cpu:0"> {
  %0 = tgraph.device_copy %a : (tensor<4xf32, "cpu:0">) -> tensor<4xf32, "cpu:0">
  func.return %0 : tensor<4xf32, "cpu:0">
}

// A copy through a third device may be intentional, so it stays.
// CHECK-LABEL: func.func @staged
// CHECK-NEXT:    tgraph.device_copy
// CHECK-NEXT:    tgraph.device_copy
func.func @staged(%a: tensor<4xf32, "gpu:0">) -> tensor<4xf32, "gpu:1"> {
  %0 = tgraph.device_copy %a : (tensor<4xf32, "gpu:0">) -> tensor<4xf32, "cpu:0">
  %1 = tgraph.device_copy %0 : (tensor<4xf32, "cpu:0">) -> tensor<4xf32, "gpu:1">
  func.return %1 : tensor<4xf32, "gpu:1">
}

// A constant is created on the device that reads it.
// CHECK-LABEL: func.func @constant
// CHECK-NEXT:    %0 = tgraph.constant<1.000000e+00 : f32> : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    func.return %0
func.func @constant() -> tensor<4xf32, "gpu:0"> {
  %0 = tgraph.constant<1.0 : f32> : tensor<4xf32, "cpu:0">
  %1 = tgraph.device_copy %0 : (tensor<4xf32, "cpu:0">) -> tensor<4xf32, "gpu:0">
  func.return %1 : tensor<4xf32, "gpu:0">
}

// Operations with a requested device are kept, and merge only with equal operations.
// CHECK-LABEL: func.func @attributes
// CHECK-NEXT:    %0 = tgraph.reshape %a {tgraph.device = "gpu:0"} : tensor<4xf32>
// CHECK-NEXT:    %1 = tgraph.reshape %0 {tgraph.group = "g"} : (tensor<4xf32>) -> tensor<1x4xf32>
// CHECK-NEXT:    func.return %1
func.func @attributes(%a: tensor<4xf32>) -> tensor<1x4xf32> {
  %0 = tgraph.reshape %a {tgraph.device = "gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tgraph.reshape %0 {tgraph.group = "g"} : (tensor<4xf32>) -> tensor<2x2xf32>
  %2 = tgraph.reshape %1 {tgraph.group = "g"} : (tensor<2x2xf32>) -> tensor<1x4xf32>
  func.return %2 : tensor<1x4xf32>
}
