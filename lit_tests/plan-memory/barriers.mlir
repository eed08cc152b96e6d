// Programs that several cores run at once, as snax-mlir generates them: one core
// copies, the other computes, and both wait for each other at barriers.
// RUN: plan-opt %s -p plan-memory --allow-unregistered-dialect --split-input-file 2>/dev/null | filecheck %s
// RUN: plan-opt %s -p plan-memory --allow-unregistered-dialect --split-input-file 2>&1 >/dev/null | filecheck %s --check-prefix=REMARK
// RUN: plan-opt %s --target-memory %S/arenas.toml -p 'plan-memory{arena=address}' --allow-unregistered-dialect --split-input-file 2>/dev/null | filecheck %s --check-prefix=ADDRESS

// %d is copied during the first product, so it must not lie in the memory of %a or %b,
// though their last use precedes it in the text. %e may.
// CHECK-LABEL: func.func @layers
// CHECK:         %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<256xi8, "L1">
// CHECK:         %a = memref.view %arena[%c0][]
// CHECK:         %b = memref.view %arena[%c64][]
// CHECK:         %c = memref.view %arena[%c128][]
// CHECK:         %d = memref.view %arena[%c192][]
// CHECK:         %e = memref.view %arena[%c0][]
// REMARK:      plan-check: barriers of several agents, order not checked: 3 (snax.cluster_sync_op)
// ADDRESS-LABEL: func.func @layers
// ADDRESS:         arith.constant 268435456 : i64
// ADDRESS:         builtin.unrealized_conversion_cast %{{.*}} to memref<256xi8, "L1">
func.func @layers(%x: memref<8x8xi8, "L3">, %w: memref<8x8xi8, "L3">, %r: memref<8x8xi8, "L3">) {
  %a = memref.alloc() {alignment = 64 : i64} : memref<8x8xi8, "L1">
  %b = memref.alloc() {alignment = 64 : i64} : memref<8x8xi8, "L1">
  %c = memref.alloc() {alignment = 64 : i64} : memref<8x8xi8, "L1">
  "memref.copy"(%x, %a) : (memref<8x8xi8, "L3">, memref<8x8xi8, "L1">) -> ()
  "memref.copy"(%w, %b) : (memref<8x8xi8, "L3">, memref<8x8xi8, "L1">) -> ()
  "snax.cluster_sync_op"() : () -> ()
  "dart.schedule"(%a, %b, %c) : (memref<8x8xi8, "L1">, memref<8x8xi8, "L1">, memref<8x8xi8, "L1">) -> ()
  %d = memref.alloc() {alignment = 64 : i64} : memref<8x8xi8, "L1">
  "memref.copy"(%w, %d) : (memref<8x8xi8, "L3">, memref<8x8xi8, "L1">) -> ()
  "snax.cluster_sync_op"() : () -> ()
  %e = memref.alloc() {alignment = 64 : i64} : memref<8x8xi8, "L1">
  "dart.schedule"(%c, %d, %e) : (memref<8x8xi8, "L1">, memref<8x8xi8, "L1">, memref<8x8xi8, "L1">) -> ()
  "snax.cluster_sync_op"() : () -> ()
  "memref.copy"(%e, %r) : (memref<8x8xi8, "L1">, memref<8x8xi8, "L3">) -> ()
  func.return
}

// -----

// Each core has a branch with barriers inside. One branch reads %c, which the other
// writes later in the text. All buffers are live in the whole program.
// CHECK-LABEL: func.func @cores
// CHECK:         %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<192xi8, "L1">
// REMARK:      plan-check: reads of memory that may not be written yet: 2 (memref.copy, linalg.generic)
// REMARK:      plan-check: barriers of several agents, order not checked: 4 (snax.cluster_sync_op)
func.func @cores(%copies: i1, %computes: i1, %x: memref<8xi64, "L3">, %r: memref<8xi64, "L3">) {
  %a = memref.alloc() : memref<8xi64, "L1">
  %b = memref.alloc() : memref<8xi64, "L1">
  %c = memref.alloc() : memref<8xi64, "L1">
  scf.if %copies {
    "memref.copy"(%x, %a) : (memref<8xi64, "L3">, memref<8xi64, "L1">) -> ()
    "memref.copy"(%x, %b) : (memref<8xi64, "L3">, memref<8xi64, "L1">) -> ()
    "snax.cluster_sync_op"() : () -> ()
    "snax.cluster_sync_op"() : () -> ()
    "memref.copy"(%c, %r) : (memref<8xi64, "L1">, memref<8xi64, "L3">) -> ()
  }
  scf.if %computes {
    "snax.cluster_sync_op"() : () -> ()
    linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                    iterator_types = ["parallel"]}
        ins(%a, %b : memref<8xi64, "L1">, memref<8xi64, "L1">) outs(%c : memref<8xi64, "L1">) {
    ^bb0(%l: i64, %m: i64, %n: i64):
      %s = arith.addi %l, %m : i64
      linalg.yield %s : i64
    }
    "snax.cluster_sync_op"() : () -> ()
    scf.yield
  }
  func.return
}
