// RUN: plan-opt %s -p 'tgraph-place-devices{default="cpu:0"},tgraph-search' 2>&1 | filecheck %s
// RUN: plan-opt %s -p 'plan-pipeline{effort=high time-limit=0}' 2>&1 | filecheck %s --check-prefix=NOW
// RUN: not plan-opt %s -p 'plan-pipeline{time-limit=1.5}' 2>&1 | filecheck %s --check-prefix=LOW
// RUN: not plan-opt %s -p 'tgraph-search{time-limit=-1}' 2>&1 | filecheck %s --check-prefix=LESS

// Recomputing %b for the last operation is cheap.
// CHECK: remark: of {{[0-9]+}} candidates, {{.*}} takes the fewest bytes: {{[0-9]+}} instead of {{[0-9]+}}; {{[0-9]+}} of {{[0-9]+}} FLOPs are recomputed

// The default sequence is always tried, whatever the time limit.
// NOW: remark: of 1 candidates, the default takes the fewest bytes

// LOW: time-limit is 1.5, which requires effort=high or a budget
// LESS: time-limit is -1.0, expected 0 or more
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %b = tgraph.broadcast_in_dim %x {broadcast_dimensions = array<i64: 0, 1>} : (tensor<64x64xf32>) -> tensor<64x64x16xf32>
  %a = tgraph.exponential %b : tensor<64x64x16xf32>
  %r = tgraph.reduce %a {kind = "add", dimensions = array<i64: 2>} : (tensor<64x64x16xf32>) -> tensor<64x64xf32>
  %d = tgraph.dot_general %r, %x {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %d : tensor<64x64xf32>
}
