// Arenas whose size depends on the arguments.
// RUN: plan-opt %s -p 'plan-memory{arena=argument}' | filecheck %s --check-prefix=ARGUMENT
// RUN: not plan-opt %s -p 'plan-memory{arena=global}' 2>&1 | filecheck %s --check-prefix=GLOBAL
// RUN: plan-opt %s -p 'plan-memory{arena=global bounds="arg0_0<=16"}' | filecheck %s --check-prefix=BOUNDED
// RUN: not plan-opt %s -p 'plan-memory{arena=address bounds="arg0_0<=16"}' 2>&1 | filecheck %s --check-prefix=ADDRESS

// ADDRESS:     error: the arena of @calls is in memory space none, expected a memory of the target with a base address
// GLOBAL:      error: the arena of @alone has a symbolic size, expected a static one for arena=global: give bounds
// BOUNDED:     sym_name = "alone_arena", type = memref<64xi8>

// The size is computed from the same arguments; callers ask for it.
// ARGUMENT-LABEL: func.func private @rows(
// ARGUMENT-SAME:      %arena: memref<?xi8> {tgraph.arena = 64 : i64})
// ARGUMENT-LABEL: func.func private @rows_arena_size(%x: memref<?xf32>, %r: memref<?xf32>) -> index {
// ARGUMENT:         memref.dim %x
// ARGUMENT:         func.return
// ARGUMENT-LABEL: func.func @calls(
// ARGUMENT:         %[[BYTES:.*]] = func.call @rows_arena_size(%x, %r)
// ARGUMENT-NEXT:    %[[FRAME:.*]] = memref.alloc(%[[BYTES]]) {alignment = 64 : i64, tgraph.arena} : memref<?xi8>
// ARGUMENT-NEXT:    func.call @rows(%x, %r, %[[FRAME]])
// ARGUMENT-NEXT:    memref.dealloc %[[FRAME]]
func.func private @rows(%x: memref<?xf32>, %r: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %a = memref.alloc(%n) : memref<?xf32>
  "memref.copy"(%x, %a) : (memref<?xf32>, memref<?xf32>) -> ()
  "memref.copy"(%a, %r) : (memref<?xf32>, memref<?xf32>) -> ()
  memref.dealloc %a : memref<?xf32>
  func.return
}
func.func @calls(%x: memref<?xf32>, %r: memref<?xf32>) {
  func.call @rows(%x, %r) : (memref<?xf32>, memref<?xf32>) -> ()
  func.return
}
func.func @alone(%x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %a = memref.alloc(%n) : memref<?xf32>
  "memref.copy"(%x, %a) : (memref<?xf32>, memref<?xf32>) -> ()
  "memref.copy"(%a, %x) : (memref<?xf32>, memref<?xf32>) -> ()
  memref.dealloc %a : memref<?xf32>
  func.return
}
