// RUN: plan-opt %s -p tgraph-rematerialize 2>%t.err | filecheck %s
// RUN: filecheck %s --check-prefix=REMARK --input-file %t.err
// RUN: plan-opt %s -p 'tgraph-rematerialize{max-slowdown=0}' | filecheck %s --check-prefix=NOTHING
// RUN: plan-opt %s -p plan-pipeline | filecheck %s --check-prefix=PLANNED

// Without a budget, values that take less than a fiftieth of the time are recomputed.
// CHECK-LABEL: func.func @late_reader
// CHECK-NEXT:    %a = tgraph.abs %x : tensor<256x256xf32>
// CHECK-NEXT:    %b = tgraph.dot_general %a, %w
// CHECK-NEXT:    %c = tgraph.dot_general %b, %w
// CHECK-NEXT:    %[[A:.*]] = tgraph.abs %x {tgraph.recomputed} : tensor<256x256xf32>
// CHECK-NEXT:    %d = tgraph.dot_general %c, %[[A]]
// REMARK: remark: recomputed operations: 1, with 65536 FLOPs, 0.07 % of the function's 100728832

// The default sequence recomputes them, too: two values live at once instead of three.
// PLANNED-LABEL: func.func @late_reader
// PLANNED:         memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<524288xi8, "cpu:0">

// NOTHING-NOT: recomputed
func.func @late_reader(%x: tensor<256x256xf32>, %w: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %a = tgraph.abs %x : tensor<256x256xf32>
  %b = tgraph.dot_general %a, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<256x256xf32>
  %c = tgraph.dot_general %b, %w {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<256x256xf32>
  %d = tgraph.dot_general %c, %a {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<256x256xf32>
  func.return %d : tensor<256x256xf32>
}
