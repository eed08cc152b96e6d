// Tests of upstream's static-memory-planner that other files do not cover: branches
// that free, aliases over several operations, loops.
// RUN: plan-opt %s -p plan-memory --split-input-file 2>/dev/null | filecheck %s

// Static and dynamic sizes in one function.
// CHECK-LABEL: func.func @static_and_dynamic
// CHECK:         memref<64xi8>
// CHECK:         memref.alloc(%n)
func.func @static_and_dynamic(%size: memref<index>, %in: memref<16xf32>) {
  %n = memref.load %size[] : memref<index>
  %x = memref.alloc() : memref<16xf32>
  %y = memref.alloc(%n) : memref<?xf32>
  "memref.copy"(%in, %x) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %y : memref<?xf32>
  memref.dealloc %x : memref<16xf32>
  func.return
}

// -----

// Both branches free the buffer, one of them three levels deep. %y reuses its bytes.
// CHECK-LABEL: func.func @freed_in_branches
// CHECK:         memref<64xi8>
// CHECK-NOT:     memref.dealloc %x
// CHECK:         func.return
func.func @freed_in_branches(%c: i1, %in: memref<16xf32>, %out: memref<16xf32>) {
  %x = memref.alloc() : memref<16xf32>
  "memref.copy"(%in, %x) : (memref<16xf32>, memref<16xf32>) -> ()
  "memref.copy"(%x, %out) : (memref<16xf32>, memref<16xf32>) -> ()
  scf.if %c {
    memref.dealloc %x : memref<16xf32>
  } else {
    scf.if %c {
      memref.dealloc %x : memref<16xf32>
    } else {
      scf.if %c {
        memref.dealloc %x : memref<16xf32>
      }
    }
  }
  %y = memref.alloc() : memref<16xf32>
  "memref.copy"(%in, %y) : (memref<16xf32>, memref<16xf32>) -> ()
  "memref.copy"(%y, %out) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %y : memref<16xf32>
  func.return
}

// -----

// A select through two branches: the dealloc of %w frees %x and %y, so until then they
// are live, disjoint from each other and from %z.
// CHECK-LABEL: func.func @hops
// CHECK:         memref<192xi8>
// CHECK-NOT:     memref.dealloc %w
// CHECK:         func.return
func.func @hops(%c: i1, %in: memref<16xf32>, %out: memref<16xf32>) {
  %x = memref.alloc() : memref<16xf32>
  %y = memref.alloc() : memref<16xf32>
  "memref.copy"(%in, %x) : (memref<16xf32>, memref<16xf32>) -> ()
  "memref.copy"(%in, %y) : (memref<16xf32>, memref<16xf32>) -> ()
  %s = arith.select %c, %x, %y : memref<16xf32>
  %v = scf.if %c -> (memref<16xf32>) {
    scf.yield %s : memref<16xf32>
  } else {
    scf.yield %x : memref<16xf32>
  }
  %w = scf.if %c -> (memref<16xf32>) {
    scf.yield %v : memref<16xf32>
  } else {
    scf.yield %y : memref<16xf32>
  }
  %z = memref.alloc() : memref<16xf32>
  "memref.copy"(%in, %z) : (memref<16xf32>, memref<16xf32>) -> ()
  "memref.copy"(%z, %out) : (memref<16xf32>, memref<16xf32>) -> ()
  "memref.copy"(%x, %out) : (memref<16xf32>, memref<16xf32>) -> ()
  "memref.copy"(%y, %out) : (memref<16xf32>, memref<16xf32>) -> ()
  "memref.copy"(%w, %out) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %z : memref<16xf32>
  memref.dealloc %w : memref<16xf32>
  func.return
}

// -----

// Never freed: live until the function ends. (Upstream requires a dealloc.)
// CHECK-LABEL: func.func @never_freed
// CHECK:         memref<64xi8>
// CHECK:         memref.dealloc %arena
func.func @never_freed(%in: memref<16xf32>, %out: memref<16xf32>) {
  %x = memref.alloc() : memref<16xf32>
  "memref.copy"(%in, %x) : (memref<16xf32>, memref<16xf32>) -> ()
  "memref.copy"(%x, %out) : (memref<16xf32>, memref<16xf32>) -> ()
  func.return
}

// -----

// Forwarded by a loop that frees nothing: two slots, which rotate.
// CHECK-LABEL: func.func @replaced_without_dealloc
// CHECK-NEXT:    %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<128xi8>
// CHECK:         scf.for
// CHECK-NEXT:      %y = memref.view %{{[0-9]+}}[{{.*}}][] {tgraph.buffer} : memref<64xi8> to memref<16xf32>
func.func @replaced_without_dealloc(%n: index, %in: memref<16xf32>, %out: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = memref.alloc() : memref<16xf32>
  "memref.copy"(%in, %x) : (memref<16xf32>, memref<16xf32>) -> ()
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%v = %x) -> (memref<16xf32>) {
    %y = memref.alloc() : memref<16xf32>
    tgraph.reverse %v outs(%y) {dimensions = array<i64: 0>} : memref<16xf32>
    scf.yield %y : memref<16xf32>
  }
  "memref.copy"(%r, %out) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %r : memref<16xf32>
  func.return
}
