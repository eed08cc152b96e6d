// RUN: plan-opt %s -p 'tgraph-place-devices{default="cpu:0"}' | filecheck %s

// The first access that names a device places a variable; the others follow.
// CHECK-LABEL: func.func @named_by_an_access
// CHECK-SAME:    (%v: !tgraph.variable<tensor<4xf32, "gpu:0">>)
// CHECK-NEXT:    %r = tgraph.read %v : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %n = tgraph.negate %r : tensor<4xf32, "gpu:0">
// CHECK-NEXT:    tgraph.assign %v, %n : tensor<4xf32, "gpu:0">
func.func @named_by_an_access(%v: !tgraph.variable<tensor<4xf32>>) {
  %r = tgraph.read %v : tensor<4xf32>
  %n = tgraph.negate %r : tensor<4xf32>
  tgraph.assign %v, %n {tgraph.device = "gpu:0"} : tensor<4xf32>
  func.return
}

// No access names a device: the variable is on the device of its contents' reader.
// CHECK-LABEL: func.func @where_it_is_needed
// CHECK-SAME:    (%v: !tgraph.variable<tensor<4xf32, "gpu:1">>)
// CHECK-NEXT:    %r = tgraph.read %v : tensor<4xf32, "gpu:1">
// CHECK-NEXT:    %n = tgraph.negate %r : tensor<4xf32, "gpu:1">
func.func @where_it_is_needed(%v: !tgraph.variable<tensor<4xf32>>) -> tensor<4xf32> {
  %r = tgraph.read %v : tensor<4xf32>
  %n = tgraph.negate %r {tgraph.device = "gpu:1"} : tensor<4xf32>
  func.return %n : tensor<4xf32>
}

// An operation that writes a variable is on its device; operands are copied there.
// CHECK-LABEL: func.func @destination
// CHECK-NEXT:    %[[A:.*]] = tgraph.device_copy %a : (tensor<4xf32, "cpu:0">) -> tensor<4xf32, "gpu:0">
// CHECK-NEXT:    %n = tgraph.negate %[[A]] outs(%v) : tensor<4xf32, "gpu:0">
func.func @destination(%v: !tgraph.variable<tensor<4xf32>> {tgraph.device = "gpu:0"}, %a: tensor<4xf32> {tgraph.device = "cpu:0"}) {
  %n = tgraph.negate %a outs(%v) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
