// Buffers lie in results before these are written, in variables between the last read
// of old contents and the write of new ones, and in donated arguments.
// RUN: plan-opt %s -p plan-memory | filecheck %s
// RUN: plan-opt %s -p 'plan-memory{reuse-outputs=false}' | filecheck %s --check-prefix=ALONE
// ALONE-NOT: tgraph.buffer

// The live range of %x ends before %r is written, so %x lies in %r; %y is read at that
// write. Offsets of views of %x are relative to %r, as in MLIR.
// CHECK-LABEL: func.func @before
// CHECK:      %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
// CHECK-NEXT: %x = memref.reinterpret_cast %r to offset: [0], sizes: [16], strides: [1] {tgraph.buffer} : memref<64xf32> to memref<16xf32>
// CHECK-NEXT: tgraph.negate %a outs(%x)
// CHECK:      %y = memref.view %arena[%c0][]
// CHECK-NEXT: %v = memref.reinterpret_cast %x to offset: [15], sizes: [16], strides: [-1]
// CHECK-NEXT: tgraph.negate %v outs(%y)
// CHECK:      memref.copy
// CHECK-NEXT: memref.dealloc %arena
func.func @before(%a: memref<16xf32>, %r: memref<64xf32> {tgraph.result = 0 : i32}) {
  %x = memref.alloc() : memref<16xf32>
  tgraph.negate %a outs(%x) : memref<16xf32>
  %y = memref.alloc() : memref<16xf32>
  %v = memref.reinterpret_cast %x to offset: [15], sizes: [16], strides: [-1] : memref<16xf32> to memref<16xf32, strided<[-1], offset: 15>>
  tgraph.negate %v outs(%y) : (memref<16xf32, strided<[-1], offset: 15>>) -> memref<16xf32>
  memref.dealloc %x : memref<16xf32>
  %w = memref.reinterpret_cast %y to offset: [0], sizes: [4, 16], strides: [0, 1] : memref<16xf32> to memref<4x16xf32, strided<[0, 1]>>
  %s = memref.reinterpret_cast %r to offset: [0], sizes: [4, 16], strides: [16, 1] : memref<64xf32> to memref<4x16xf32>
  memref.copy %w, %s : memref<4x16xf32, strided<[0, 1]>> to memref<4x16xf32>
  memref.dealloc %y : memref<16xf32>
  func.return
}

// Two buffers side by side in a larger result: the second has an offset in its type,
// and so do its views. No arena is left.
// CHECK-LABEL: func.func @offsets
// CHECK-NOT:  memref.alloc
// CHECK:      %x = memref.reinterpret_cast %r to offset: [0]
// CHECK:      %y = memref.reinterpret_cast %r to offset: [16], sizes: [16], strides: [1] {tgraph.buffer} : memref<64xf32> to memref<16xf32, strided<[1], offset: 16>>
// CHECK:      %v = memref.reinterpret_cast %y to offset: [31], sizes: [16], strides: [-1] : memref<16xf32, strided<[1], offset: 16>> to memref<16xf32, strided<[-1], offset: 31>>
func.func @offsets(%a: memref<16xf32>, %b: memref<16xf32>, %r: memref<64xf32> {tgraph.result = 0 : i32}) {
  %x = memref.alloc() : memref<16xf32>
  %y = memref.alloc() : memref<16xf32>
  tgraph.negate %a outs(%x) : memref<16xf32>
  tgraph.negate %a outs(%y) : memref<16xf32>
  %v = memref.reinterpret_cast %y to offset: [15], sizes: [16], strides: [-1] : memref<16xf32> to memref<16xf32, strided<[-1], offset: 15>>
  tgraph.add %x, %v outs(%b) : (memref<16xf32>, memref<16xf32, strided<[-1], offset: 15>>) -> memref<16xf32>
  memref.dealloc %x : memref<16xf32>
  memref.dealloc %y : memref<16xf32>
  tgraph.constant<0.0 : f32> outs(%r) : memref<64xf32>
  func.return
}

// No memory is reused for elements of another type, for buffers needed in the last
// step, or for larger buffers. The next iteration must not overwrite what the loop has
// written. A variable that is not written keeps the caller's contents.
// CHECK-LABEL: func.func @alone
// CHECK-NOT:   tgraph.buffer
// CHECK:       func.return
func.func @alone(%a: memref<16xf32>, %n: index, %v: memref<64xf32> {tgraph.variable, tgraph.result = 0 : i32}, %i: memref<64xi32> {tgraph.result = 1 : i32}, %r: memref<8xf32> {tgraph.result = 2 : i32}, %s: memref<64xf32> {tgraph.result = 3 : i32}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %n step %c1 {
    %x = memref.alloc() : memref<16xf32>
    tgraph.negate %a outs(%x) : memref<16xf32>
    %t = memref.reinterpret_cast %s to offset: [0], sizes: [16], strides: [1] : memref<64xf32> to memref<16xf32>
    tgraph.negate %x outs(%t) : memref<16xf32>
    memref.dealloc %x : memref<16xf32>
  }
  tgraph.constant<0 : i32> outs(%i) : memref<64xi32>
  tgraph.constant<0.0 : f32> outs(%r) : memref<8xf32>
  func.return
}

// %x is computed elementwise from the old contents of %v, and the new contents from %x,
// so %x lies in %v. %y lies in the memory of %r, which is computed from it, and %z in
// %d after its last read.
// CHECK-LABEL: func.func @in_place
// CHECK-NOT:   memref.alloc
// CHECK:       %x = memref.reinterpret_cast %v to offset: [0], sizes: [64], strides: [1] {tgraph.buffer}
// CHECK-NEXT:  tgraph.negate %v outs(%x)
// CHECK-NEXT:  %w = memref.reinterpret_cast %x
// CHECK-NEXT:  tgraph.add %x, %w outs(%r)
// CHECK-NEXT:  tgraph.abs %x outs(%v)
// CHECK-LABEL: func.func @donated
// CHECK:       %y = memref.reinterpret_cast %r to offset: [0], sizes: [16], strides: [1] {tgraph.buffer}
// CHECK-NEXT:  tgraph.negate %p outs(%y)
// CHECK-NEXT:  %z = memref.reinterpret_cast %d to offset: [0], sizes: [16], strides: [1] {tgraph.buffer}
// CHECK-NEXT:  tgraph.reverse %y outs(%z)
func.func @in_place(%v: memref<64xf32> {tgraph.variable}, %r: memref<64xf32> {tgraph.result = 0 : i32}) {
  %x = memref.alloc() : memref<64xf32>
  tgraph.negate %v outs(%x) : memref<64xf32>
  %w = memref.reinterpret_cast %x to offset: [63], sizes: [64], strides: [-1] : memref<64xf32> to memref<64xf32, strided<[-1], offset: 63>>
  tgraph.add %x, %w outs(%r) : (memref<64xf32>, memref<64xf32, strided<[-1], offset: 63>>) -> memref<64xf32>
  tgraph.abs %x outs(%v) : memref<64xf32>
  memref.dealloc %x : memref<64xf32>
  func.return
}

func.func @donated(%d: memref<64xf32> {tgraph.donated}, %r: memref<16xf32> {tgraph.result = 0 : i32}) {
  %p = memref.reinterpret_cast %d to offset: [0], sizes: [16], strides: [4] : memref<64xf32> to memref<16xf32, strided<[4]>>
  %y = memref.alloc() : memref<16xf32>
  tgraph.negate %p outs(%y) : (memref<16xf32, strided<[4]>>) -> memref<16xf32>
  %z = memref.alloc() : memref<16xf32>
  tgraph.reverse %y outs(%z) {dimensions = array<i64: 0>} : memref<16xf32>
  tgraph.add %y, %z outs(%r) : memref<16xf32>
  memref.dealloc %y : memref<16xf32>
  memref.dealloc %z : memref<16xf32>
  func.return
}

// A caller that provides results on demand would have to provide %r while it still
// provides %d, so %y is in an arena. Otherwise, %y lies in %r.
// CHECK-LABEL: func.func @on_demand
// CHECK:       memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
// CHECK-LABEL: func.func @throughout
// CHECK-NOT:   memref.alloc
// CHECK:       memref.reinterpret_cast %r to offset: [0], sizes: [16], strides: [1] {tgraph.buffer}
func.func @on_demand(%d: memref<64xf32> {tgraph.donated}, %b: memref<64xf32>, %t: memref<16xf32> {tgraph.result = 0 : i32}, %r: memref<64xf32> {tgraph.result = 1 : i32}) attributes {tgraph.on_demand} {
  %p = memref.reinterpret_cast %d to offset: [0], sizes: [16], strides: [4] : memref<64xf32> to memref<16xf32, strided<[4]>>
  %y = memref.alloc() : memref<16xf32>
  tgraph.negate %p outs(%y) : (memref<16xf32, strided<[4]>>) -> memref<16xf32>
  tgraph.reverse %y outs(%t) {dimensions = array<i64: 0>} : memref<16xf32>
  memref.dealloc %y : memref<16xf32>
  tgraph.abs %b outs(%r) : memref<64xf32>
  func.return
}

func.func @throughout(%d: memref<64xf32>, %b: memref<64xf32>, %t: memref<16xf32> {tgraph.result = 0 : i32}, %r: memref<64xf32> {tgraph.result = 1 : i32}) {
  %p = memref.reinterpret_cast %d to offset: [0], sizes: [16], strides: [4] : memref<64xf32> to memref<16xf32, strided<[4]>>
  %y = memref.alloc() : memref<16xf32>
  tgraph.negate %p outs(%y) : (memref<16xf32, strided<[4]>>) -> memref<16xf32>
  tgraph.reverse %y outs(%t) {dimensions = array<i64: 0>} : memref<16xf32>
  memref.dealloc %y : memref<16xf32>
  tgraph.abs %b outs(%r) : memref<64xf32>
  func.return
}

// The caller frees %arena before it provides %r, for which only %arena_1 is kept.
// CHECK-LABEL: func.func @stages
// CHECK:       %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<520xi8>
// CHECK:       %arena_1 = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<4xi8>
// CHECK:       tgraph.convert
// CHECK-NEXT:  memref.dealloc %arena : memref<520xi8>
// CHECK-NEXT:  tgraph.broadcast_in_dim
// CHECK-NEXT:  memref.dealloc %arena_1 : memref<4xi8>
func.func @stages(%a: memref<64xf64>, %r: memref<64x8xf32> {tgraph.result = 0 : i32}) attributes {tgraph.on_demand} {
  %x = memref.alloc() : memref<64xf64>
  tgraph.negate %a outs(%x) : memref<64xf64>
  %s = memref.alloc() : memref<f64>
  tgraph.reduce %x outs(%s) {kind = "add", dimensions = array<i64: 0>} : (memref<64xf64>) -> memref<f64>
  memref.dealloc %x : memref<64xf64>
  %y = memref.alloc() : memref<f32>
  tgraph.convert %s outs(%y) : (memref<f64>) -> memref<f32>
  memref.dealloc %s : memref<f64>
  tgraph.broadcast_in_dim %y outs(%r) {broadcast_dimensions = array<i64>} : (memref<f32>) -> memref<64x8xf32>
  memref.dealloc %y : memref<f32>
  func.return
}
