// RUN: plan-view %s -o %t.html --svg %t.svg --trace %t.trace --ascii | filecheck %s
// RUN: filecheck %s --check-prefix=HTML < %t.html
// RUN: filecheck %s --check-prefix=SVG < %t.svg
// RUN: filecheck %s --check-prefix=TRACE < %t.trace

func.func @f(%a: memref<4x4xf32, "cpu:0">) {
  %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<128xi8, "cpu:0">
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %x = memref.view %arena[%c0][] : memref<128xi8, "cpu:0"> to memref<4x4xf32, "cpu:0">
  %y = memref.view %arena[%c64][] : memref<128xi8, "cpu:0"> to memref<4x4xf32, "cpu:0">
  %z = memref.view %arena[%c0][] : memref<128xi8, "cpu:0"> to memref<4x4xf32, "cpu:0">
  memref.copy %a, %x : memref<4x4xf32, "cpu:0"> to memref<4x4xf32, "cpu:0">
  memref.copy %x, %y : memref<4x4xf32, "cpu:0"> to memref<4x4xf32, "cpu:0">
  memref.copy %y, %z : memref<4x4xf32, "cpu:0"> to memref<4x4xf32, "cpu:0">
  memref.copy %z, %a : memref<4x4xf32, "cpu:0"> to memref<4x4xf32, "cpu:0">
  memref.dealloc %arena : memref<128xi8, "cpu:0">
  func.return
}

// %x and %z share bytes: the live range of %x ends before that of %z starts.
// CHECK:      ir.mlir: cpu:0: 128 B, lower bound 128 B, 3 buffers
// CHECK-NEXT: 128 B arena + 64 B input = 192 B
// CHECK-NEXT: 120 B |........bbbbbbbbbbbbbbbb........|
// CHECK:      {{  }}0 B |aaaaaaaaaaaaaaaacccccccccccccccc|
// CHECK-NEXT: live |55555555****************55555555|
// CHECK-NEXT: steps  6                              9
// CHECK-NEXT: at the peak, step 7, 128 B are live:
// CHECK-NEXT:   a  %x  64 B, 4x4xf32, steps [6, 8), memref.copy, {{.*}}ir.mlir:13:3
// CHECK-NEXT:   b  %y  64 B, 4x4xf32, steps [7, 9), memref.copy, {{.*}}ir.mlir:14:3
// CHECK-NOT:  {{.}}

// The page has the lines of a buffer: first its definition, then its accesses.
// HTML: <script id="data" type="application/json">
// HTML-SAME: ["%y",64,64,[[7,9]],"4x4xf32","temporary","memref.copy","{{[^"]*}}ir.mlir:14:3",[7,10,11],[{{[0-9,]+}}],
// HTML-SAME: "in use","is not in place: %x is read by memref.copy while it writes"]

// SVG:      <title>%y: 64 bytes at 64
// SVG-NEXT: 4x4xf32, temporary
// SVG-NEXT: live in steps [7, 9)

// TRACE: "name": "%y", "ts": 1, "dur": 2, "args": {"offset": 64, "size": 64,
