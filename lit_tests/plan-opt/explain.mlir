// RUN: plan-opt %s --explain | filecheck %s
// RUN: plan-opt %s --explain=json | filecheck %s --check-prefix JSON
// RUN: plan-opt %s --explain -p 'plan-pipeline{reuse-outputs=false}' | filecheck %s --check-prefix REUSE

// The input is level 2, so only passes on memrefs are tried.
func.func @f(%a: memref<64xf32>, %r: memref<64xf32> {tgraph.result = 0 : i32}) {
  %x = memref.alloc() : memref<64xf32>
  tgraph.negate %a outs(%x) : memref<64xf32>
  %y = memref.alloc() : memref<64xf32>
  tgraph.exponential %x outs(%y) : memref<64xf32>
  memref.dealloc %x : memref<64xf32>
  tgraph.tanh %y outs(%r) : memref<64xf32>
  memref.dealloc %y : memref<64xf32>
  func.return
}

// The explanation without output reuse: both buffers are live in the second operation.
// REUSE:      @f: 512 B in the arena
// REUSE-NEXT: the peak is at step {{[0-9]+}} of {{[0-9]+}}: tgraph.exponential ({{.*}}explain.mlir:10:3)
// REUSE:      size  buffer
// REUSE-NEXT: 256 B  %x {{.*}} tgraph.negate ({{.*}}:8:3) {{.*}} in use
// REUSE-NEXT: 256 B  %y {{.*}} tgraph.exponential ({{.*}}:10:3) {{.*}} in use
// REUSE:      %x is not in place: %a is an argument that is not donated
// REUSE-NEXT: %y is not in place: %x is not considered: see plan-in-place
// REUSE:      what would help
// REUSE:      256 B 256 B {{.*}} plan-in-place
// REUSE:      256 B 256 B {{.*}} reuse-outputs=true
// REUSE:      options of plan-opt, to paste
// REUSE:      plan-in-place: -p '{{.*}},plan-in-place,plan-memory{reuse_outputs=false}'
// REUSE:      reuse-outputs=true: -p plan-pipeline

// CHECK:      @f: 256 B in the arena
// CHECK:      what already helps
// CHECK:      256 B 512 B {{.*}} without output reuse

// JSON: "arena_bytes": 256
// JSON: "peaks": [
// JSON: "trials": [
// JSON: "kind": "in place"
// JSON: "passes": "{{.*}}plan-in-place,plan-memory
