// RUN: plan-opt %s -p 'tgraph-place-devices{groups="dev1=cpu:0","dev2=gpu:0" devices="cpu:0","gpu:0"}' | filecheck %s

// NNVM's test_place_device: one copy of %cast serves three reads; %add1 and %cast
// follow %x, and %add3 follows its first operand.
// CHECK-LABEL: func.func @nnvm_test
// CHECK-SAME:    (%x: tensor<4xf32, "cpu:0">) -> tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %add1 = tgraph.add %x, %x : tensor<4xf32, "cpu:0">
// CHECK-NEXT:    %cast = tgraph.floor %add1 : tensor<4xf32, "cpu:0">
// CHECK-NEXT:    %[[CAST:.*]] = tgraph.device_copy %cast : (tensor<4xf32, "cpu:0">) -> tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %add2 = tgraph.add %[[CAST]], %[[CAST]] : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %exp = tgraph.exponential %[[CAST]] : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %add3 = tgraph.add %add2, %exp : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    func.return %add3
func.func @nnvm_test(%x: tensor<4xf32> {tgraph.group = "dev1"}) -> tensor<4xf32> {
  %add1 = tgraph.add %x, %x : tensor<4xf32>
  %cast = tgraph.floor %add1 : tensor<4xf32>
  %add2 = tgraph.add %cast, %cast {tgraph.group = "dev2"} : tensor<4xf32>
  %exp = tgraph.exponential %cast {tgraph.group = "dev2"} : tensor<4xf32>
  %add3 = tgraph.add %add2, %exp : tensor<4xf32>
  func.return %add3 : tensor<4xf32>
}

// a * b on one device, + c on another: %c is on its reader's device; only %m is copied.
// CHECK-LABEL: func.func @ab_plus_c
// CHECK-SAME:    (%a: tensor<4xf32, "cpu:0">, %b: tensor<4xf32, "cpu:0">, %c: tensor<4xf32, "gpu:0">) -> tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %m = tgraph.multiply %a, %b : tensor<4xf32, "cpu:0">
// CHECK-NEXT:    %[[M:.*]] = tgraph.device_copy %m : (tensor<4xf32, "cpu:0">) -> tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %n = tgraph.add %[[M]], %c : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    func.return %n
func.func @ab_plus_c(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>) -> tensor<4xf32> {
  %m = tgraph.multiply %a, %b {tgraph.group = "dev1"} : tensor<4xf32>
  %n = tgraph.add %m, %c {tgraph.group = "dev2"} : tensor<4xf32>
  func.return %n : tensor<4xf32>
}

// The same program with all arguments bound to one device in advance, as in MXNet: %c
// is copied, too.
// CHECK-LABEL: func.func @ab_plus_bound_c
// CHECK-NEXT:    %[[C:.*]] = tgraph.device_copy %c : (tensor<4xf32, "cpu:0">) -> tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %m = tgraph.multiply %a, %b : tensor<4xf32, "cpu:0">
// CHECK-NEXT:    %[[M:.*]] = tgraph.device_copy %m : (tensor<4xf32, "cpu:0">) -> tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %n = tgraph.add %[[M]], %[[C]] : tensor<4xf32, "gpu:0">
func.func @ab_plus_bound_c(%a: tensor<4xf32> {tgraph.group = "dev1"}, %b: tensor<4xf32> {tgraph.device = "cpu:0"}, %c: tensor<4xf32> {tgraph.group = "dev1"}) -> tensor<4xf32> {
  %m = tgraph.multiply %a, %b {tgraph.group = "dev1"} : tensor<4xf32>
  %n = tgraph.add %m, %c {tgraph.group = "dev2"} : tensor<4xf32>
  func.return %n : tensor<4xf32>
}

// The program with a backward pass, whose operations have the attributes of forward
// ones. The head gradient %g is on the device of its reader; %gn is copied to the other
// device once, for both products; the gradient of %c needs no copy.
// CHECK-LABEL: func.func @ab_plus_c_and_gradients
// CHECK-SAME:    %g: tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %m = tgraph.multiply %a, %b : tensor<4xf32, "cpu:0">
// CHECK-NEXT:    %[[M:.*]] = tgraph.device_copy %m
// CHECK-NEXT:    %n = tgraph.add %[[M]], %c : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %gn = tgraph.negate %g : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %[[GN:.*]] = tgraph.device_copy %gn : (tensor<4xf32, "gpu:0">) -> tensor<4xf32, "cpu:0">
// CHECK-NEXT:    %ga = tgraph.multiply %[[GN]], %b : tensor<4xf32, "cpu:0">
// CHECK-NEXT:    %gb = tgraph.multiply %[[GN]], %a : tensor<4xf32, "cpu:0">
// CHECK-NEXT:    func.return %n, %ga, %gb, %gn : tensor<4xf32, "gpu:0">, tensor<4xf32, "cpu:0">, tensor<4xf32, "cpu:0">, tensor<4xf32, "gpu:0">
func.func @ab_plus_c_and_gradients(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>, %g: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %m = tgraph.multiply %a, %b {tgraph.group = "dev1"} : tensor<4xf32>
  %n = tgraph.add %m, %c {tgraph.group = "dev2"} : tensor<4xf32>
  %gn = tgraph.negate %g {tgraph.group = "dev2"} : tensor<4xf32>
  %ga = tgraph.multiply %gn, %b {tgraph.group = "dev1"} : tensor<4xf32>
  %gb = tgraph.multiply %gn, %a {tgraph.group = "dev1"} : tensor<4xf32>
  func.return %n, %ga, %gb, %gn : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// A device takes precedence over a group, which may then be unknown.
// CHECK-LABEL: func.func @device_before_group
// CHECK-NEXT:    tgraph.negate %a : tensor<4xf32, "gpu:0">
func.func @device_before_group(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.negate %a {tgraph.device = "gpu:0", tgraph.group = "other"} : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
