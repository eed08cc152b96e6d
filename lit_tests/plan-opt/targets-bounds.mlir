// With symbolic sizes, other tools get the plan for the largest sizes.
// RUN: plan-opt %s -p 'plan-pipeline{bounds="n<=8"}' -t c-header | filecheck %s
// RUN: plan-opt %s -p 'plan-pipeline{bounds="n<=8"}' -t json | filecheck %s --check-prefix=JSON
// RUN: not plan-opt %s -p plan-pipeline -t json 2>&1 | filecheck %s --check-prefix=NONE

// CHECK:      #define PLAN_CPU_0_ARENA_BYTES 32
// CHECK:      #define PLAN_MAIN_X_BYTES 32  /* input */
// CHECK-NEXT: #define PLAN_MAIN_ARG1_BYTES 32  /* result */

// JSON:      "bytes": 32
// JSON:      "name": "x",
// JSON-NEXT: "bytes": 32,

// NONE: argument 0 has type memref<?xf32, "cpu:0">, expected static sizes, or a plan for bounds: plan-pipeline{bounds=...}
func.func @main(%x: tensor<?xf32, #tgraph.dims<n>>) -> tensor<?xf32, #tgraph.dims<n>> {
  %0 = tgraph.exponential %x : tensor<?xf32, #tgraph.dims<n>>
  %1 = tgraph.reverse %0 {dimensions = array<i64: 0>} : tensor<?xf32, #tgraph.dims<n>>
  func.return %1 : tensor<?xf32, #tgraph.dims<n>>
}
