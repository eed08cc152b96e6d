// Every operation prints and parses in custom and in generic form.
// RUN: plan-opt %s | plan-opt - | filecheck %s
// RUN: plan-opt %s --print-op-generic | plan-opt - | filecheck %s

// CHECK-LABEL: func.func @state(%v: !tgraph.variable<tensor<4xf32, "cpu:0">>, %a: tensor<4xf32, "cpu:0">)
func.func @state(%v: !tgraph.variable<tensor<4xf32, "cpu:0">>, %a: tensor<4xf32, "cpu:0">) {
  // CHECK-NEXT: %r = tgraph.read %v : tensor<4xf32, "cpu:0">
  %r = tgraph.read %v : tensor<4xf32, "cpu:0">
  // CHECK-NEXT: %s = tgraph.add %r, %a outs(%v) : tensor<4xf32, "cpu:0">
  %s = tgraph.add %r, %a outs(%v) : tensor<4xf32, "cpu:0">
  // CHECK-NEXT: tgraph.assign %v, %a : tensor<4xf32, "cpu:0">
  tgraph.assign %v, %a : tensor<4xf32, "cpu:0">
  // CHECK-NEXT: %c = tgraph.device_copy %a : (tensor<4xf32, "cpu:0">) -> tensor<4xf32, "gpu:0">
  %c = tgraph.device_copy %a : (tensor<4xf32, "cpu:0">) -> tensor<4xf32, "gpu:0">
  func.return
}

// CHECK-LABEL: func.func @unplaced
func.func @unplaced(%a: tensor<4xf32> {tgraph.group = "g"}) {
  // CHECK-NEXT: %c = tgraph.device_copy %a {tgraph.device = "gpu:0"} : tensor<4xf32>
  %c = tgraph.device_copy %a {tgraph.device = "gpu:0"} : tensor<4xf32>
  // CHECK-NEXT: %d = tgraph.on_device %c, "gpu:0" : tensor<4xf32>
  %d = tgraph.on_device %c, "gpu:0" : tensor<4xf32>
  func.return
}

// A splat stays one number; infinities and NaN are printed as bits.
// CHECK-LABEL: func.func @constants
func.func @constants() {
  // CHECK-NEXT: tgraph.constant<1.000000e+00 : f32> : tensor<1024x1024x1024xf32>
  %0 = tgraph.constant<1.0 : f32> : tensor<1024x1024x1024xf32>
  // CHECK-NEXT: tgraph.constant<0xff800000 : f32> : tensor<4xf32>
  %1 = tgraph.constant<0xFF800000 : f32> : tensor<4xf32>
  // CHECK-NEXT: tgraph.constant<true> : tensor<4xi1>
  %2 = tgraph.constant<true> : tensor<4xi1>
  // CHECK-NEXT: tgraph.constant<dense<[1, 2]> : tensor<2xi32>> : tensor<2xi32>
  %3 = tgraph.constant<dense<[1, 2]> : tensor<2xi32>> : tensor<2xi32>
  // CHECK-NEXT: tgraph.full_like %3 {value = 7 : i32} : tensor<2xi32>
  %4 = tgraph.full_like %3 {value = 7 : i32} : tensor<2xi32>
  // CHECK-NEXT: tgraph.iota {dimension = 1 : i64} : tensor<2x3xi32>
  %5 = tgraph.iota {dimension = 1 : i64} : tensor<2x3xi32>
  func.return
}

// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%a: tensor<4xf32>, %p: tensor<4xi1>) {
  // CHECK-NEXT: tgraph.compare %a, %a {direction = "LT"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %0 = tgraph.compare %a, %a {direction = "LT"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  // CHECK-NEXT: tgraph.select %p, %a, %a : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = tgraph.select %p, %a, %a : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: tgraph.convert %a : (tensor<4xf32>) -> tensor<4xi32>
  %2 = tgraph.convert %a : (tensor<4xf32>) -> tensor<4xi32>
  // CHECK-NEXT: tgraph.is_finite %a : (tensor<4xf32>) -> tensor<4xi1>
  %3 = tgraph.is_finite %a : (tensor<4xf32>) -> tensor<4xi1>
  func.return
}

// CHECK-LABEL: func.func @reducing
func.func @reducing(%x: tensor<2x8x8x3xf32>, %w: tensor<3x3x3x4xf32>, %g: tensor<2x4x4x3xf32>) {
  // CHECK-NEXT: tgraph.reduce %x {kind = "add", dimensions = array<i64: 1, 2>} : (tensor<2x8x8x3xf32>) -> tensor<2x3xf32>
  %0 = tgraph.reduce %x {kind = "add", dimensions = array<i64: 1, 2>} : (tensor<2x8x8x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: tgraph.convolution %x, %w
  // CHECK-SAME: dim_labels = "b01f_01io->b01f"
  // CHECK-SAME: -> tensor<2x8x8x4xf32>
  %1 = tgraph.convolution %x, %w {dim_labels = "b01f_01io->b01f", window_strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x8x8x4xf32>
  // CHECK-NEXT: tgraph.select_and_scatter %x, %g
  %2 = tgraph.select_and_scatter %x, %g {kind = "maximum", window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>, padding_low = array<i64: 0, 0, 0, 0>, padding_high = array<i64: 0, 0, 0, 0>} : (tensor<2x8x8x3xf32>, tensor<2x4x4x3xf32>) -> tensor<2x8x8x3xf32>
  func.return
}

// CHECK-LABEL: func.func @fusion
func.func @fusion(%a: tensor<4x8xf32>, %b: tensor<8xf32>) {
  // CHECK-NEXT: tgraph.fusion(%x = %a, %y = %b) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = tgraph.fusion(%x = %a, %y = %b) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32> {
    // CHECK-NEXT: %1 = tgraph.broadcast_in_dim %y {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<4x8xf32>
    %1 = tgraph.broadcast_in_dim %y {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<4x8xf32>
    %2 = tgraph.add %x, %1 : tensor<4x8xf32>
    // CHECK: tgraph.yield %2 : tensor<4x8xf32>
    tgraph.yield %2 : tensor<4x8xf32>
  }
  func.return
}

// On memrefs, an operation writes its destination; strided operands are read in place.
// CHECK-LABEL: func.func @memrefs
func.func @memrefs(%a: memref<4x8xf32>, %t: memref<4x8xf32, strided<[1, 4]>>) {
  // CHECK-NEXT: tgraph.add %a, %t outs(%a) : (memref<4x8xf32>, memref<4x8xf32, strided<[1, 4]>>) -> memref<4x8xf32>
  tgraph.add %a, %t outs(%a) : (memref<4x8xf32>, memref<4x8xf32, strided<[1, 4]>>) -> memref<4x8xf32>
  // CHECK-NEXT: tgraph.fusion(%x = %a) outs(%a) : memref<4x8xf32> {
  tgraph.fusion(%x = %a) outs(%a) : memref<4x8xf32> {
    %0 = tgraph.negate %x : tensor<4x8xf32>
    tgraph.yield %0 : tensor<4x8xf32>
  }
  // CHECK: tgraph.constant<0.000000e+00 : f32> outs(%a) : memref<4x8xf32>
  tgraph.constant<0.0 : f32> outs(%a) : memref<4x8xf32>
  func.return
}
