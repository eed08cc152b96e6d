// RUN: plan-opt %s -p tgraph-place-devices | filecheck %s

// Explicit copies count like inserted ones: the second %far is the first one, which is
// directly after %e; the copy back to %e's device is %e itself.
// CHECK-LABEL: func.func @shared_and_hoisted
// CHECK-NEXT:    %e = tgraph.exponential %a : tensor<4xf32, "cpu:0">
// CHECK-NEXT:    %far = tgraph.device_copy %e : (tensor<4xf32, "cpu:0">) -> tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %n = tgraph.negate %e : tensor<4xf32, "cpu:0">
// CHECK-NEXT:    %x = tgraph.add %far, %far : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %y = tgraph.add %n, %e : tensor<4xf32, "cpu:0">
// CHECK-NEXT:    func.return %x, %y
func.func @shared_and_hoisted(%a: tensor<4xf32>) -> (tensor<4xf32, "gpu:0">, tensor<4xf32>) {
  %e = tgraph.exponential %a {tgraph.device = "cpu:0"} : tensor<4xf32>
  %n = tgraph.negate %e : tensor<4xf32>
  %far = tgraph.device_copy %e : (tensor<4xf32>) -> tensor<4xf32, "gpu:0">
  %again = tgraph.device_copy %e : (tensor<4xf32>) -> tensor<4xf32, "gpu:0">
  %home = tgraph.device_copy %again {tgraph.device = "cpu:0"} : (tensor<4xf32, "gpu:0">) -> tensor<4xf32>
  %x = tgraph.add %far, %again : tensor<4xf32, "gpu:0">
  %y = tgraph.add %n, %home : tensor<4xf32>
  func.return %x, %y : tensor<4xf32, "gpu:0">, tensor<4xf32>
}

// Two targets: two copies, in the order of their first readers.
// CHECK-LABEL: func.func @two_targets
// CHECK-NEXT:    %[[G1:.*]] = tgraph.device_copy %a {{.*}} -> tensor<4xf32, "gpu:1">
// CHECK-NEXT:    %[[G0:.*]] = tgraph.device_copy %a {{.*}} -> tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %0 = tgraph.negate %[[G1]]
// CHECK-NEXT:    %1 = tgraph.negate %[[G0]]
// CHECK-NEXT:    %2 = tgraph.abs %[[G1]]
func.func @two_targets(%a: tensor<4xf32> {tgraph.device = "cpu:0"}) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = tgraph.negate %a {tgraph.device = "gpu:1"} : tensor<4xf32>
  %1 = tgraph.negate %a {tgraph.device = "gpu:0"} : tensor<4xf32>
  %2 = tgraph.abs %a {tgraph.device = "gpu:1"} : tensor<4xf32>
  func.return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// A copy does not place its operand: %0 is where %a is, because of %a's other reader.
// CHECK-LABEL: func.func @copies_are_borders
// CHECK-NEXT:    %0 = tgraph.negate %a : tensor<4xf32, "cpu:0">
// CHECK-NEXT:    %1 = tgraph.device_copy %0
// CHECK-NEXT:    %2 = tgraph.abs %a : tensor<4xf32, "cpu:0">
func.func @copies_are_borders(%a: tensor<4xf32>) -> (tensor<4xf32, "gpu:0">, tensor<4xf32>) {
  %0 = tgraph.negate %a : tensor<4xf32>
  %1 = tgraph.device_copy %0 : (tensor<4xf32>) -> tensor<4xf32, "gpu:0">
  %2 = tgraph.abs %a {tgraph.device = "cpu:0"} : tensor<4xf32>
  func.return %1, %2 : tensor<4xf32, "gpu:0">, tensor<4xf32>
}

// Values that neither scan places follow neighbors: %1 follows %a, %0 and %b follow %1.
// CHECK-LABEL: func.func @neighbors
// CHECK-SAME:    (%a: tensor<4xf32, "gpu:0">, %b: tensor<4xf32, "gpu:0">)
// CHECK-NEXT:    %0 = tgraph.negate %b : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %1 = tgraph.add %a, %0 : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %2 = tgraph.abs %a : tensor<4xf32, "gpu:0">
func.func @neighbors(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = tgraph.negate %b : tensor<4xf32>
  %1 = tgraph.add %a, %0 : tensor<4xf32>
  %2 = tgraph.abs %a {tgraph.device = "gpu:0"} : tensor<4xf32>
  func.return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// An annotated value is computed on the device of its annotation.
// CHECK-LABEL: func.func @annotated
// CHECK-SAME:    (%a: tensor<4xf32, "gpu:0">) -> tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %0 = tgraph.negate %a : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    func.return %0
func.func @annotated(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.negate %a : tensor<4xf32>
  %1 = tgraph.on_device %0, "gpu:0" : tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// An operation follows its last placed user, as in NNVM, then its operands.
// CHECK-LABEL: func.func @last_user
// CHECK-SAME:    (%a: tensor<4xf32, "gpu:0">)
// CHECK-NEXT:    %x = tgraph.floor %a : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %[[COPY:.*]] = tgraph.device_copy %x
// CHECK-NEXT:    %y = tgraph.negate %[[COPY]] : tensor<4xf32, "cpu:0">
// CHECK-NEXT:    %z = tgraph.abs %x : tensor<4xf32, "gpu:0">
func.func @last_user(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %x = tgraph.floor %a : tensor<4xf32>
  %y = tgraph.negate %x {tgraph.device = "cpu:0"} : tensor<4xf32>
  %z = tgraph.abs %x {tgraph.device = "gpu:0"} : tensor<4xf32>
  func.return %y, %z : tensor<4xf32>, tensor<4xf32>
}
