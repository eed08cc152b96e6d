// RUN: plan-opt %s -p plan-pipeline -t 'c-header{prefix="net"}' | filecheck %s --check-prefix=HEADER
// RUN: plan-opt %s -p plan-pipeline -t json | filecheck %s --check-prefix=JSON
// RUN: not plan-opt %s -p plan-pipeline -t 'c-header{prefix="a-b"}' 2>&1 | filecheck %s --check-prefix=BAD

// HEADER:      #ifndef NET_PLAN_H
// HEADER-NEXT: #define NET_PLAN_H
// HEADER:      /* cpu:0: 2 buffers */
// HEADER-NEXT: #define NET_CPU_0_ARENA_BYTES 128
// HEADER-NEXT: #define NET_CPU_0_ARENA_ALIGNMENT 64
// HEADER-NEXT: #define NET_CPU_0_BUFFER_{{.*}}_OFFSET 0  /* 64 bytes, tgraph.dot_general, {{.*}}targets.mlir:{{[0-9]+}}:8 */
// HEADER-NEXT: #define NET_CPU_0_BUFFER_{{.*}}_OFFSET 64  /* 64 bytes, tgraph.dot_general, {{.*}}targets.mlir:{{[0-9]+}}:8 */
// HEADER:      /* arguments of f, in order */
// HEADER-NEXT: #define NET_F_A_BYTES 64  /* input */
// HEADER-NEXT: #define NET_F_{{.*}}_BYTES 64  /* result */
// HEADER:      #endif /* NET_PLAN_H */

// JSON:      "schema": 2,
// JSON-NEXT: "pools": [
// JSON:          "bytes": 128,
// JSON:      "buffers": [
// JSON:          "size": 64,
// JSON:          "offset": 0,
// JSON:      "functions": {
// JSON-NEXT:   "f": [
// JSON:            "name": "a",
// JSON-NEXT:       "bytes": 64,
// JSON-NEXT:       "role": "input"

// BAD: prefix is 'a-b', expected a C identifier
func.func @f(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = tgraph.dot_general %a, %a {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<4x4xf32>
  %1 = tgraph.dot_general %0, %a {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<4x4xf32>
  %2 = tgraph.dot_general %1, %0 {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<4x4xf32>
  func.return %2 : tensor<4x4xf32>
}
