// A sound plan passes unchanged; faulty plans are in errors/plan-*.mlir.
// RUN: plan-opt %s -p plan-check | filecheck %s

// %x and %y share bytes one after the other; a view keeps %y live; %z may lie anywhere
// above.
// CHECK-LABEL: func.func @sound
// CHECK-COUNT-3: memref.view
func.func @sound(%a: memref<16xf32>, %b: memref<4xf32>) {
  %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<192xi8>
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %x = memref.view %arena[%c0][] : memref<192xi8> to memref<16xf32>
  tgraph.negate %a outs(%x) : memref<16xf32>
  %z = memref.view %arena[%c128][] : memref<192xi8> to memref<16xf32>
  tgraph.reverse %x outs(%z) {dimensions = array<i64: 0>} : memref<16xf32>
  %y = memref.view %arena[%c0][] : memref<192xi8> to memref<16xf32>
  tgraph.negate %z outs(%y) : memref<16xf32>
  %v = memref.reinterpret_cast %y to offset: [12], sizes: [4], strides: [-1] : memref<16xf32> to memref<4xf32, strided<[-1], offset: 12>>
  tgraph.negate %v outs(%b) : (memref<4xf32, strided<[-1], offset: 12>>) -> memref<4xf32>
  memref.dealloc %arena : memref<192xi8>
  func.return
}

// One view with two live ranges (as `cse` leaves it), and another buffer in between.
// CHECK-LABEL: func.func @two_lives
// CHECK-COUNT-2: memref.view
func.func @two_lives(%a: memref<16xf32>) {
  %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
  %c0 = arith.constant 0 : index
  %x = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
  tgraph.negate %a outs(%x) : memref<16xf32>
  tgraph.negate %x outs(%a) : memref<16xf32>
  %y = memref.view %arena[%c0][] : memref<64xi8> to memref<4x4xf32>
  tgraph.constant<0.0 : f32> outs(%y) : memref<4x4xf32>
  tgraph.negate %a outs(%x) : memref<16xf32>
  tgraph.negate %x outs(%a) : memref<16xf32>
  memref.dealloc %arena : memref<64xi8>
  func.return
}

// A group may yield a value unchanged in the same memory.
// CHECK-LABEL: func.func @yielded
func.func @yielded(%v: memref<12xi32, "cpu:0"> {tgraph.variable}) {
  tgraph.fusion(%x = %v) outs(%v) : memref<12xi32, "cpu:0"> {
    tgraph.yield %x : tensor<12xi32, "cpu:0">
  }
  func.return
}
