// RUN: plan-opt %s -p 'tgraph-place-devices{default="cpu:0"}' | filecheck %s

// One copy for each value and target, after the definition of the value; an attribute
// places a result; a constant is created where it is used.
// CHECK-LABEL: func.func @two_devices
// CHECK-SAME:    (%a: tensor<4xf32, "cpu:0">, %b: tensor<4xf32, "gpu:0">) -> tensor<4xf32, "cpu:0">
// CHECK-NEXT:    %c = tgraph.constant<1.000000e+00 : f32> : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %e = tgraph.exponential %a : tensor<4xf32, "cpu:0">
// CHECK-NEXT:    %[[COPY:.*]] = tgraph.device_copy %e : (tensor<4xf32, "cpu:0">) -> tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %x = tgraph.add %b, %[[COPY]] : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %y = tgraph.multiply %x, %[[COPY]] : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %z = tgraph.add %y, %c : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %[[HOME:.*]] = tgraph.device_copy %z : (tensor<4xf32, "gpu:0">) -> tensor<4xf32, "cpu:0">
// CHECK-NEXT:    func.return %[[HOME]] : tensor<4xf32, "cpu:0">
func.func @two_devices(%a: tensor<4xf32>, %b: tensor<4xf32> {tgraph.device = "gpu:0"}) -> (tensor<4xf32> {tgraph.device = "cpu:0"}) {
  %c = tgraph.constant<1.0 : f32> : tensor<4xf32>
  %e = tgraph.exponential %a {tgraph.device = "cpu:0"} : tensor<4xf32>
  %x = tgraph.add %b, %e : tensor<4xf32>
  %y = tgraph.multiply %x, %e : tensor<4xf32>
  %z = tgraph.add %y, %c : tensor<4xf32>
  func.return %z : tensor<4xf32>
}

// A variable keeps its device: the new value is copied to it.
// CHECK-LABEL: func.func @variable
// CHECK:         %r = tgraph.read %v : tensor<4xf32, "gpu:1">
// CHECK-NEXT:    %[[HERE:.*]] = tgraph.device_copy %r : (tensor<4xf32, "gpu:1">) -> tensor<4xf32, "cpu:0">
// CHECK-NEXT:    %n = tgraph.negate %[[HERE]] : tensor<4xf32, "cpu:0">
// CHECK-NEXT:    %[[BACK:.*]] = tgraph.device_copy %n : (tensor<4xf32, "cpu:0">) -> tensor<4xf32, "gpu:1">
// CHECK-NEXT:    tgraph.assign %v, %[[BACK]] : tensor<4xf32, "gpu:1">
func.func @variable(%v: !tgraph.variable<tensor<4xf32>> {tgraph.device = "gpu:1"}) {
  %r = tgraph.read %v : tensor<4xf32>
  %n = tgraph.negate %r {tgraph.device = "cpu:0"} : tensor<4xf32>
  tgraph.assign %v, %n : tensor<4xf32>
  func.return
}

// Without annotations, the default device is used, also in the body of a fusion.
// CHECK-LABEL: func.func @default
// CHECK-NEXT:    %0 = tgraph.fusion(%x = %a) : tensor<4xf32, "cpu:0"> {
// CHECK-NEXT:      %1 = tgraph.negate %x : tensor<4xf32, "cpu:0">
func.func @default(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.fusion(%x = %a) : tensor<4xf32> {
    %1 = tgraph.negate %x : tensor<4xf32>
    tgraph.yield %1 : tensor<4xf32>
  }
  func.return %0 : tensor<4xf32>
}

// An argument follows its first user.
// CHECK-LABEL: func.func @backward
// CHECK-SAME:    (%a: tensor<4xf32, "gpu:0">)
// CHECK-NEXT:    %0 = tgraph.negate %a : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %1 = tgraph.abs %0 : tensor<4xf32, "gpu:0">
func.func @backward(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.negate %a : tensor<4xf32>
  %1 = tgraph.abs %0 {tgraph.device = "gpu:0"} : tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// A constant of another dialect has the type of its elements in an attribute.
// CHECK-LABEL: func.func @constant
// CHECK-NEXT:    %c = arith.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32, "cpu:0">
func.func @constant() -> tensor<2xf32> {
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  func.return %c : tensor<2xf32>
}
