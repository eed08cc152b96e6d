// RUN: plan-opt %s -p 'tgraph-color-streams{streams=2}' --split-input-file | filecheck %s
// RUN: plan-opt %s -p 'tgraph-color-streams{streams=2 mode=nnvm}' --split-input-file | filecheck %s --check-prefix=NNVM
// RUN: plan-opt %s -p 'tgraph-color-streams{streams=1}' --split-input-file | filecheck %s --check-prefix=ONE

!t = tensor<128x128xf32, "cpu:0">
!v = tensor<128x128xf32, "gpu:0">

// Two parallel branches, the longest first. The operation that joins them is in the
// stream that it waits for. Views do not run, so they have no stream.
// CHECK-LABEL: func.func @branches
// CHECK-NEXT:    %a1 = tgraph.exponential %a {tgraph.stream = 1 : i32}
// CHECK-NEXT:    %b1 = tgraph.dot_general %b, %b {{.*}}tgraph.stream = 0 : i32}
// CHECK-NEXT:    %a2 = tgraph.tanh %a1 {tgraph.stream = 1 : i32}
// CHECK-NEXT:    %b2 = tgraph.reverse %b1 {dimensions = array<i64: 0>} :
// CHECK-NEXT:    %r = tgraph.add %a2, %b2 {tgraph.stream = 0 : i32}
// NNVM-LABEL:  func.func @branches
// NNVM-NEXT:     %a1 = tgraph.exponential %a {tgraph.stream = 0 : i32}
// NNVM-NEXT:     %b1 = tgraph.dot_general %b, %b {{.*}}tgraph.stream = 1 : i32}
// NNVM-NEXT:     %a2 = tgraph.tanh %a1 {tgraph.stream = 0 : i32}
// NNVM:          %r = tgraph.add %a2, %b2 {tgraph.stream = 0 : i32}
// ONE-LABEL:   func.func @branches
// ONE-NOT:       tgraph.stream = 1
func.func @branches(%a: !t, %b: !t) -> !t {
  %a1 = tgraph.exponential %a : !t
  %b1 = tgraph.dot_general %b, %b {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : !t
  %a2 = tgraph.tanh %a1 : !t
  %b2 = tgraph.reverse %b1 {dimensions = array<i64: 0>} : !t
  %r = tgraph.add %a2, %b2 : !t
  func.return %r : !t
}

// -----

!t = tensor<128x128xf32, "cpu:0">
!v = tensor<128x128xf32, "gpu:0">

// Each device has its own streams; a copy is on a stream of its target device.
// CHECK-LABEL: func.func @devices
// CHECK-NEXT:    tgraph.exponential %a {tgraph.stream = 0 : i32} : tensor<128x128xf32, "cpu:0">
// CHECK-NEXT:    tgraph.device_copy %x {tgraph.stream = 0 : i32}
// CHECK-NEXT:    tgraph.tanh %y {tgraph.stream = 0 : i32} : tensor<128x128xf32, "gpu:0">
func.func @devices(%a: !t) -> !v {
  %x = tgraph.exponential %a : !t
  %y = tgraph.device_copy %x : (!t) -> !v
  %z = tgraph.tanh %y : !v
  func.return %z : !v
}

// -----

!t = tensor<128x128xf32, "cpu:0">

// The write of the variable follows its reader, so it is no parallel branch.
// CHECK-LABEL: func.func @ordered
// CHECK:         tgraph.dot_general %w, %g {{.*}}tgraph.stream = 0 : i32}
// CHECK-NEXT:    tgraph.negate %g outs(%v) {tgraph.stream = 0 : i32}
func.func @ordered(%v: !tgraph.variable<!t>, %g: !t) -> !t {
  %w = tgraph.read %v : !t
  %d = tgraph.dot_general %w, %g {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : !t
  %n = tgraph.negate %g outs(%v) : !t
  func.return %d : !t
}
