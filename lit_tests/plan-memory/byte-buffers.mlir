// The program's own byte buffers, as linalg's promotion makes them, are planned like any
// other allocation. Only views of an arena (`tgraph.arena`) are separate buffers: views of
// other bytes may overlap, and their offsets may be computed.
// RUN: plan-opt %s -p plan-memory,plan-check 2>/dev/null | filecheck %s
// RUN: plan-opt %s -p 'plan-check{unmarked=false}' 2>&1 >/dev/null | filecheck %s --check-prefix=UNPLANNED
// RUN: not plan-opt %s -p plan-check 2>&1 | filecheck %s --check-prefix=UNMARKED
// RUN: not plan-opt %s -p 'plan-check{unmarked=true}' 2>&1 | filecheck %s --check-prefix=UNMARKED

// UNPLANNED: remark: plan-check: 0 arenas, 0 buffers checked
// UNMARKED:  error: buffer %second has offset 96, expected a multiple of the arena's alignment, 128

// %second overlaps %half, and is not aligned like %bytes.
// CHECK-LABEL: func.func @apart(
// CHECK-NEXT:    %arena = memref.alloc() {alignment = 128 : i64, tgraph.arena} : memref<256xi8>
// CHECK:         %bytes = memref.view %arena[%c0_1][] : memref<256xi8> to memref<256xi8>
// CHECK-NEXT:    %first = memref.view %bytes[%c0][] : memref<256xi8> to memref<16xf32>
// CHECK:         %z = memref.view %arena[%c0_1][] {tgraph.alignment = 64 : i64} : memref<256xi8> to memref<16xf32>
func.func @apart(%x: memref<16xf32>, %y: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c96 = arith.constant 96 : index
  %bytes = memref.alloc() {alignment = 128 : i64} : memref<256xi8>
  %first = memref.view %bytes[%c0][] : memref<256xi8> to memref<16xf32>
  %second = memref.view %bytes[%c96][] : memref<256xi8> to memref<16xf32>
  %half = memref.view %bytes[%c96][] : memref<256xi8> to memref<8xi32>
  memref.copy %x, %first : memref<16xf32> to memref<16xf32>
  memref.copy %x, %second : memref<16xf32> to memref<16xf32>
  %one = memref.load %half[%c0] : memref<8xi32>
  memref.store %one, %half[%c0] : memref<8xi32>
  linalg.add ins(%first, %second : memref<16xf32>, memref<16xf32>) outs(%y : memref<16xf32>)
  memref.dealloc %bytes : memref<256xi8>
  %z = memref.alloc() : memref<16xf32>
  memref.copy %x, %z : memref<16xf32> to memref<16xf32>
  memref.copy %z, %y : memref<16xf32> to memref<16xf32>
  memref.dealloc %z : memref<16xf32>
  func.return
}

// Two halves take turns.
// CHECK-LABEL: func.func @in_turns(
// CHECK:         memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<128xi8>
// CHECK:         scf.for
// CHECK:           memref.view %bytes[%{{.*}}][] : memref<128xi8> to memref<16xf32>
func.func @in_turns(%x: memref<16xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %bytes = memref.alloc() : memref<128xi8>
  scf.for %i = %c0 to %n step %c1 {
    %turn = arith.remui %i, %c2 : index
    %at = arith.muli %turn, %c64 : index
    %half = memref.view %bytes[%at][] : memref<128xi8> to memref<16xf32>
    memref.copy %x, %half : memref<16xf32> to memref<16xf32>
    memref.copy %half, %x : memref<16xf32> to memref<16xf32>
  }
  memref.dealloc %bytes : memref<128xi8>
  func.return
}

// A loop that exchanges two byte buffers: views of one are not views of the other.
// CHECK-LABEL: func.func @exchanged(
// CHECK:         memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<256xi8>
func.func @exchanged(%x: memref<16xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %p = memref.alloc() : memref<128xi8>
  %q = memref.alloc() : memref<128xi8>
  %first = memref.view %p[%c0][] : memref<128xi8> to memref<16xf32>
  memref.copy %x, %first : memref<16xf32> to memref<16xf32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %p, %t = %q) -> (memref<128xi8>, memref<128xi8>) {
    %old = memref.view %s[%c0][] : memref<128xi8> to memref<16xf32>
    %new = memref.view %t[%c0][] : memref<128xi8> to memref<16xf32>
    %other = memref.view %t[%c64][] : memref<128xi8> to memref<16xf32>
    memref.copy %x, %other : memref<16xf32> to memref<16xf32>
    linalg.add ins(%old, %other : memref<16xf32>, memref<16xf32>) outs(%new : memref<16xf32>)
    linalg.add ins(%new, %other : memref<16xf32>, memref<16xf32>) outs(%x : memref<16xf32>)
    scf.yield %t, %s : memref<128xi8>, memref<128xi8>
  }
  memref.dealloc %p : memref<128xi8>
  memref.dealloc %q : memref<128xi8>
  func.return
}
