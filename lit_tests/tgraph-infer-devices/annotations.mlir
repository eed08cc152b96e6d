// RUN: plan-opt %s -p 'tgraph-infer-devices{fallback="cpu:0"}' | filecheck %s

// Relay's test_redundant_annotation: %add has two equal annotations, and its readers
// are on the fallback. Relay makes two copies; one is enough.
// CHECK-LABEL: func.func @redundant
// CHECK-SAME:    (%x: tensor<3xf32, "gpu:0">, %y: tensor<3xf32, "gpu:0">, %z: tensor<3xf32, "cpu:0">)
// CHECK-NEXT:    %add = tgraph.add %x, %y : tensor<3xf32, "gpu:0">
// CHECK-NEXT:    %[[ADD:.*]] = tgraph.device_copy %add : (tensor<3xf32, "gpu:0">) -> tensor<3xf32, "cpu:0">
// CHECK-NEXT:    %sub1 = tgraph.subtract %[[ADD]], %z : tensor<3xf32, "cpu:0">
// CHECK-NEXT:    %sub2 = tgraph.subtract %[[ADD]], %z : tensor<3xf32, "cpu:0">
// CHECK-NEXT:    func.return
func.func @redundant(%x: tensor<3xf32>, %y: tensor<3xf32>, %z: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %add = tgraph.add %x, %y : tensor<3xf32>
  %a1 = tgraph.on_device %add, "gpu:0" : tensor<3xf32>
  %a2 = tgraph.on_device %add, "gpu:0" : tensor<3xf32>
  %sub1 = tgraph.subtract %a1, %z : tensor<3xf32>
  %sub2 = tgraph.subtract %a2, %z : tensor<3xf32>
  func.return %sub1, %sub2 : tensor<3xf32>, tensor<3xf32>
}

// test_annotate_all: no copies, and all on gpu:0 (Relay loses the annotation).
// CHECK-LABEL: func.func @all_alike
// CHECK-NEXT:    tgraph.add %x, %y : tensor<3xf32, "gpu:0">
// CHECK-NEXT:    tgraph.subtract %add, %y : tensor<3xf32, "gpu:0">
// CHECK-NEXT:    func.return
func.func @all_alike(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {
  %add = tgraph.add %x, %y : tensor<3xf32>
  %a = tgraph.on_device %add, "gpu:0" : tensor<3xf32>
  %sub = tgraph.subtract %a, %y : tensor<3xf32>
  %s = tgraph.on_device %sub, "gpu:0" : tensor<3xf32>
  func.return %s : tensor<3xf32>
}

// An operation without annotation does not follow one that shares its operand.
// CHECK-LABEL: func.func @argument_in_common
// CHECK-SAME:    (%x: tensor<3xf32, "gpu:0">)
// CHECK-NEXT:    %[[X:.*]] = tgraph.device_copy %x : (tensor<3xf32, "gpu:0">) -> tensor<3xf32, "cpu:0">
// CHECK-NEXT:    %n = tgraph.negate %x : tensor<3xf32, "gpu:0">
// CHECK-NEXT:    %b = tgraph.abs %[[X]] : tensor<3xf32, "cpu:0">
func.func @argument_in_common(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %n = tgraph.negate %x : tensor<3xf32>
  %a = tgraph.on_device %n, "gpu:0" : tensor<3xf32>
  %b = tgraph.abs %x : tensor<3xf32>
  func.return %a, %b : tensor<3xf32>, tensor<3xf32>
}

// Explicit copies place operations, whatever the fallback.
// CHECK-LABEL: func.func @written_copy
// CHECK-NEXT:    %n = tgraph.negate %x : tensor<3xf32, "gpu:0">
// CHECK-NEXT:    %far = tgraph.device_copy %n : (tensor<3xf32, "gpu:0">) -> tensor<3xf32, "gpu:1">
// CHECK-NEXT:    tgraph.abs %far : tensor<3xf32, "gpu:1">
func.func @written_copy(%x: tensor<3xf32>) -> tensor<3xf32, "gpu:1"> {
  %n = tgraph.negate %x : tensor<3xf32>
  %a = tgraph.on_device %n, "gpu:0" : tensor<3xf32>
  %far = tgraph.device_copy %a : (tensor<3xf32>) -> tensor<3xf32, "gpu:1">
  %b = tgraph.abs %far : tensor<3xf32, "gpu:1">
  func.return %b : tensor<3xf32, "gpu:1">
}
