// RUN: plan-opt %s -p tgraph-infer-devices | filecheck %s

// The example in Relay's source: each copy places the operation after it; another copy
// or attribute places the one before it. %x and %y are on cpu:0 with their reader
// (Relay puts parameters on the target of the last copy).
// CHECK-LABEL: func.func @relay_example
// CHECK-SAME:    (%x: tensor<4xf32, "cpu:0">, %y: tensor<4xf32, "cpu:0">) -> tensor<4xf32, "cpu:8">
// CHECK-NEXT:    %add = tgraph.add %x, %y : tensor<4xf32, "cpu:0">
// CHECK-NEXT:    %copy1 = tgraph.device_copy %add
// CHECK-NEXT:    %copy2 = tgraph.device_copy %add
// CHECK-NEXT:    %sqrt = tgraph.sqrt %copy1 : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %copy3 = tgraph.device_copy %sqrt
// CHECK-NEXT:    %log = tgraph.log %copy2 : tensor<4xf32, "cpu:4">
// CHECK-NEXT:    %copy4 = tgraph.device_copy %log
// CHECK-NEXT:    %subtract = tgraph.subtract %copy3, %copy4 : tensor<4xf32, "cpu:8">
// CHECK-NEXT:    %exp = tgraph.exponential %subtract : tensor<4xf32, "cpu:8">
func.func @relay_example(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32, "cpu:8"> {
  %add = tgraph.add %x, %y {tgraph.device = "cpu:0"} : tensor<4xf32>
  %copy1 = tgraph.device_copy %add : (tensor<4xf32>) -> tensor<4xf32, "gpu:0">
  %sqrt = tgraph.sqrt %copy1 : tensor<4xf32, "gpu:0">
  %copy3 = tgraph.device_copy %sqrt : (tensor<4xf32, "gpu:0">) -> tensor<4xf32, "cpu:8">
  %copy2 = tgraph.device_copy %add : (tensor<4xf32>) -> tensor<4xf32, "cpu:4">
  %log = tgraph.log %copy2 : tensor<4xf32, "cpu:4">
  %copy4 = tgraph.device_copy %log : (tensor<4xf32, "cpu:4">) -> tensor<4xf32, "cpu:8">
  %subtract = tgraph.subtract %copy3, %copy4 : tensor<4xf32, "cpu:8">
  %exp = tgraph.exponential %subtract : tensor<4xf32, "cpu:8">
  func.return %exp : tensor<4xf32, "cpu:8">
}

// Two results on two devices. No copy depends on %side, which is on cpu:0 as it shares
// an operand with %e. (Relay: the target of the last copy.)
// CHECK-LABEL: func.func @two_results
// CHECK-SAME:    -> (tensor<4xf32, "gpu:0">, tensor<4xf32, "cpu:0">)
// CHECK-NEXT:    %e = tgraph.exponential %a : tensor<4xf32, "cpu:0">
// CHECK-NEXT:    %far = tgraph.device_copy %e
// CHECK-NEXT:    %side = tgraph.abs %e : tensor<4xf32, "cpu:0">
// CHECK-NEXT:    %back = tgraph.negate %far : tensor<4xf32, "gpu:0">
func.func @two_results(%a: tensor<4xf32> {tgraph.device = "cpu:0"}) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = tgraph.exponential %a : tensor<4xf32>
  %side = tgraph.abs %e : tensor<4xf32>
  %far = tgraph.device_copy %e {tgraph.device = "gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %back = tgraph.negate %far : tensor<4xf32>
  func.return %back, %side : tensor<4xf32>, tensor<4xf32>
}

// From a reader back to its operands: both are on gpu:0, as %far is.
// CHECK-LABEL: func.func @back_to_operands
// CHECK-SAME:    (%a: tensor<4xf32, "cpu:0">, %b: tensor<4xf32, "gpu:0">)
// CHECK-NEXT:    %far = tgraph.device_copy %a
// CHECK-NEXT:    %n = tgraph.negate %b : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %s = tgraph.add %n, %far : tensor<4xf32, "gpu:0">
func.func @back_to_operands(%a: tensor<4xf32> {tgraph.device = "cpu:0"}, %b: tensor<4xf32>) -> tensor<4xf32> {
  %far = tgraph.device_copy %a {tgraph.device = "gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %n = tgraph.negate %b : tensor<4xf32>
  %s = tgraph.add %n, %far : tensor<4xf32>
  func.return %s : tensor<4xf32>
}

// An argument and a constant that both sides read are on the device of the first
// reader, with a copy for the other one. (Relay has no copy.)
// CHECK-LABEL: func.func @read_on_both_sides
// CHECK-SAME:    (%a: tensor<4xf32, "cpu:0">)
// CHECK-NEXT:    %[[A:.*]] = tgraph.device_copy %a
// CHECK-NEXT:    %c = tgraph.constant<1.000000e+00 : f32> : tensor<4xf32, "cpu:0">
// CHECK-NEXT:    %[[C:.*]] = tgraph.device_copy %c
// CHECK-NEXT:    %n = tgraph.add %a, %c : tensor<4xf32, "cpu:0">
// CHECK-NEXT:    %far = tgraph.device_copy %n
// CHECK-NEXT:    %x = tgraph.add %far, %[[A]] : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %y = tgraph.add %x, %[[C]] : tensor<4xf32, "gpu:0">
func.func @read_on_both_sides(%a: tensor<4xf32>) -> tensor<4xf32> {
  %c = tgraph.constant<1.0 : f32> : tensor<4xf32>
  %n = tgraph.add %a, %c {tgraph.device = "cpu:0"} : tensor<4xf32>
  %far = tgraph.device_copy %n {tgraph.device = "gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %x = tgraph.add %far, %a : tensor<4xf32>
  %y = tgraph.add %x, %c : tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// A variable is on the device of its readers; assigned values are copied there.
// CHECK-LABEL: func.func @variable
// CHECK-SAME:    (%v: !tgraph.variable<tensor<4xf32, "cpu:0">>)
// CHECK:         %far = tgraph.device_copy %n
// CHECK-NEXT:    %x = tgraph.abs %far : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %[[X:.*]] = tgraph.device_copy %x
// CHECK-NEXT:    tgraph.assign %v, %[[X]] : tensor<4xf32, "cpu:0">
func.func @variable(%v: !tgraph.variable<tensor<4xf32>>) {
  %r = tgraph.read %v : tensor<4xf32>
  %n = tgraph.negate %r {tgraph.device = "cpu:0"} : tensor<4xf32>
  %far = tgraph.device_copy %n {tgraph.device = "gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %x = tgraph.abs %far : tensor<4xf32>
  tgraph.assign %v, %x : tensor<4xf32>
  func.return
}

// Without any named device, nothing changes.
// CHECK-LABEL: func.func @untouched
// CHECK-NEXT:    tgraph.negate %a : tensor<4xf32>
func.func @untouched(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.negate %a : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
