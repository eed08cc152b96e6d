// Buffers in the caller's memory, and arguments that are overwritten.
// RUN: plan-opt %s -p plan-pipeline -t c-header | filecheck %s --check-prefix=HEADER
// RUN: plan-opt %s -p plan-pipeline -t json | filecheck %s --check-prefix=JSON

// HEADER-NOT:  ARENA
// HEADER:      /* argument 0: its memory is reused by 1 buffers */
// HEADER-NEXT: #define PLAN_ARGUMENT_0_BUFFER_B_OFFSET 0  /* 64 bytes, tgraph.exponential, {{.*}}targets-donated.mlir:{{[0-9]+}}:8 */
// HEADER:      /* arguments of f, in order */
// HEADER-NEXT: #define PLAN_F_A_BYTES 64  /* donated */
// HEADER-NEXT: #define PLAN_F_{{.*}}_BYTES 64  /* result */

// JSON:      "pools": [],
// JSON-NEXT: "reused": [
// JSON:          "memory": "argument 0",
// JSON:          "reused_bytes": 64,
// JSON:          "role": "donated"
func.func @f(%a: tensor<4x4xf32> {tgraph.donated}) -> tensor<4x4xf32> {
  %b = tgraph.exponential %a : tensor<4x4xf32>
  %c = tgraph.dot_general %b, %b {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<4x4xf32>
  func.return %c : tensor<4x4xf32>
}
