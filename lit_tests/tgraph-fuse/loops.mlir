// RUN: plan-opt %s -p tgraph-fuse | filecheck %s
// RUN: plan-opt %s -p tgraph-fuse -o %t && plan-opt %t -p tgraph-fuse | diff %t -

// While the loop runs, its group needs no memory besides the variable. So %p and %q may
// live across it instead of their sum; a second run of the pass changes nothing.
// CHECK-LABEL: func.func @sum_before_a_loop
// CHECK-NOT:     tgraph.add %p, %q
// CHECK:         tgraph.while
// CHECK:           tgraph.fusion
// CHECK:         %r = tgraph.fusion
// CHECK-NEXT:      tgraph.add
// CHECK-NEXT:      tgraph.add
func.func @sum_before_a_loop(%a: tensor<128x64xf32>, %b: tensor<128x64xf32>) -> (tensor<256x64xf32>, tensor<f32>) {
  %big = tgraph.concatenate %a, %b, %a, %b, %a, %b, %a, %b, %a, %b {dimension = 0 : i64} : (tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>) -> tensor<1280x64xf32>
  %sum = tgraph.reduce %big {kind = "add", dimensions = array<i64: 0, 1>} : (tensor<1280x64xf32>) -> tensor<f32>
  %p = tgraph.concatenate %a, %b {dimension = 0 : i64} : (tensor<128x64xf32>, tensor<128x64xf32>) -> tensor<256x64xf32>
  %q = tgraph.concatenate %b, %a {dimension = 0 : i64} : (tensor<128x64xf32>, tensor<128x64xf32>) -> tensor<256x64xf32>
  %s = tgraph.add %p, %q : tensor<256x64xf32>
  %zero = tgraph.constant<0 : i32> : tensor<i32>
  %start = tgraph.constant<1.0 : f32> : tensor<256x64xf32>
  %n, %last = tgraph.while %zero, %start : (tensor<i32>, tensor<256x64xf32>) -> (tensor<i32>, tensor<256x64xf32>) {
  ^condition(%counter: !tgraph.variable<tensor<i32>>, %carried: !tgraph.variable<tensor<256x64xf32>>):
    %i = tgraph.read %counter : tensor<i32>
    %three = tgraph.constant<3 : i32> : tensor<i32>
    %more = tgraph.compare %i, %three {direction = "LT"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tgraph.yield %more : tensor<i1>
  } do {
  ^body(%counter: !tgraph.variable<tensor<i32>>, %carried: !tgraph.variable<tensor<256x64xf32>>):
    %i = tgraph.read %counter : tensor<i32>
    %one = tgraph.constant<1 : i32> : tensor<i32>
    %next = tgraph.add %i, %one : tensor<i32>
    %x = tgraph.read %carried : tensor<256x64xf32>
    %e = tgraph.exponential %x : tensor<256x64xf32>
    %t = tgraph.tanh %x : tensor<256x64xf32>
    %c = tgraph.cosine %x : tensor<256x64xf32>
    %d = tgraph.sine %c : tensor<256x64xf32>
    %et = tgraph.multiply %e, %t : tensor<256x64xf32>
    %ec = tgraph.add %et, %d : tensor<256x64xf32>
    tgraph.assign %counter, %next : tensor<i32>
    tgraph.assign %carried, %ec : tensor<256x64xf32>
    tgraph.yield
  }
  %r = tgraph.add %s, %last : tensor<256x64xf32>
  func.return %r, %sum : tensor<256x64xf32>, tensor<f32>
}
