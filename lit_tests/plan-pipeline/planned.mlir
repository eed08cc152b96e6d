// Planned IR stays unchanged: equal views are separate live ranges, which streams may
// use, and not common subexpressions.
// RUN: plan-opt %s -p plan-pipeline | filecheck %s

// CHECK-LABEL: func.func @planned
// CHECK-COUNT-3: memref.view %arena[%c0][]
func.func @planned(%a: memref<16xf32>) {
  %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
  %c0 = arith.constant 0 : index
  %x = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
  tgraph.negate %a outs(%x) : memref<16xf32>
  tgraph.negate %x outs(%a) : memref<16xf32>
  %y = memref.view %arena[%c0][] : memref<64xi8> to memref<4x4xf32>
  tgraph.constant<0.0 : f32> outs(%y) : memref<4x4xf32>
  %z = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
  tgraph.negate %a outs(%z) : memref<16xf32>
  tgraph.negate %z outs(%a) : memref<16xf32>
  memref.dealloc %arena : memref<64xi8>
  func.return
}

// Equal views in the memory of a result, without an arena.
// CHECK-LABEL: func.func @reused
// CHECK-COUNT-2: memref.reinterpret_cast %r to offset: [0], sizes: [16], strides: [1] {tgraph.buffer}
func.func @reused(%a: memref<16xf32>, %b: memref<16xf32> {tgraph.variable}, %r: memref<64xf32> {tgraph.result = 0 : i32}) {
  %x = memref.reinterpret_cast %r to offset: [0], sizes: [16], strides: [1] {tgraph.buffer} : memref<64xf32> to memref<16xf32>
  tgraph.negate %a outs(%x) : memref<16xf32>
  tgraph.negate %x outs(%b) : memref<16xf32>
  %y = memref.reinterpret_cast %r to offset: [0], sizes: [16], strides: [1] {tgraph.buffer} : memref<64xf32> to memref<16xf32>
  tgraph.negate %b outs(%y) : memref<16xf32>
  tgraph.negate %y outs(%b) : memref<16xf32>
  tgraph.constant<0.0 : f32> outs(%r) : memref<64xf32>
  func.return
}

// Equal operations without a plan are merged.
// CHECK-LABEL: func.func @unplanned
// CHECK-COUNT-1: memref.view
// CHECK-NOT: memref.view
// CHECK: func.return
func.func @unplanned(%bytes: memref<64xi8>, %a: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %x = memref.view %bytes[%c0][] : memref<64xi8> to memref<16xf32>
  tgraph.negate %a outs(%x) : memref<16xf32>
  %z = memref.view %bytes[%c0][] : memref<64xi8> to memref<16xf32>
  tgraph.negate %z outs(%a) : memref<16xf32>
  func.return
}
