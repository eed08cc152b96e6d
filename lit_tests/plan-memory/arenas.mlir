// Who owns arenas, and where the arenas of callees lie.
// RUN: plan-opt %s -p 'plan-memory{arena=argument}' --split-input-file --allow-unregistered-dialect 2>/dev/null | filecheck %s --check-prefix=ARGUMENT
// RUN: plan-opt %s -p 'plan-memory{arena=global}' --split-input-file --allow-unregistered-dialect 2>/dev/null | filecheck %s --check-prefix=GLOBAL
// RUN: plan-opt %s --target-memory %S/arenas.toml -p 'plan-memory{arena=address}' --split-input-file --allow-unregistered-dialect 2>/dev/null | filecheck %s --check-prefix=ADDRESS
// RUN: plan-opt %s -p 'plan-memory{arena=argument}' --split-input-file --allow-unregistered-dialect 2>&1 >/dev/null | filecheck %s --check-prefix=REMARK

// The frame of @leaf is in the arena of @main, over buffers that are dead at the call.
// ARGUMENT:      func.func private @leaf(
// ARGUMENT-SAME:     %arena: memref<128xi8> {tgraph.arena = 64 : i64})
// ARGUMENT-NOT:    memref.alloc
// ARGUMENT:      func.func private @leaf_arena_size() -> index {
// ARGUMENT-NEXT:   %0 = arith.constant 128 : index
// ARGUMENT-NEXT:   func.return %0 : index
// ARGUMENT:      func.func @main(
// ARGUMENT-SAME:     %arena: memref<192xi8> {tgraph.arena = 64 : i64})
// ARGUMENT:        %a = memref.view %arena[%c128][]
// ARGUMENT:        %leaf_arena = memref.view %arena[%c0][] {tgraph.arena} : memref<192xi8> to memref<128xi8>
// ARGUMENT:        func.call @leaf(%x, %a, %leaf_arena)
// ARGUMENT:        %leaf_arena_1 = memref.view %arena[%c0][] {tgraph.arena} : memref<192xi8> to memref<128xi8>
// ARGUMENT:        func.call @leaf(%a, %r, %leaf_arena_1)
// ARGUMENT:      func.func @main_arena_size() -> index {
// ARGUMENT-NEXT:   %0 = arith.constant 192 : index
// GLOBAL:        func.func private @leaf(
// GLOBAL-SAME:       %arena: memref<128xi8> {tgraph.arena = 64 : i64})
// GLOBAL:        "memref.global"() <{sym_name = "main_arena", type = memref<192xi8>,
// GLOBAL-SAME:       alignment = 64 : i64
// GLOBAL:          %arena = memref.get_global @main_arena : memref<192xi8> {tgraph.arena = 64 : i64}
// ADDRESS:       func.func @main(
// ADDRESS:         %0 = arith.constant 805306368 : i64
// ADDRESS:         %[[P:.*]] = llvm.inttoptr %0 : i64 to !llvm.ptr
// ADDRESS:         llvm.insertvalue %[[P]], %{{.*}}[1]
// ADDRESS:         %arena = builtin.unrealized_conversion_cast %{{.*}} to memref<192xi8> {tgraph.arena = 64 : i64}
func.func private @leaf(%x: memref<16xf32>, %r: memref<16xf32>) {
  %a = memref.alloc() : memref<16xf32>
  "memref.copy"(%x, %a) : (memref<16xf32>, memref<16xf32>) -> ()
  %b = memref.alloc() : memref<16xf32>
  "memref.copy"(%a, %b) : (memref<16xf32>, memref<16xf32>) -> ()
  "memref.copy"(%b, %r) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %a : memref<16xf32>
  memref.dealloc %b : memref<16xf32>
  func.return
}
func.func @main(%x: memref<16xf32>, %r: memref<16xf32>) {
  %a = memref.alloc() : memref<16xf32>
  func.call @leaf(%x, %a) : (memref<16xf32>, memref<16xf32>) -> ()
  func.call @leaf(%a, %r) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %a : memref<16xf32>
  func.return
}

// -----

// Each memory space has its own arena.
// ARGUMENT-LABEL: func.func @spaces(
// ARGUMENT-SAME:      %arena: memref<64xi8, "L1"> {tgraph.arena = 64 : i64}, %arena_1: memref<128xi8, "L3"> {tgraph.arena = 64 : i64})
// ARGUMENT:       func.func @spaces_arena_size() -> (index, index) {
// GLOBAL:         sym_name = "spaces_arena_L1", type = memref<64xi8, "L1">
// GLOBAL:         sym_name = "spaces_arena_L3", type = memref<128xi8, "L3">
// ADDRESS-LABEL:  func.func @spaces(
// ADDRESS-DAG:      arith.constant 268435456 : i64
// ADDRESS-DAG:      arith.constant 536870912 : i64
func.func @spaces(%x: memref<32xf32>, %r: memref<16xf32>) {
  %a = memref.alloc() : memref<16xf32, "L1">
  %b = memref.alloc() : memref<32xf32, "L3">
  "memref.copy"(%x, %b) : (memref<32xf32>, memref<32xf32, "L3">) -> ()
  "memref.copy"(%r, %a) : (memref<16xf32>, memref<16xf32, "L1">) -> ()
  "memref.copy"(%b, %x) : (memref<32xf32, "L3">, memref<32xf32>) -> ()
  "memref.copy"(%a, %r) : (memref<16xf32, "L1">, memref<16xf32>) -> ()
  memref.dealloc %a : memref<16xf32, "L1">
  memref.dealloc %b : memref<32xf32, "L3">
  func.return
}

// -----

// A frame serves one call at a time, so a recursive function allocates its own; in a
// parallel loop, each iteration allocates the frame of its call.
// ARGUMENT-LABEL: func.func private @again(%x: memref<16xf32>, %c: i1) {
// ARGUMENT-NEXT:    memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
// ARGUMENT-LABEL: func.func private @taken(
// ARGUMENT-SAME:      %arena: memref<64xi8> {tgraph.arena = 64 : i64})
// ARGUMENT-LABEL: func.func @root(
// ARGUMENT:           scf.parallel
// ARGUMENT:             %[[FRAME:.*]] = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
// ARGUMENT-NEXT:        func.call @taken(%x, %[[FRAME]])
// ARGUMENT-NEXT:        memref.dealloc %[[FRAME]]
// REMARK: remark: the arena of @again is allocated: the function calls itself
// REMARK: remark: memref.alloc is not planned: it is inside scf.parallel, which may run concurrently with itself
func.func private @again(%x: memref<16xf32>, %c: i1) {
  %a = memref.alloc() : memref<16xf32>
  "memref.copy"(%x, %a) : (memref<16xf32>, memref<16xf32>) -> ()
  scf.if %c {
    %d = arith.constant false
    func.call @again(%a, %d) : (memref<16xf32>, i1) -> ()
  }
  "memref.copy"(%a, %x) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %a : memref<16xf32>
  func.return
}
func.func private @taken(%x: memref<16xf32>) {
  %a = memref.alloc() : memref<16xf32>
  "memref.copy"(%x, %a) : (memref<16xf32>, memref<16xf32>) -> ()
  "memref.copy"(%a, %x) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %a : memref<16xf32>
  func.return
}
func.func @root(%x: memref<16xf32>, %c: i1, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  func.call @again(%x, %c) : (memref<16xf32>, i1) -> ()
  "scf.parallel"(%c0, %n, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    func.call @taken(%x) : (memref<16xf32>) -> ()
    "scf.reduce"() : () -> ()
  }) : (index, index, index) -> ()
  func.return
}

// -----

// Functions in nested modules have arenas; one whose address is taken keeps its type.
// ARGUMENT-LABEL: builtin.module @inner
// ARGUMENT:         func.func @within(
// ARGUMENT-SAME:        %arena: memref<64xi8> {tgraph.arena = 64 : i64})
// ARGUMENT-LABEL: func.func @named(%x: memref<16xf32>) {
// ARGUMENT-NEXT:    memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
// REMARK: remark: the arena of @named is allocated: func.constant refers to the function
builtin.module @inner {
  func.func @within(%x: memref<16xf32>) {
    %a = memref.alloc() : memref<16xf32>
    "memref.copy"(%x, %a) : (memref<16xf32>, memref<16xf32>) -> ()
    "memref.copy"(%a, %x) : (memref<16xf32>, memref<16xf32>) -> ()
    memref.dealloc %a : memref<16xf32>
    func.return
  }
}
func.func @named(%x: memref<16xf32>) {
  %a = memref.alloc() : memref<16xf32>
  "memref.copy"(%x, %a) : (memref<16xf32>, memref<16xf32>) -> ()
  "memref.copy"(%a, %x) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %a : memref<16xf32>
  func.return
}
func.func @names(%x: memref<16xf32>) {
  %f = "func.constant"() {value = @named} : () -> ((memref<16xf32>) -> ())
  "func.call_indirect"(%f, %x) : ((memref<16xf32>) -> (), memref<16xf32>) -> ()
  func.return
}
