// Buffers that loops and branches forward.
// RUN: plan-opt %s -p plan-memory --split-input-file 2>/dev/null | filecheck %s
// RUN: plan-opt %s -p plan-memory --split-input-file 2>&1 >/dev/null | filecheck %s --check-prefix=REMARK --allow-empty
// REMARK-NOT: not

// %old is read while %new is written: two slots, one of which holds %first.
// CHECK-LABEL: func.func @ping_pong
// CHECK-NEXT:    %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<128xi8>
// CHECK:         %first = memref.view %arena[%[[FIRST:.*]]][] : memref<128xi8> to memref<16xf32>
// CHECK:         %slot = memref.view %arena[%[[OTHER:.*]]][] : memref<128xi8> to memref<64xi8>
// CHECK-NEXT:    %slot_1 = memref.view %arena[%[[FIRST]]][] : memref<128xi8> to memref<64xi8>
// CHECK-NEXT:    scf.for {{.*}} iter_args(%old = %first, %[[A:.*]] = %slot, %[[B:.*]] = %slot_1)
// CHECK-NEXT:      %new = memref.view %[[A]][%{{.*}}][] {tgraph.buffer} : memref<64xi8> to memref<16xf32>
// CHECK-NEXT:      tgraph.reverse %old outs(%new)
// CHECK-NEXT:      scf.yield %new, %[[B]], %[[A]]
// CHECK-NEXT:    }
// CHECK-NEXT:    "memref.copy"(%last, %out)
// CHECK-NEXT:    memref.dealloc %arena
func.func @ping_pong(%n: index, %in: memref<16xf32>, %out: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %first = memref.alloc() : memref<16xf32>
  "memref.copy"(%in, %first) : (memref<16xf32>, memref<16xf32>) -> ()
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%old = %first) -> (memref<16xf32>) {
    %new = memref.alloc() : memref<16xf32>
    tgraph.reverse %old outs(%new) {dimensions = array<i64: 0>} : memref<16xf32>
    memref.dealloc %old : memref<16xf32>
    scf.yield %new : memref<16xf32>
  }
  "memref.copy"(%last, %out) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %last : memref<16xf32>
  func.return
}

// -----

// In a loop of cf blocks, the first block has the slots as arguments.
// CHECK-LABEL: func.func @ping_pong_of_blocks
// CHECK-NEXT:    %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<128xi8>
// CHECK:         %first = memref.view %arena[%[[FIRST:.*]]][] : memref<128xi8> to memref<16xf32>
// CHECK:         %slot = memref.view %arena[%[[OTHER:.*]]][] : memref<128xi8> to memref<64xi8>
// CHECK-NEXT:    %slot_1 = memref.view %arena[%[[FIRST]]][] : memref<128xi8> to memref<64xi8>
// CHECK-NEXT:    cf.br ^[[HEAD:[a-z0-9]+]](%first, %slot, %slot_1 :
// CHECK-NEXT:  ^[[HEAD]](%old: memref<16xf32>, %[[A:.*]]: memref<64xi8>, %[[B:.*]]: memref<64xi8>):
// CHECK-NEXT:    cf.cond_br %c, ^{{.*}}, ^{{.*}}
// CHECK:         %new = memref.view %[[A]][%{{.*}}][] {tgraph.buffer} : memref<64xi8> to memref<16xf32>
// CHECK-NEXT:    tgraph.reverse %old outs(%new)
// CHECK-NEXT:    cf.br ^[[HEAD]](%new, %[[B]], %[[A]] :
func.func @ping_pong_of_blocks(%c: i1, %in: memref<16xf32>, %out: memref<16xf32>) {
  %first = memref.alloc() : memref<16xf32>
  "memref.copy"(%in, %first) : (memref<16xf32>, memref<16xf32>) -> ()
  cf.br ^head(%first : memref<16xf32>)
^head(%old: memref<16xf32>):
  cf.cond_br %c, ^body, ^end
^body:
  %new = memref.alloc() : memref<16xf32>
  tgraph.reverse %old outs(%new) {dimensions = array<i64: 0>} : memref<16xf32>
  memref.dealloc %old : memref<16xf32>
  cf.br ^head(%new : memref<16xf32>)
^end:
  "memref.copy"(%old, %out) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %old : memref<16xf32>
  func.return
}

// -----

// %old is dead when %new is written: one slot for both.
// CHECK-LABEL: func.func @one_slot
// CHECK-NEXT:    %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
// CHECK:         scf.for {{.*}} iter_args(%old = %first) -> (memref<16xf32>)
// CHECK:           %new = memref.view %arena
func.func @one_slot(%n: index, %in: memref<16xf32>, %out: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %first = memref.alloc() : memref<16xf32>
  "memref.copy"(%in, %first) : (memref<16xf32>, memref<16xf32>) -> ()
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%old = %first) -> (memref<16xf32>) {
    "memref.copy"(%old, %out) : (memref<16xf32>, memref<16xf32>) -> ()
    memref.dealloc %old : memref<16xf32>
    %new = memref.alloc() : memref<16xf32>
    "memref.copy"(%in, %new) : (memref<16xf32>, memref<16xf32>) -> ()
    scf.yield %new : memref<16xf32>
  }
  "memref.copy"(%last, %out) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %last : memref<16xf32>
  func.return
}

// -----

// %new is computed in place over %old, element by element: one slot for both.
// CHECK-LABEL: func.func @over_the_one_before
// CHECK-NEXT:    %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
// CHECK:         %first = memref.view %arena[%[[AT:.*]]][]
// CHECK:         scf.for {{.*}} iter_args(%old = %first) -> (memref<16xf32>)
// CHECK-NEXT:      %new = memref.view %arena[%[[AT]]][]
// CHECK-NEXT:      linalg.add ins(%old, %in {{.*}} outs(%new
func.func @over_the_one_before(%n: index, %in: memref<16xf32>, %out: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %first = memref.alloc() : memref<16xf32>
  "memref.copy"(%in, %first) : (memref<16xf32>, memref<16xf32>) -> ()
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%old = %first) -> (memref<16xf32>) {
    %new = memref.alloc() : memref<16xf32>
    linalg.add ins(%old, %in : memref<16xf32>, memref<16xf32>) outs(%new : memref<16xf32>)
    memref.dealloc %old : memref<16xf32>
    scf.yield %new : memref<16xf32>
  }
  "memref.copy"(%last, %out) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %last : memref<16xf32>
  func.return
}

// -----

// %b is computed in place over %a on one path: one slot for both.
// CHECK-LABEL: func.func @over_the_other_path
// CHECK-NEXT:    %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<4096xi8>
// CHECK:         %a = memref.view %arena[%c0]
// CHECK:         %b = memref.view %arena[%c0]
func.func @over_the_other_path(%c: i1, %in: memref<1024xf32>, %out: memref<1024xf32>) {
  %a = memref.alloc() : memref<1024xf32>
  "memref.copy"(%in, %a) : (memref<1024xf32>, memref<1024xf32>) -> ()
  %r = scf.if %c -> (memref<1024xf32>) {
    %b = memref.alloc() : memref<1024xf32>
    linalg.add ins(%a, %in : memref<1024xf32>, memref<1024xf32>) outs(%b : memref<1024xf32>)
    memref.dealloc %a : memref<1024xf32>
    scf.yield %b : memref<1024xf32>
  } else {
    scf.yield %a : memref<1024xf32>
  }
  "memref.copy"(%r, %out) : (memref<1024xf32>, memref<1024xf32>) -> ()
  memref.dealloc %r : memref<1024xf32>
  func.return
}

// -----

// Neither buffer has contents before the select: one slot for both.
// CHECK-LABEL: func.func @one_of_two
// CHECK-NEXT:    %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
func.func @one_of_two(%c: i1, %in: memref<16xf32>, %out: memref<16xf32>) {
  %a = memref.alloc() : memref<16xf32>
  %b = memref.alloc() : memref<16xf32>
  %s = arith.select %c, %a, %b : memref<16xf32>
  "memref.copy"(%in, %s) : (memref<16xf32>, memref<16xf32>) -> ()
  "memref.copy"(%s, %out) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %a : memref<16xf32>
  memref.dealloc %b : memref<16xf32>
  func.return
}

// -----

// The next iteration may read the buffer that this one selects and writes: two slots.
// CHECK-LABEL: func.func @one_of_two_again
// CHECK-NEXT:    %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<128xi8>
func.func @one_of_two_again(%c: memref<?xi1>, %n: index, %in: memref<16xf32>, %out: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<16xf32>
  %b = memref.alloc() : memref<16xf32>
  scf.for %i = %c0 to %n step %c1 {
    %p = memref.load %c[%i] : memref<?xi1>
    %s = arith.select %p, %a, %b : memref<16xf32>
    "memref.copy"(%s, %out) : (memref<16xf32>, memref<16xf32>) -> ()
    "memref.copy"(%in, %s) : (memref<16xf32>, memref<16xf32>) -> ()
  }
  memref.dealloc %a : memref<16xf32>
  memref.dealloc %b : memref<16xf32>
  func.return
}

// -----

// One path frees the buffer and allocates another one.
// CHECK-LABEL: func.func @one_path
// CHECK-NEXT:    %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<4096xi8>
// CHECK:         %a = memref.view %arena[%c0]
// CHECK:         %b = memref.view %arena[%c0]
func.func @one_path(%c: i1, %in: memref<1024xf32>, %out: memref<1024xf32>) {
  %a = memref.alloc() : memref<1024xf32>
  "memref.copy"(%in, %a) : (memref<1024xf32>, memref<1024xf32>) -> ()
  %r = scf.if %c -> (memref<1024xf32>) {
    "memref.copy"(%a, %out) : (memref<1024xf32>, memref<1024xf32>) -> ()
    memref.dealloc %a : memref<1024xf32>
    %b = memref.alloc() : memref<1024xf32>
    "memref.copy"(%in, %b) : (memref<1024xf32>, memref<1024xf32>) -> ()
    scf.yield %b : memref<1024xf32>
  } else {
    scf.yield %a : memref<1024xf32>
  }
  "memref.copy"(%r, %out) : (memref<1024xf32>, memref<1024xf32>) -> ()
  memref.dealloc %r : memref<1024xf32>
  func.return
}

// -----

// Each block allocates the buffer that it forwards.
// CHECK-LABEL: func.func @blocks
// CHECK-NEXT:    %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
func.func @blocks(%c: i1, %in: memref<16xf32>, %out: memref<16xf32>) {
  cf.cond_br %c, ^left, ^right
^left:
  %a = memref.alloc() : memref<16xf32>
  "memref.copy"(%in, %a) : (memref<16xf32>, memref<16xf32>) -> ()
  cf.br ^end(%a : memref<16xf32>)
^right:
  %b = memref.alloc() : memref<16xf32>
  "memref.copy"(%in, %b) : (memref<16xf32>, memref<16xf32>) -> ()
  cf.br ^end(%b : memref<16xf32>)
^end(%r: memref<16xf32>):
  "memref.copy"(%r, %out) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %r : memref<16xf32>
  func.return
}
