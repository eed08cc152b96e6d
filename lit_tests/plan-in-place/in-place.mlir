// RUN: plan-opt %s -p plan-in-place --split-input-file 2>&1 | filecheck %s

// A chain of elementwise operations needs one buffer, freed after its last reader.
// CHECK-LABEL: @chain
// CHECK: [[X:%.+]] = memref.alloc()
// CHECK-NEXT: tgraph.negate %a outs([[X]])
// CHECK-NEXT: tgraph.exponential [[X]] outs([[X]])
// CHECK-NEXT: tgraph.tanh [[X]] outs([[X]])
// CHECK-NEXT: tgraph.negate [[X]] outs(%r)
// CHECK-NEXT: memref.dealloc [[X]]
// CHECK-NEXT: func.return
func.func @chain(%a: memref<8xf32>, %r: memref<8xf32>) {
  %x = memref.alloc() : memref<8xf32>
  tgraph.negate %a outs(%x) : memref<8xf32>
  %y = memref.alloc() : memref<8xf32>
  tgraph.exponential %x outs(%y) : memref<8xf32>
  memref.dealloc %x : memref<8xf32>
  %z = memref.alloc() : memref<8xf32>
  tgraph.tanh %y outs(%z) : memref<8xf32>
  memref.dealloc %y : memref<8xf32>
  tgraph.negate %z outs(%r) : memref<8xf32>
  memref.dealloc %z : memref<8xf32>
  func.return
}

// -----

// An operand that is read again is kept, so the result overwrites the other operand.
// CHECK-LABEL: @second
// CHECK: tgraph.add [[X:%.+]], [[Y:%.+]] outs([[Y]])
// CHECK: tgraph.add [[X]], [[Y]] outs(%r)
func.func @second(%a: memref<8xf32>, %r: memref<8xf32>) {
  %x = memref.alloc() : memref<8xf32>
  %y = memref.alloc() : memref<8xf32>
  %z = memref.alloc() : memref<8xf32>
  tgraph.negate %a outs(%x) : memref<8xf32>
  tgraph.tanh %a outs(%y) : memref<8xf32>
  tgraph.add %x, %y outs(%z) : memref<8xf32>
  tgraph.add %x, %z outs(%r) : memref<8xf32>
  memref.dealloc %x : memref<8xf32>
  memref.dealloc %y : memref<8xf32>
  memref.dealloc %z : memref<8xf32>
  func.return
}

// -----

// A view of the operand is read later, so its memory is still needed.
// CHECK-LABEL: @view
// CHECK: tgraph.negate [[X:%x]] outs([[Y:%y]])
func.func @view(%a: memref<8xf32>, %r: memref<4xf32>, %s: memref<8xf32>) {
  %x = memref.alloc() : memref<8xf32>
  %y = memref.alloc() : memref<8xf32>
  tgraph.negate %a outs(%x) : memref<8xf32>
  tgraph.negate %x outs(%y) : memref<8xf32>
  tgraph.negate %y outs(%s) : memref<8xf32>
  %half = memref.reinterpret_cast %x to offset: [0], sizes: [4], strides: [1] : memref<8xf32> to memref<4xf32>
  tgraph.tanh %half outs(%r) : memref<4xf32>
  memref.dealloc %x : memref<8xf32>
  memref.dealloc %y : memref<8xf32>
  func.return
}

// -----

// In a loop, the result overwrites a local buffer; %x from outside is read again.
// CHECK-LABEL: @loop
// CHECK: tgraph.tanh [[X:%x]] outs([[Y:%y]])
// CHECK-NEXT: tgraph.negate [[Y]] outs([[Y]])
// CHECK-NEXT: tgraph.negate [[Y]] outs(%r)
// CHECK-NEXT: memref.dealloc [[Y]]
func.func @loop(%a: memref<8xf32>, %r: memref<8xf32>, %n: index) {
  %x = memref.alloc() : memref<8xf32>
  tgraph.negate %a outs(%x) : memref<8xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %y = memref.alloc() : memref<8xf32>
    tgraph.tanh %x outs(%y) : memref<8xf32>
    %z = memref.alloc() : memref<8xf32>
    tgraph.negate %y outs(%z) : memref<8xf32>
    memref.dealloc %y : memref<8xf32>
    tgraph.negate %z outs(%r) : memref<8xf32>
    memref.dealloc %z : memref<8xf32>
  }
  memref.dealloc %x : memref<8xf32>
  func.return
}

// -----

// A product reads each element several times; a conversion changes the type.
// CHECK-LABEL: @not_elementwise
// CHECK: tgraph.dot_general [[X:%x]], [[X]] outs([[Y:%y]])
// CHECK: tgraph.convert [[Y]] outs([[Z:%z]])
func.func @not_elementwise(%a: memref<4x4xf32>, %r: memref<4x4xf16>) {
  %x = memref.alloc() : memref<4x4xf32>
  %y = memref.alloc() : memref<4x4xf32>
  %z = memref.alloc() : memref<4x4xf16>
  tgraph.negate %a outs(%x) : memref<4x4xf32>
  tgraph.dot_general %x, %x outs(%y) {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : memref<4x4xf32>
  tgraph.convert %y outs(%z) : (memref<4x4xf32>) -> memref<4x4xf16>
  tgraph.negate %z outs(%r) : memref<4x4xf16>
  memref.dealloc %x : memref<4x4xf32>
  memref.dealloc %y : memref<4x4xf32>
  memref.dealloc %z : memref<4x4xf16>
  func.return
}

// -----

// The types are equal, but the sizes are not.
// CHECK-LABEL: @sizes
// CHECK: tgraph.negate [[X:%x]] outs([[Y:%y]])
func.func @sizes(%a: memref<?xf32>, %r: memref<?xf32>, %n: index, %m: index) {
  %x = memref.alloc(%n) : memref<?xf32>
  %y = memref.alloc(%m) : memref<?xf32>
  tgraph.negate %a outs(%x) : memref<?xf32>
  tgraph.negate %x outs(%y) : memref<?xf32>
  tgraph.negate %y outs(%r) : memref<?xf32>
  memref.dealloc %x : memref<?xf32>
  memref.dealloc %y : memref<?xf32>
  func.return
}

// -----

// The transposed operand is read in another order than the result is written.
// CHECK-LABEL: @transposed
// CHECK: tgraph.add [[X:%x]], %t outs([[Y:%y]])
func.func @transposed(%a: memref<4x4xf32>, %r: memref<4x4xf32>) {
  %x = memref.alloc() : memref<4x4xf32>
  %y = memref.alloc() : memref<4x4xf32>
  tgraph.negate %a outs(%x) : memref<4x4xf32>
  %t = memref.reinterpret_cast %x to offset: [0], sizes: [4, 4], strides: [1, 4] : memref<4x4xf32> to memref<4x4xf32, strided<[1, 4]>>
  tgraph.add %x, %t outs(%y) : (memref<4x4xf32>, memref<4x4xf32, strided<[1, 4]>>) -> memref<4x4xf32>
  tgraph.negate %y outs(%r) : memref<4x4xf32>
  memref.dealloc %x : memref<4x4xf32>
  memref.dealloc %y : memref<4x4xf32>
  func.return
}

// -----

// Elementwise operations of linalg run in place, too. A transposition does not, as it
// reads other elements than it writes.
// CHECK-LABEL: @linalg
// CHECK:      linalg.exp ins(%a : {{.*}}) outs([[X:%.+]] :
// CHECK-NEXT: linalg.add ins([[X]], %a : {{.*}}) outs([[X]] :
// CHECK-NEXT: [[Y:%.+]] = memref.alloc()
// CHECK-NEXT: linalg.transpose ins([[X]]:{{.*}}) outs([[Y]]:
func.func @linalg(%a: memref<4x4xf32>, %r: memref<4x4xf32>) {
  %x = memref.alloc() : memref<4x4xf32>
  linalg.exp ins(%a : memref<4x4xf32>) outs(%x : memref<4x4xf32>)
  %y = memref.alloc() : memref<4x4xf32>
  linalg.add ins(%x, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%y : memref<4x4xf32>)
  %z = memref.alloc() : memref<4x4xf32>
  linalg.transpose ins(%y : memref<4x4xf32>) outs(%z : memref<4x4xf32>) permutation = [1, 0]
  linalg.add ins(%z, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%r : memref<4x4xf32>)
  func.return
}
