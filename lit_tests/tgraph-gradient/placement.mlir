// RUN: plan-opt %s -p tgraph-gradient | filecheck %s
// RUN: plan-opt %s -p tgraph-gradient,tgraph-place-devices | filecheck %s --check-prefix=PLACED

// Backward operations are on the device of their forward operations, even if these
// follow their operands (%b). Thus one tensor crosses forward, and one backward.
// CHECK-LABEL: func.func @main
// CHECK:         tgraph.constant<1.000000e+00 : f32> {tgraph.device = "gpu:1"} : tensor<f32>
// CHECK:         tgraph.broadcast_in_dim {{.*}}tgraph.device = "gpu:1"
// CHECK:         tgraph.multiply {{.*}} {tgraph.device = "gpu:1"}
// CHECK:         tgraph.subtract {{.*}} {tgraph.device = "gpu:0"}
// CHECK-NOT:     gpu:1
// CHECK:         %gx = tgraph.multiply %{{.*}}, %w {tgraph.device = "gpu:0", tgraph.stream = 1 : i32} : tensor<4xf32>
// CHECK-NEXT:    func.return

// PLACED-LABEL:   func.func @main
// PLACED-COUNT-2: tgraph.device_copy
// PLACED-NOT:     tgraph.device_copy
// PLACED:         func.func @placed
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>, %u: tensor<4xf32>) -> tensor<4xf32> {
  %a = tgraph.multiply %x, %w {tgraph.device = "gpu:0", tgraph.stream = 1 : i32} : tensor<4xf32>
  %b = tgraph.tanh %a : tensor<4xf32>
  %c = tgraph.multiply %b, %u {tgraph.device = "gpu:1"} : tensor<4xf32>
  %l = tgraph.reduce %c {kind = "add", dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %gx = tgraph.gradient %l wrt %x : tensor<f32> wrt tensor<4xf32>
  func.return %gx : tensor<4xf32>
}

// After placement, the gradient crosses where the value does.
// CHECK-LABEL: func.func @placed
// CHECK:         %[[S:.*]] = tgraph.multiply %head, %{{.*}} : tensor<4xf32, "gpu:1">
// CHECK-NEXT:    %g = tgraph.device_copy %[[S]] : (tensor<4xf32, "gpu:1">) -> tensor<4xf32, "gpu:0">
func.func @placed(%x: tensor<4xf32, "gpu:0">, %head: tensor<4xf32, "gpu:1">) -> tensor<4xf32, "gpu:0"> {
  %c = tgraph.device_copy %x : (tensor<4xf32, "gpu:0">) -> tensor<4xf32, "gpu:1">
  %y = tgraph.sine %c : tensor<4xf32, "gpu:1">
  %g = tgraph.gradient %y heads %head wrt %x : tensor<4xf32, "gpu:1"> wrt tensor<4xf32, "gpu:0">
  func.return %g : tensor<4xf32, "gpu:0">
}

// An annotation places the operation that defines the value, and its gradient.
// CHECK-LABEL: func.func @annotated
// CHECK:         %g = tgraph.multiply %head, %{{.*}} {tgraph.device = "gpu:1"} : tensor<4xf32>
func.func @annotated(%x: tensor<4xf32>, %head: tensor<4xf32>) -> tensor<4xf32> {
  %s = tgraph.sine %x : tensor<4xf32>
  %y = tgraph.on_device %s, "gpu:1" : tensor<4xf32>
  %g = tgraph.gradient %y heads %head wrt %x : tensor<4xf32> wrt tensor<4xf32>
  func.return %g : tensor<4xf32>
}
