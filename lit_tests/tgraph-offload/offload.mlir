// RUN: plan-opt %s -p 'tgraph-place-devices{default="cpu:0"},tgraph-offload{device="cpu:0" to="cpu:1" budget=32KiB reuse-outputs=false}' | filecheck %s
// RUN: plan-opt %s -p 'tgraph-place-devices{default="cpu:0"},tgraph-offload{device="cpu:0" to="cpu:1" budget=32KiB reuse-outputs=false}' 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: plan-opt %s -p 'tgraph-place-devices{default="cpu:0"},tgraph-offload{device="cpu:0" to="cpu:1" budget=48KiB reuse-outputs=false}' | filecheck %s --check-prefix=FITS
// RUN: plan-opt %s -p 'tgraph-offload{device="cpu:0" to="cpu:1" budget=1KiB}' 2>&1 | filecheck %s --check-prefix=UNPLACED
// RUN: plan-opt %s -p 'tgraph-place-devices{default="cpu:0"},tgraph-color-streams,tgraph-offload{device="cpu:0" to="cpu:1" budget=1KiB}' 2>&1 | filecheck %s --check-prefix=STREAMS

// FITS-NOT: device_copy
// UNPLACED: remark: nothing is moved: its tensors have no devices
// STREAMS:  remark: nothing is moved: its operations have streams

// REMARK:      remark: offloaded 16384 bytes of tgraph.exponential to cpu:1 after tgraph.dot_general ({{.*}}:[[#]]:8), prefetched before tgraph.multiply ({{.*}}:[[#]]:8) for tgraph.multiply ({{.*}}:[[#]]:8), which stalls
// REMARK-NEXT: remark: copies to cpu:1 and back: 2, for 16384 bytes; operations stall on them for an estimated {{.*}} % of the function's time
// REMARK-NEXT: remark: cpu:1 has 16384 live bytes at its peak
// REMARK-NEXT: remark: the peak on cpu:0 goes from 49152 to 32768 bytes

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // CHECK: %a = tgraph.exponential
  %a = tgraph.exponential %x : tensor<64x64xf32>
  // Two products of 32 KiB each leave no room for %a, so it is evicted before the first
  // one that does not read it.
  // CHECK-NEXT: %b = tgraph.dot_general %a, %w
  // CHECK-NEXT: [[AWAY:%[0-9]+]] = tgraph.device_copy %a : (tensor<64x64xf32, "cpu:0">) -> tensor<64x64xf32, "cpu:1">
  %b = tgraph.dot_general %a, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  %c = tgraph.dot_general %b, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  // CHECK: %d = tgraph.dot_general
  %d = tgraph.dot_general %c, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  // CHECK-NEXT: [[BACK:%a_[0-9]+]] = tgraph.device_copy [[AWAY]] : (tensor<64x64xf32, "cpu:1">) -> tensor<64x64xf32, "cpu:0">
  // The view of %a is recreated from the prefetched copy.
  // CHECK-NEXT: [[VIEW:%[a-z0-9_]+]] = tgraph.transpose [[BACK]]
  // CHECK-NEXT: %e = tgraph.multiply %d, [[VIEW]]
  %t = tgraph.transpose %a {permutation = array<i64: 1, 0>} : tensor<64x64xf32>
  %e = tgraph.multiply %d, %t : tensor<64x64xf32>
  %f = tgraph.dot_general %e, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32>
  func.return %f : tensor<64x64xf32>
}
