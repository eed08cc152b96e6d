// RUN: plan-opt %s --target-memory %S/copies.toml -p plan-spill | filecheck %s
// RUN: plan-opt %s --target-memory %S/copies.toml -p plan-spill,plan-memory,plan-check -o /dev/null

!t = memref<64x64xf32, "sram">
!b = memref<56x64xf32, "sram">
!s = memref<56x64xf32, strided<[64, 1]>, "sram">
!tile = memref<64x8xf32, strided<[64, 1], offset: ?>, "sram">

// A loop gets copies of the tiles of %a, which is in psram. Both operations share a
// copy. The first one overwrites it, so nothing is copied in.
// CHECK-LABEL: func.func @tiles
func.func @tiles(%x: !t, %y: !t) {
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  %end = arith.constant 64 : index
  %a = memref.alloc() : !t
  %b = memref.alloc() : !b
  %c = memref.alloc() : !b
  %d = memref.alloc() : !b
  %first = memref.subview %x[0, 0] [56, 64] [1, 1] : !t to !s
  %last = memref.subview %y[0, 0] [56, 64] [1, 1] : !t to !s
  // CHECK: [[AWAY:%a[_0-9]*]] = memref.alloc() : memref<64x64xf32, "psram">
  linalg.exp ins(%first : !s) outs(%b : !b)
  linalg.exp ins(%b : !b) outs(%c : !b)
  linalg.exp ins(%c : !b) outs(%d : !b)
  // CHECK: scf.for
  scf.for %i = %zero to %end step %eight {
    // CHECK-NEXT: %from = memref.subview
    // CHECK-NEXT: [[TO:%to[_0-9]*]] = memref.subview [[AWAY]][0, %i] [64, 8] [1, 1]
    // CHECK-NEXT: [[TILE:%a[_0-9]*]] = memref.alloc() : memref<64x8xf32, "sram">
    // CHECK-NEXT: linalg.exp ins(%from {{.*}} outs([[TILE]]
    // CHECK-NEXT: linalg.sqrt ins([[TILE]] {{.*}} outs([[TILE]]
    // CHECK-NEXT: "memref.copy"([[TILE]], [[TO]])
    // CHECK-NEXT: memref.dealloc [[TILE]]
    %from = memref.subview %x[0, %i] [64, 8] [1, 1] : !t to !tile
    %to = memref.subview %a[0, %i] [64, 8] [1, 1] : !t to !tile
    linalg.exp ins(%from : !tile) outs(%to : !tile)
    linalg.sqrt ins(%to : !tile) outs(%to : !tile)
    linalg.add ins(%c, %d : !b, !b) outs(%b : !b)
  }
  linalg.add ins(%b, %c : !b, !b) outs(%last : !s)
  linalg.add ins(%a, %x : !t, !t) outs(%y : !t)
  func.return
}

!rows = memref<?x64xf32, strided<[64, 1], offset: ?>, "sram">

// The last tile has fewer rows. A copy of its rows takes the bytes of a whole tile.
// CHECK-LABEL: func.func @rows
func.func @rows(%x: !t, %y: !t) {
  %zero = arith.constant 0 : index
  %step = arith.constant 20 : index
  %end = arith.constant 64 : index
  %a = memref.alloc() : !t
  %b = memref.alloc() : !b
  %c = memref.alloc() : !b
  %d = memref.alloc() : !b
  %first = memref.subview %x[0, 0] [56, 64] [1, 1] : !t to !s
  %last = memref.subview %y[0, 0] [56, 64] [1, 1] : !t to !s
  // CHECK: [[AWAY:%a[_0-9]*]] = memref.alloc() : memref<64x64xf32, "psram">
  linalg.exp ins(%x : !t) outs(%a : !t)
  linalg.exp ins(%first : !s) outs(%b : !b)
  linalg.exp ins(%b : !b) outs(%c : !b)
  linalg.exp ins(%c : !b) outs(%d : !b)
  // CHECK: scf.for
  scf.for %i = %zero to %end step %step {
    // CHECK:      [[PART:%part[_0-9]*]] = memref.subview [[AWAY]][%i, 0] [%size, 64] [1, 1]
    // CHECK-NEXT: [[ROWS:%a[_0-9]*]] = memref.alloc(%size) : memref<?x64xf32, "sram">
    // CHECK-NEXT: "memref.copy"([[PART]], [[ROWS]])
    // CHECK-NEXT: linalg.sqrt ins([[ROWS]] {{.*}} outs([[ROWS]]
    // CHECK-NEXT: "memref.copy"([[ROWS]], [[PART]])
    // CHECK-NEXT: memref.dealloc [[ROWS]]
    %size = "affine.min"(%i) {map = affine_map<(d0) -> (20, -d0 + 64)>} : (index) -> index
    %part = memref.subview %a[%i, 0] [%size, 64] [1, 1] : !t to !rows
    linalg.sqrt ins(%part : !rows) outs(%part : !rows)
    linalg.add ins(%c, %d : !b, !b) outs(%b : !b)
  }
  linalg.add ins(%b, %c : !b, !b) outs(%last : !s)
  linalg.add ins(%a, %x : !t, !t) outs(%y : !t)
  func.return
}

!fixed = memref<16x64xf32, strided<[64, 1], offset: ?>, "sram">

// A cast does not say how many rows a copy has, so the whole buffer is copied.
// CHECK-LABEL: func.func @casts
func.func @casts(%x: !t, %y: !t) {
  %zero = arith.constant 0 : index
  %step = arith.constant 16 : index
  %end = arith.constant 64 : index
  %a = memref.alloc() : !t
  %b = memref.alloc() : !b
  %c = memref.alloc() : !b
  %d = memref.alloc() : !b
  %first = memref.subview %x[0, 0] [56, 64] [1, 1] : !t to !s
  %last = memref.subview %y[0, 0] [56, 64] [1, 1] : !t to !s
  // CHECK: [[AWAY:%a[_0-9]*]] = memref.alloc() : memref<64x64xf32, "psram">
  linalg.exp ins(%x : !t) outs(%a : !t)
  linalg.exp ins(%first : !s) outs(%b : !b)
  linalg.exp ins(%b : !b) outs(%c : !b)
  linalg.exp ins(%c : !b) outs(%d : !b)
  // CHECK: scf.for
  scf.for %i = %zero to %end step %step {
    // CHECK-NEXT: [[WHOLE:%a[_0-9]*]] = memref.alloc() : memref<64x64xf32, "sram">
    // CHECK-NEXT: "memref.copy"([[AWAY]], [[WHOLE]])
    // CHECK-NEXT: memref.subview [[WHOLE]]
    %tile = memref.subview %a[%i, 0] [16, 64] [1, 1] : !t to !fixed
    %part = memref.cast %tile : !fixed to !rows
    linalg.sqrt ins(%part : !rows) outs(%part : !rows)
    linalg.add ins(%c, %d : !b, !b) outs(%b : !b)
  }
  linalg.add ins(%b, %c : !b, !b) outs(%last : !s)
  linalg.add ins(%a, %x : !t, !t) outs(%y : !t)
  func.return
}
