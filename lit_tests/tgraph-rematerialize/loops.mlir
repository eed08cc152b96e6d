// RUN: plan-opt %s -p tgraph-eliminate-assigns,tgraph-rematerialize 2>%t.err | filecheck %s
// RUN: filecheck %s --check-prefix=REMARK --input-file %t.err
// RUN: plan-opt %s -p 'tgraph-eliminate-assigns,tgraph-rematerialize{budget=600KiB}' | filecheck %s

// The peak is in the loop, and so is the recomputed operation.
// CHECK-LABEL: func.func @in_the_body
// CHECK:         %a = tgraph.abs %v : tensor<256x256xf32>
// CHECK-NEXT:    %b = tgraph.dot_general %a, %m_1
// CHECK-NEXT:    %c = tgraph.dot_general %b, %m_1
// CHECK-NEXT:    %[[A:.*]] = tgraph.abs %v {tgraph.recomputed} : tensor<256x256xf32>
// CHECK-NEXT:    %d = tgraph.dot_general %c, %[[A]]
// REMARK: remark: recomputed operations: 1, with 65536 FLOPs, 0.07 % of the block's 100728833
func.func @in_the_body(%x: tensor<256x256xf32>, %w: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %zero = tgraph.constant<0 : i32> : tensor<i32>
  %n, %y = tgraph.while %zero, %x, %w : (tensor<i32>, tensor<256x256xf32>, tensor<256x256xf32>) -> (tensor<i32>, tensor<256x256xf32>) {
  ^condition(%i: !tgraph.variable<tensor<i32>>, %t: !tgraph.variable<tensor<256x256xf32>>, %m: tensor<256x256xf32>):
    %at = tgraph.read %i : tensor<i32>
    %four = tgraph.constant<4 : i32> : tensor<i32>
    %more = tgraph.compare %at, %four {direction = "LT"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tgraph.yield %more : tensor<i1>
  } do {
  ^body(%i: !tgraph.variable<tensor<i32>>, %t: !tgraph.variable<tensor<256x256xf32>>, %m: tensor<256x256xf32>):
    %at = tgraph.read %i : tensor<i32>
    %one = tgraph.constant<1 : i32> : tensor<i32>
    %next = tgraph.add %at, %one : tensor<i32>
    %v = tgraph.read %t : tensor<256x256xf32>
    %a = tgraph.abs %v : tensor<256x256xf32>
    %b = tgraph.dot_general %a, %m {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<256x256xf32>
    %c = tgraph.dot_general %b, %m {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<256x256xf32>
    %d = tgraph.dot_general %c, %a {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<256x256xf32>
    tgraph.assign %i, %next : tensor<i32>
    tgraph.assign %t, %d : tensor<256x256xf32>
    tgraph.yield
  }
  func.return %y : tensor<256x256xf32>
}

// Lowering one of two loops at the peak would not lower the peak. The second loop is one
// over tiles.
// CHECK-LABEL: func.func @in_two_bodies
// CHECK:         tgraph.recomputed
// CHECK:         tgraph.while
// CHECK:         tgraph.recomputed
func.func @in_two_bodies(%x: tensor<256x256xf32>, %w: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %zero = tgraph.constant<0 : i32> : tensor<i32>
  %n, %y = tgraph.while %zero, %x, %w : (tensor<i32>, tensor<256x256xf32>, tensor<256x256xf32>) -> (tensor<i32>, tensor<256x256xf32>) {
  ^condition(%i: !tgraph.variable<tensor<i32>>, %t: !tgraph.variable<tensor<256x256xf32>>, %m: tensor<256x256xf32>):
    %at = tgraph.read %i : tensor<i32>
    %four = tgraph.constant<4 : i32> : tensor<i32>
    %more = tgraph.compare %at, %four {direction = "LT"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tgraph.yield %more : tensor<i1>
  } do {
  ^body(%i: !tgraph.variable<tensor<i32>>, %t: !tgraph.variable<tensor<256x256xf32>>, %m: tensor<256x256xf32>):
    %at = tgraph.read %i : tensor<i32>
    %one = tgraph.constant<1 : i32> : tensor<i32>
    %next = tgraph.add %at, %one : tensor<i32>
    %v = tgraph.read %t : tensor<256x256xf32>
    %a = tgraph.abs %v : tensor<256x256xf32>
    %b = tgraph.dot_general %a, %m {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<256x256xf32>
    %c = tgraph.dot_general %b, %m {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<256x256xf32>
    %d = tgraph.dot_general %c, %a {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<256x256xf32>
    tgraph.assign %i, %next : tensor<i32>
    tgraph.assign %t, %d : tensor<256x256xf32>
    tgraph.yield
  }
  %n2, %y2 = tgraph.while %zero, %y, %w {tgraph.tiles = 4 : i32} : (tensor<i32>, tensor<256x256xf32>, tensor<256x256xf32>) -> (tensor<i32>, tensor<256x256xf32>) {
  ^condition(%i: !tgraph.variable<tensor<i32>>, %t: !tgraph.variable<tensor<256x256xf32>>, %m: tensor<256x256xf32>):
    %at = tgraph.read %i : tensor<i32>
    %four = tgraph.constant<4 : i32> : tensor<i32>
    %more = tgraph.compare %at, %four {direction = "LT"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tgraph.yield %more : tensor<i1>
  } do {
  ^body(%i: !tgraph.variable<tensor<i32>>, %t: !tgraph.variable<tensor<256x256xf32>>, %m: tensor<256x256xf32>):
    %at = tgraph.read %i : tensor<i32>
    %one = tgraph.constant<1 : i32> : tensor<i32>
    %next = tgraph.add %at, %one : tensor<i32>
    %v = tgraph.read %t : tensor<256x256xf32>
    %a = tgraph.abs %v : tensor<256x256xf32>
    %b = tgraph.dot_general %a, %m {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<256x256xf32>
    %c = tgraph.dot_general %b, %m {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<256x256xf32>
    %d = tgraph.dot_general %c, %a {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<256x256xf32>
    tgraph.assign %i, %next : tensor<i32>
    tgraph.assign %t, %d : tensor<256x256xf32>
    tgraph.yield
  }
  func.return %y2 : tensor<256x256xf32>
}
