// RUN: plan-opt %s -p plan-pipeline --report %t.json -o /dev/null
// RUN: plan-view %t.json | filecheck %s

// A report has source locations in the planned program.
// CHECK: cpu:0: 128 B, lower bound 128 B, 2 buffers
// CHECK:   a  %1  64 B, 4x4xf32, steps [3, 8), tgraph.dot_general, {{.*}}report.mlir:9:8
// CHECK:   b  %2  64 B, 4x4xf32, steps [6, 8), tgraph.dot_general, {{.*}}report.mlir:10:8
func.func @f(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = tgraph.dot_general %a, %a {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<4x4xf32>
  %1 = tgraph.dot_general %0, %a {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<4x4xf32>
  %2 = tgraph.dot_general %1, %0 {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<4x4xf32>
  func.return %2 : tensor<4x4xf32>
}
