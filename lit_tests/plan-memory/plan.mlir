// RUN: plan-opt %s -p 'plan-memory{strategy=greedy-by-size}' --split-input-file 2>/dev/null | filecheck %s
// RUN: plan-opt %s -p 'plan-memory{strategy=naive alignment=16}' --split-input-file 2>/dev/null | filecheck %s --check-prefix=NAIVE

// The third buffer reuses the bytes of the first.
// CHECK-LABEL: func.func @reuse
// CHECK-NEXT:    %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<2048xi8, "cpu:0">
// CHECK-NEXT:    %c0 = arith.constant 0 : index
// CHECK-NEXT:    %x = memref.view %arena[%c0][] : memref<2048xi8, "cpu:0"> to memref<256xf32, "cpu:0">
// CHECK-NEXT:    tgraph.reverse %a
// CHECK-NEXT:    %c1024 = arith.constant 1024 : index
// CHECK-NEXT:    %y = memref.view %arena[%c1024][] : memref<2048xi8, "cpu:0"> to memref<256xf32, "cpu:0">
// CHECK-NEXT:    tgraph.reverse %x
// CHECK-NEXT:    %z = memref.view %arena[%c0][] : memref<2048xi8, "cpu:0"> to memref<256xf32, "cpu:0">
// CHECK-NEXT:    tgraph.reverse %y
// CHECK-NEXT:    tgraph.reverse %z
// CHECK-NEXT:    memref.dealloc %arena
// CHECK-NEXT:    func.return
// NAIVE-LABEL: func.func @reuse
// NAIVE-NEXT:    %arena = memref.alloc() {alignment = 16 : i64, tgraph.arena} : memref<3072xi8, "cpu:0">
func.func @reuse(%a: memref<256xf32, "cpu:0">) {
  %x = memref.alloc() : memref<256xf32, "cpu:0">
  tgraph.reverse %a outs(%x) {dimensions = array<i64: 0>} : memref<256xf32, "cpu:0">
  %y = memref.alloc() : memref<256xf32, "cpu:0">
  tgraph.reverse %x outs(%y) {dimensions = array<i64: 0>} : memref<256xf32, "cpu:0">
  memref.dealloc %x : memref<256xf32, "cpu:0">
  %z = memref.alloc() : memref<256xf32, "cpu:0">
  tgraph.reverse %y outs(%z) {dimensions = array<i64: 0>} : memref<256xf32, "cpu:0">
  memref.dealloc %y : memref<256xf32, "cpu:0">
  tgraph.reverse %z outs(%a) {dimensions = array<i64: 0>} : memref<256xf32, "cpu:0">
  memref.dealloc %z : memref<256xf32, "cpu:0">
  func.return
}

// -----

// A view keeps its buffer live: %y must not share bytes with %x.
// CHECK-LABEL: func.func @views
// CHECK-NEXT:    memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<128xi8>
// CHECK-DAG:     %x = memref.view %arena[%[[X:.*]]][]
// CHECK-DAG:     %y = memref.view %arena[%[[Y:.*]]][]
// CHECK:         linalg.copy
func.func @views(%a: memref<16xf32>) {
  %x = memref.alloc() : memref<16xf32>
  "memref.copy"(%a, %x) : (memref<16xf32>, memref<16xf32>) -> ()
  %v = memref.subview %x[8] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1], offset: 8>>
  %y = memref.alloc() : memref<16xf32>
  "memref.copy"(%a, %y) : (memref<16xf32>, memref<16xf32>) -> ()
  %w = memref.subview %y[0] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1]>>
  linalg.copy ins(%v : memref<8xf32, strided<[1], offset: 8>>) outs(%w : memref<8xf32, strided<[1]>>)
  memref.dealloc %x : memref<16xf32>
  memref.dealloc %y : memref<16xf32>
  func.return
}

// -----

// Each memory space has an arena; an allocation's own alignment is kept.
// CHECK-LABEL: func.func @spaces
// CHECK:         memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8, "cpu:0">
// CHECK:         memref.alloc() {alignment = 256 : i64, tgraph.arena} : memref<320xi8, "gpu:0">
func.func @spaces(%a: memref<16xf32, "cpu:0">) {
  %z = memref.alloc() : memref<16xf32, "gpu:0">
  "memref.copy"(%a, %z) : (memref<16xf32, "cpu:0">, memref<16xf32, "gpu:0">) -> ()
  %y = memref.alloc() {alignment = 256 : i64} : memref<16xf32, "gpu:0">
  tgraph.negate %z outs(%y) : memref<16xf32, "gpu:0">
  %x = memref.alloc() : memref<16xf32, "cpu:0">
  "memref.copy"(%y, %x) : (memref<16xf32, "gpu:0">, memref<16xf32, "cpu:0">) -> ()
  "memref.copy"(%x, %a) : (memref<16xf32, "cpu:0">, memref<16xf32, "cpu:0">) -> ()
  memref.dealloc %y : memref<16xf32, "gpu:0">
  memref.dealloc %z : memref<16xf32, "gpu:0">
  memref.dealloc %x : memref<16xf32, "cpu:0">
  func.return
}

// -----

// The program is planned already, so nothing changes.
// CHECK-LABEL: func.func @planned
// CHECK-NEXT:    %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
// CHECK-NOT:     memref.alloc
// CHECK:         func.return
func.func @planned(%a: memref<16xf32>) {
  %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
  %c0 = arith.constant 0 : index
  %x = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
  "memref.copy"(%a, %x) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %arena : memref<64xi8>
  func.return
}
