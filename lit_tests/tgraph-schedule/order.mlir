// RUN: plan-opt %s -p tgraph-schedule | filecheck %s
// RUN: plan-opt %s -p 'tgraph-schedule{effort=0.0}' | filecheck %s

// Each square is wide and its sum narrow: in sequence, only one square is live. The
// constant, a view without memory, is scheduled before its reader.
// CHECK-LABEL: func.func @two_chains
// CHECK-NEXT:    %p = tgraph.dot_general %a, %a
// CHECK-NEXT:    %s = tgraph.reduce %p
// CHECK-NEXT:    %q = tgraph.dot_general %b, %b
// CHECK-NEXT:    %t = tgraph.reduce %q
// CHECK-NEXT:    %u = tgraph.add %s, %t
// CHECK-NEXT:    %c = tgraph.constant
// CHECK-NEXT:    %r = tgraph.multiply %u, %c
func.func @two_chains(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64xf32> {
  %c = tgraph.constant<2.0 : f32> : tensor<64xf32>
  %p = tgraph.dot_general %a, %a {lhs_contracting_dimensions = array<i64: 0>, rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  %q = tgraph.dot_general %b, %b {lhs_contracting_dimensions = array<i64: 0>, rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  %s = tgraph.reduce %p {kind = "add", dimensions = array<i64: 0>} : (tensor<64x64xf32>) -> tensor<64xf32>
  %t = tgraph.reduce %q {kind = "add", dimensions = array<i64: 0>} : (tensor<64x64xf32>) -> tensor<64xf32>
  %u = tgraph.add %s, %t : tensor<64xf32>
  %r = tgraph.multiply %u, %c : tensor<64xf32>
  func.return %r : tensor<64xf32>
}

// Views cost nothing, and an operand may be overwritten. With both counted, the given
// order has the minimum peak, and stays.
// CHECK-LABEL: func.func @nothing_to_gain
// CHECK-NEXT:    %p = tgraph.exponential %a
// CHECK-NEXT:    %v = tgraph.transpose %p
// CHECK-NEXT:    %q = tgraph.tanh %b
// CHECK-NEXT:    %r = tgraph.add %v, %q
func.func @nothing_to_gain(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %p = tgraph.exponential %a : tensor<8x8xf32>
  %v = tgraph.transpose %p {permutation = array<i64: 1, 0>} : tensor<8x8xf32>
  %q = tgraph.tanh %b : tensor<8x8xf32>
  %r = tgraph.add %v, %q : tensor<8x8xf32>
  func.return %r : tensor<8x8xf32>
}

// Each weight is updated as soon as its gradient is computed, but not before the last
// reader of the old weight.
// CHECK-LABEL: func.func @updates
// CHECK-DAG:     %r = tgraph.dot_general %x, %old
// CHECK-DAG:     %g = tgraph.dot_general %x, %x
// CHECK:         %new = tgraph.subtract %old, %g outs(%w)
func.func @updates(%w: !tgraph.variable<tensor<8x8xf32>>, %v: !tgraph.variable<tensor<8x8xf32>>, %x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %old = tgraph.read %w : tensor<8x8xf32>
  %older = tgraph.read %v : tensor<8x8xf32>
  %g = tgraph.dot_general %x, %x {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<8x8xf32>
  %h = tgraph.dot_general %y, %y {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<8x8xf32>
  %r = tgraph.dot_general %x, %old {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<8x8xf32>
  %new = tgraph.subtract %old, %g outs(%w) : tensor<8x8xf32>
  %newer = tgraph.subtract %older, %h outs(%v) : tensor<8x8xf32>
  func.return %r : tensor<8x8xf32>
}

// With streams, the order in the text does not determine memory, so it stays.
// CHECK-LABEL: func.func @streams
// CHECK-NEXT:    %p = tgraph.dot_general %a, %a
// CHECK-NEXT:    %q = tgraph.dot_general %b, %b
func.func @streams(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64xf32> {
  %p = tgraph.dot_general %a, %a {lhs_contracting_dimensions = array<i64: 0>, rhs_contracting_dimensions = array<i64: 0>, tgraph.stream = 0 : i32} : tensor<64x64xf32>
  %q = tgraph.dot_general %b, %b {lhs_contracting_dimensions = array<i64: 0>, rhs_contracting_dimensions = array<i64: 0>, tgraph.stream = 1 : i32} : tensor<64x64xf32>
  %s = tgraph.reduce %p {kind = "add", dimensions = array<i64: 0>, tgraph.stream = 0 : i32} : (tensor<64x64xf32>) -> tensor<64xf32>
  %t = tgraph.reduce %q {kind = "add", dimensions = array<i64: 0>, tgraph.stream = 1 : i32} : (tensor<64x64xf32>) -> tensor<64xf32>
  %u = tgraph.add %s, %t {tgraph.stream = 0 : i32} : tensor<64xf32>
  func.return %u : tensor<64xf32>
}

// An unused view stays, after the reordered operations.
// CHECK-LABEL: func.func @unread_view
// CHECK-NEXT:    %p = tgraph.dot_general %a, %a
// CHECK-NEXT:    %s = tgraph.reduce %p
// CHECK-NEXT:    %q = tgraph.dot_general %b, %b
// CHECK-NEXT:    %t = tgraph.reduce %q
// CHECK-NEXT:    %v = tgraph.reshape %p
// CHECK-NEXT:    func.return %s, %t
func.func @unread_view(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %p = tgraph.dot_general %a, %a {lhs_contracting_dimensions = array<i64: 0>, rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  %v = tgraph.reshape %p : (tensor<64x64xf32>) -> tensor<4096xf32>
  %q = tgraph.dot_general %b, %b {lhs_contracting_dimensions = array<i64: 0>, rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  %s = tgraph.reduce %p {kind = "add", dimensions = array<i64: 0>} : (tensor<64x64xf32>) -> tensor<64xf32>
  %t = tgraph.reduce %q {kind = "add", dimensions = array<i64: 0>} : (tensor<64x64xf32>) -> tensor<64xf32>
  func.return %s, %t : tensor<64xf32>, tensor<64xf32>
}
