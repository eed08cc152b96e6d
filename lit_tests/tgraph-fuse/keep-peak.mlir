// RUN: plan-opt %s -p tgraph-fuse | filecheck %s
// RUN: plan-opt %s -p tgraph-fuse{keep-peak=false} | filecheck %s --check-prefix=ANY

// Fused with the last add, the first add would keep %p and %q live while %big, the
// peak, is computed. So %s is stored, and only the rest is fused.
// CHECK-LABEL: func.func @sum_before_the_peak
// CHECK:         %s = tgraph.add %p, %q
// CHECK:         %big = tgraph.concatenate
// CHECK:         %r = tgraph.fusion
// CHECK-NEXT:      tgraph.tanh
// CHECK-NEXT:      tgraph.add
// ANY-LABEL:   func.func @sum_before_the_peak
// ANY:           %big = tgraph.concatenate
// ANY:           %r = tgraph.fusion
// ANY-NEXT:        tgraph.add
// ANY-NEXT:        tgraph.tanh
// ANY-NEXT:        tgraph.add
func.func @sum_before_the_peak(%a: tensor<128x64xf32>, %b: tensor<128x64xf32>) -> tensor<256x64xf32> {
  %p = tgraph.concatenate %a, %b {dimension = 0 : i64} : (tensor<128x64xf32>, tensor<128x64xf32>) -> tensor<256x64xf32>
  %q = tgraph.concatenate %b, %a {dimension = 0 : i64} : (tensor<128x64xf32>, tensor<128x64xf32>) -> tensor<256x64xf32>
  %s = tgraph.add %p, %q : tensor<256x64xf32>
  %big = tgraph.concatenate %a, %b, %a, %b {dimension = 0 : i64} : (tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>) -> tensor<512x64xf32>
  %part = tgraph.slice %big {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 512, 64>, strides = array<i64: 2, 1>} : (tensor<512x64xf32>) -> tensor<256x64xf32>
  %t = tgraph.tanh %s : tensor<256x64xf32>
  %r = tgraph.add %t, %part : tensor<256x64xf32>
  func.return %r : tensor<256x64xf32>
}
