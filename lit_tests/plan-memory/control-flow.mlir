// RUN: plan-opt %s -p 'plan-memory{strategy=greedy-by-size}' --split-input-file 2>/dev/null | filecheck %s

// Buffers of different branches share bytes; so does %b, which one branch never reads.
// CHECK-LABEL: func.func @branches
// CHECK-NEXT:    memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<128xi8>
// CHECK:         scf.if
// CHECK-NOT:     memref.alloc
// CHECK-NOT:     memref.dealloc %x
// CHECK:         memref.dealloc %arena
// CHECK-NEXT:    func.return
func.func @branches(%c: i1, %in: memref<16xf32>, %out: memref<16xf32>) {
  %b = memref.alloc() : memref<16xf32>
  "memref.copy"(%in, %b) : (memref<16xf32>, memref<16xf32>) -> ()
  scf.if %c {
    %x = memref.alloc() : memref<16xf32>
    "memref.copy"(%in, %x) : (memref<16xf32>, memref<16xf32>) -> ()
    %y = memref.alloc() : memref<16xf32>
    "memref.copy"(%x, %y) : (memref<16xf32>, memref<16xf32>) -> ()
    memref.dealloc %x : memref<16xf32>
    "memref.copy"(%y, %out) : (memref<16xf32>, memref<16xf32>) -> ()
    memref.dealloc %y : memref<16xf32>
  } else {
    %z = memref.alloc() : memref<16xf32>
    "memref.copy"(%b, %z) : (memref<16xf32>, memref<16xf32>) -> ()
    "memref.copy"(%z, %out) : (memref<16xf32>, memref<16xf32>) -> ()
    memref.dealloc %z : memref<16xf32>
  }
  memref.dealloc %b : memref<16xf32>
  func.return
}

// -----

// Every iteration reads %a, so it is live in the whole loop. Buffers allocated in the
// loop are live within an iteration, where %y follows %x.
// CHECK-LABEL: func.func @loop
// CHECK:         memref<128xi8>
// CHECK:         %a = memref.view %arena[%[[A:.*]]][]
// CHECK:         scf.for
// CHECK-NEXT:      %x = memref.view %arena[%[[X:.*]]][]
// CHECK:           %y = memref.view %arena[%[[X]]][]
func.func @loop(%n: index, %in: memref<16xf32>, %out: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<16xf32>
  "memref.copy"(%in, %a) : (memref<16xf32>, memref<16xf32>) -> ()
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.alloc() : memref<16xf32>
    "memref.copy"(%a, %x) : (memref<16xf32>, memref<16xf32>) -> ()
    "memref.copy"(%x, %out) : (memref<16xf32>, memref<16xf32>) -> ()
    memref.dealloc %x : memref<16xf32>
    %y = memref.alloc() : memref<16xf32>
    "memref.copy"(%in, %y) : (memref<16xf32>, memref<16xf32>) -> ()
    "memref.copy"(%y, %out) : (memref<16xf32>, memref<16xf32>) -> ()
    memref.dealloc %y : memref<16xf32>
  }
  memref.dealloc %a : memref<16xf32>
  func.return
}

// -----

// A loop that carries no memrefs; its state is in buffers from outside.
// CHECK-LABEL: func.func @while
// CHECK:         memref<68xi8>
// CHECK:         scf.while
// CHECK-NOT:     memref.alloc
func.func @while(%in: memref<f32>, %out: memref<f32>, %limit: f32) {
  %s = memref.alloc() : memref<f32>
  %next = memref.alloc() : memref<f32>
  "memref.copy"(%in, %s) : (memref<f32>, memref<f32>) -> ()
  scf.while : () -> () {
    %v = memref.load %s[] : memref<f32>
    %c = arith.cmpf olt, %v, %limit : f32
    scf.condition(%c)
  } do {
    tgraph.add %s, %in outs(%next) : memref<f32>
    "memref.copy"(%next, %s) : (memref<f32>, memref<f32>) -> ()
    scf.yield
  }
  "memref.copy"(%s, %out) : (memref<f32>, memref<f32>) -> ()
  func.return
}

// -----

// All buffers that one dealloc may free are planned together, through a select, a
// branch and the base of a view; a function does not free its argument.
// CHECK-LABEL: func.func @freed_together
// CHECK-NOT:     memref.dealloc %{{[^a]}}
// CHECK:         memref.dealloc %arena
// CHECK-NEXT:    func.return
func.func @freed_together(%c: i1, %in: memref<16xf32>, %out: memref<16xf32>) {
  %x = memref.alloc() : memref<16xf32>
  %y = memref.alloc() : memref<16xf32>
  "memref.copy"(%in, %x) : (memref<16xf32>, memref<16xf32>) -> ()
  "memref.copy"(%in, %y) : (memref<16xf32>, memref<16xf32>) -> ()
  %z = arith.select %c, %x, %y : memref<16xf32>
  %w = scf.if %c -> (memref<16xf32>) {
    scf.yield %z : memref<16xf32>
  } else {
    scf.yield %in : memref<16xf32>
  }
  "memref.copy"(%w, %out) : (memref<16xf32>, memref<16xf32>) -> ()
  %base, %offset, %size, %stride = memref.extract_strided_metadata %w : memref<16xf32> -> memref<f32>, index, index, index
  scf.if %c {
    memref.dealloc %base : memref<f32>
  }
  func.return
}

// -----

// Blocks: the live range of %x ends before ^right. Every exit frees the arena.
// CHECK-LABEL: func.func @blocks
// CHECK:         memref<64xi8>
// CHECK-COUNT-2: memref.dealloc %arena
func.func @blocks(%c: i1, %in: memref<16xf32>, %out: memref<16xf32>) {
  %x = memref.alloc() : memref<16xf32>
  cf.cond_br %c, ^left(%x : memref<16xf32>), ^right
^left(%v: memref<16xf32>):
  "memref.copy"(%in, %v) : (memref<16xf32>, memref<16xf32>) -> ()
  "memref.copy"(%v, %out) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %v : memref<16xf32>
  func.return
^right:
  %y = memref.alloc() : memref<16xf32>
  "memref.copy"(%in, %y) : (memref<16xf32>, memref<16xf32>) -> ()
  "memref.copy"(%y, %out) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %y : memref<16xf32>
  func.return
}

// -----

// The last block of the text jumps back: %x is live in all of it, so %z can't share its
// bytes.
// CHECK-LABEL: func.func @back
// CHECK:         memref<128xi8>
// CHECK:         %x = memref.view %arena[%[[X:.*]]][]
// CHECK:       ^body:
// CHECK-NOT:     memref.view %arena[%[[X]]][]
func.func @back(%c: i1, %in: memref<16xf32>, %out: memref<16xf32>) {
  %x = memref.alloc() : memref<16xf32>
  "memref.copy"(%in, %x) : (memref<16xf32>, memref<16xf32>) -> ()
  cf.br ^head
^head:
  cf.cond_br %c, ^body, ^exit
^exit:
  func.return
^body:
  %z = memref.alloc() : memref<16xf32>
  "memref.copy"(%x, %z) : (memref<16xf32>, memref<16xf32>) -> ()
  "memref.copy"(%z, %out) : (memref<16xf32>, memref<16xf32>) -> ()
  cf.br ^head
}

// -----

// The call has unknown effects on %x, but ends before %x is freed. An i1 takes one
// byte, an index eight.
// CHECK-LABEL: func.func @call
// CHECK:         memref<{{[0-9]+}}xi8>
// CHECK-NOT:     memref.dealloc %x
func.func @call() {
  %x = memref.alloc() : memref<3xi1>
  %y = memref.alloc() : memref<3xindex>
  func.call @callee(%x, %y) : (memref<3xi1>, memref<3xindex>) -> ()
  memref.dealloc %x : memref<3xi1>
  memref.dealloc %y : memref<3xindex>
  func.return
}
func.func private @callee(memref<3xi1>, memref<3xindex>)
