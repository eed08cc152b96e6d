// RUN: plan-opt %s -p canonicalize | filecheck %s

// A scan whose rows are unused: the loop carries neither the rows nor the values that
// only they need, nor %vt, which only its own next value depends on.
// CHECK-LABEL: func.func @loop
// CHECK:         tgraph.while %c0, %x, %w : (tensor<i32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) {
// CHECK:         } do {
// CHECK-NOT:     tgraph.dynamic_update_slice
// CHECK-NOT:     tgraph.add {{.*}} : tensor<4xf32>
// CHECK:         tgraph.assign %vi_1, %next
// CHECK-NEXT:    tgraph.assign %vx_1, %y
// CHECK-NEXT:    tgraph.yield
func.func @loop(%x: tensor<4xf32>, %w: tensor<4xf32>, %scale: tensor<1x4xf32>) -> tensor<4xf32> {
  %c0 = tgraph.constant<0 : i32> : tensor<i32>
  %rows = tgraph.constant<0.0 : f32> : tensor<8x4xf32>
  %n:4 = tgraph.while %c0, %x, %rows, %x, %w, %scale, %w : (tensor<i32>, tensor<4xf32>, tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<1x4xf32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>, tensor<8x4xf32>, tensor<4xf32>) {
  ^bb0(%vi: !tgraph.variable<tensor<i32>>, %vx: !tgraph.variable<tensor<4xf32>>, %vs: !tgraph.variable<tensor<8x4xf32>>, %vt: !tgraph.variable<tensor<4xf32>>, %a: tensor<4xf32>, %b: tensor<1x4xf32>, %c: tensor<4xf32>):
    %i = tgraph.read %vi : tensor<i32>
    %c8 = tgraph.constant<8 : i32> : tensor<i32>
    %p = tgraph.compare %i, %c8 {direction = "LT"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%vi: !tgraph.variable<tensor<i32>>, %vx: !tgraph.variable<tensor<4xf32>>, %vs: !tgraph.variable<tensor<8x4xf32>>, %vt: !tgraph.variable<tensor<4xf32>>, %a: tensor<4xf32>, %b: tensor<1x4xf32>, %c: tensor<4xf32>):
    %i = tgraph.read %vi : tensor<i32>
    %v = tgraph.read %vx : tensor<4xf32>
    %s = tgraph.read %vs : tensor<8x4xf32>
    %t = tgraph.read %vt : tensor<4xf32>
    %c1 = tgraph.constant<1 : i32> : tensor<i32>
    %zero = tgraph.constant<0 : i32> : tensor<i32>
    %next = tgraph.add %i, %c1 : tensor<i32>
    %y = tgraph.multiply %v, %a : tensor<4xf32>
    %u = tgraph.add %t, %y : tensor<4xf32>
    %row = tgraph.reshape %u : (tensor<4xf32>) -> tensor<1x4xf32>
    %scaled = tgraph.multiply %row, %b : tensor<1x4xf32>
    %put = tgraph.dynamic_update_slice %s, %scaled, %i, %zero : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
    tgraph.assign %vi, %next : tensor<i32>
    tgraph.assign %vx, %y : tensor<4xf32>
    tgraph.assign %vs, %put : tensor<8x4xf32>
    tgraph.assign %vt, %u : tensor<4xf32>
    tgraph.yield
  }
  func.return %n#1 : tensor<4xf32>
}

// The loop carries %vx, from which the used value %vy is computed.
// CHECK-LABEL: func.func @needed
// CHECK:         tgraph.while %c0, %x, %x :
// CHECK:         tgraph.assign %vx_1, %sum
// CHECK-NEXT:    tgraph.assign %vy_1, %a
func.func @needed(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = tgraph.constant<0 : i32> : tensor<i32>
  %n:3 = tgraph.while %c0, %x, %x : (tensor<i32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%vi: !tgraph.variable<tensor<i32>>, %vx: !tgraph.variable<tensor<4xf32>>, %vy: !tgraph.variable<tensor<4xf32>>):
    %i = tgraph.read %vi : tensor<i32>
    %c8 = tgraph.constant<8 : i32> : tensor<i32>
    %p = tgraph.compare %i, %c8 {direction = "LT"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%vi: !tgraph.variable<tensor<i32>>, %vx: !tgraph.variable<tensor<4xf32>>, %vy: !tgraph.variable<tensor<4xf32>>):
    %i = tgraph.read %vi : tensor<i32>
    %a = tgraph.read %vx : tensor<4xf32>
    %b = tgraph.read %vy : tensor<4xf32>
    %c1 = tgraph.constant<1 : i32> : tensor<i32>
    %next = tgraph.add %i, %c1 : tensor<i32>
    %sum = tgraph.add %a, %b : tensor<4xf32>
    tgraph.assign %vi, %next : tensor<i32>
    tgraph.assign %vx, %sum : tensor<4xf32>
    tgraph.assign %vy, %a : tensor<4xf32>
    tgraph.yield
  }
  func.return %n#2 : tensor<4xf32>
}

// One of two results of a conditional is used, and branches read one of three values.
// CHECK-LABEL: func.func @branches
// CHECK:         %r = tgraph.if %p, %x : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NOT:     tgraph.exponential
// CHECK:         } else {
// CHECK-NEXT:    ^bb0(%a_1: tensor<4xf32>):
// CHECK-NEXT:      tgraph.yield %a_1 : tensor<4xf32>
func.func @branches(%p: tensor<i1>, %x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
  %r:2 = tgraph.if %p, %x, %y, %z : (tensor<i1>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>):
    %0 = tgraph.tanh %a : tensor<4xf32>
    %1 = tgraph.exponential %b : tensor<4xf32>
    tgraph.yield %1, %0 : tensor<4xf32>, tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>):
    tgraph.yield %b, %a : tensor<4xf32>, tensor<4xf32>
  }
  func.return %r#1 : tensor<4xf32>
}

// LAPACK need not compute unused singular vectors and eigenvectors.

// CHECK-LABEL: func.func @factors
// CHECK-NEXT:    %s = tgraph.svd %x {wanted = array<i64: 1>} : (tensor<5x3xf32>) -> tensor<3xf32>
// CHECK-NEXT:    %w, %r = tgraph.eig %y {wanted = array<i64: 0, 2>} : (tensor<4x4xf32>) -> (tensor<4xcomplex<f32>>, tensor<4x4xcomplex<f32>>)
// CHECK-NEXT:    func.return %s, %r, %w
func.func @factors(%x: tensor<5x3xf32>, %y: tensor<4x4xf32>)
    -> (tensor<3xf32>, tensor<4x4xcomplex<f32>>, tensor<4xcomplex<f32>>) {
  %u, %s, %v = tgraph.svd %x : (tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<3xf32>, tensor<3x3xf32>)
  %w, %l, %r = tgraph.eig %y : (tensor<4x4xf32>) -> (tensor<4xcomplex<f32>>, tensor<4x4xcomplex<f32>>, tensor<4x4xcomplex<f32>>)
  func.return %s, %r, %w : tensor<3xf32>, tensor<4x4xcomplex<f32>>, tensor<4xcomplex<f32>>
}

// Both operations merge in cse, which then computes all used factors.

// CHECK-LABEL: func.func @the_same_matrices
// CHECK-NEXT:    %u, %s, %v = tgraph.svd %x
// CHECK-NEXT:    %u_1, %s_1, %v_1 = tgraph.svd %x
func.func @the_same_matrices(%x: tensor<3x3xf32>) -> (tensor<3xf32>, tensor<3x3xf32>) {
  %u, %s, %v = tgraph.svd %x : (tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3xf32>, tensor<3x3xf32>)
  %u_1, %s_1, %v_1 = tgraph.svd %x : (tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3xf32>, tensor<3x3xf32>)
  func.return %s, %v_1 : tensor<3xf32>, tensor<3x3xf32>
}
