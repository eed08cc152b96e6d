// RUN: plan-opt %s -p plan-pipeline --report %t -o /dev/null
// RUN: filecheck %s < %t

// Two buffers of 64 bytes, both live in the multiplication:
// CHECK:      "device": "cpu:0",
// CHECK-NEXT: "bytes": 128,
// CHECK-NEXT: "lower_bound_bytes": 128,
// CHECK-NEXT: "unshared_bytes": 128,
// CHECK-NEXT: "buffers": 2,
// CHECK-NEXT: "alignment": 64
// CHECK:      "seconds": {
// CHECK:        "plan-memory":
func.func @f(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = tgraph.dot_general %a, %a {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<4x4xf32>
  %1 = tgraph.dot_general %0, %a {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<4x4xf32>
  %2 = tgraph.dot_general %1, %0 {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<4x4xf32>
  func.return %2 : tensor<4x4xf32>
}
