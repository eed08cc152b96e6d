// RUN: plan-opt %s -p 'plan-memory{strategy=nnvm}' 2>/dev/null | filecheck %s --check-prefix=SHARED
// RUN: plan-opt %s -p 'plan-memory{strategy=relay}' 2>/dev/null | filecheck %s --check-prefix=SHARED
// RUN: plan-opt %s -p 'plan-memory{strategy=nnvm-auto-search}' 2>/dev/null | filecheck %s --check-prefix=EXACT
// RUN: plan-opt %s -p 'plan-memory{strategy=inductor-reuse}' 2>/dev/null | filecheck %s --check-prefix=EXACT
// RUN: plan-opt %s -p 'plan-memory{strategy=inductor-tree}' 2>/dev/null | filecheck %s --check-prefix=EXACT

// With a match range of 16, %half takes all of %large, so %again needs more bytes.
// SHARED:      %half = memref.view %arena[%c0][] : memref<2048xi8, "cpu:0">
// SHARED:      %again = memref.view %arena[%c1024][] : memref<2048xi8, "cpu:0">

// The other strategies leave the place of %large to %again.
// EXACT:       %half = memref.view %arena[%c1024][] : memref<1536xi8, "cpu:0">
// EXACT:       %again = memref.view %arena[%c0][] : memref<1536xi8, "cpu:0">
func.func @main(%a: memref<256xf32, "cpu:0">, %s: memref<128xf32, "cpu:0">) {
  %large = memref.alloc() : memref<256xf32, "cpu:0">
  tgraph.reverse %a outs(%large) {dimensions = array<i64: 0>} : memref<256xf32, "cpu:0">
  tgraph.reverse %large outs(%a) {dimensions = array<i64: 0>} : memref<256xf32, "cpu:0">
  memref.dealloc %large : memref<256xf32, "cpu:0">
  %half = memref.alloc() : memref<128xf32, "cpu:0">
  tgraph.reverse %s outs(%half) {dimensions = array<i64: 0>} : memref<128xf32, "cpu:0">
  %again = memref.alloc() : memref<256xf32, "cpu:0">
  tgraph.reverse %a outs(%again) {dimensions = array<i64: 0>} : memref<256xf32, "cpu:0">
  tgraph.reverse %half outs(%s) {dimensions = array<i64: 0>} : memref<128xf32, "cpu:0">
  memref.dealloc %half : memref<128xf32, "cpu:0">
  tgraph.reverse %again outs(%a) {dimensions = array<i64: 0>} : memref<256xf32, "cpu:0">
  memref.dealloc %again : memref<256xf32, "cpu:0">
  func.return
}
