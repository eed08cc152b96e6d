// The tile of the last iteration is shorter. Its slot has the bytes of a whole tile.
// RUN: plan-opt %s -p plan-memory,plan-check 2>&1 | filecheck %s

// CHECK:      1 arena, 2 buffers checked
// CHECK-NOT:  not proved
// CHECK:      func.func @main
// CHECK:        %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<640xi8>
// CHECK:        scf.for
// CHECK:          %size = {{.*}}affine.min
// CHECK:          %row = memref.view %arena[%c512][] : memref<640xi8> to memref<32xf32>
// CHECK:          %tile = memref.view %arena[%c0{{.*}}][%size] : memref<640xi8> to memref<?x4xf32>
func.func @main(%x: memref<100x4xf32>, %y: memref<100x4xf32>, %r: memref<32xf32>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c100 = arith.constant 100 : index
  scf.for %i = %c0 to %c100 step %c32 {
    %size = "affine.min"(%i) {map = affine_map<(d0) -> (32, -d0 + 100)>} : (index) -> index
    %row = memref.alloc() : memref<32xf32>
    %tile = memref.alloc(%size) : memref<?x4xf32>
    "memref.copy"(%r, %row) : (memref<32xf32>, memref<32xf32>) -> ()
    %from = memref.subview %x[%i, 0] [%size, 4] [1, 1] : memref<100x4xf32> to memref<?x4xf32, strided<[4, 1], offset: ?>>
    %to = memref.subview %y[%i, 0] [%size, 4] [1, 1] : memref<100x4xf32> to memref<?x4xf32, strided<[4, 1], offset: ?>>
    "memref.copy"(%from, %tile) : (memref<?x4xf32, strided<[4, 1], offset: ?>>, memref<?x4xf32>) -> ()
    "memref.copy"(%tile, %to) : (memref<?x4xf32>, memref<?x4xf32, strided<[4, 1], offset: ?>>) -> ()
    "memref.copy"(%row, %r) : (memref<32xf32>, memref<32xf32>) -> ()
    memref.dealloc %tile : memref<?x4xf32>
    memref.dealloc %row : memref<32xf32>
  }
  func.return
}
