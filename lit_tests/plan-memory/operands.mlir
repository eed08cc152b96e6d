// Sizes that are arguments or computed from them are computed before the arena. Values
// less than 1 count as 1 there, as sizes are not negative.
// RUN: plan-opt %s -p plan-memory,plan-check 2>&1 | filecheck %s

// CHECK:      1 arena, 3 buffers checked
// CHECK-NOT:  not proved
// CHECK:      func.func @main
// CHECK-NEXT:   %k = arith.index_cast %m : i64 to index
// CHECK-NEXT:   %s = arith.addi %n, %k : index
// CHECK-NEXT:   %c1 = arith.constant 1 : index
// CHECK-NEXT:   %0 = arith.maxsi %s, %c1 : index
// CHECK-NEXT:   %1 = arith.maxsi %k, %c1 : index
// CHECK:        arith.maxsi %n, %c1 : index
// CHECK:        %arena = memref.alloc(%{{.*}}) {alignment = 64 : i64, tgraph.arena} : memref<?xi8>
// CHECK:        memref.view %arena[%{{.*}}][%n] : memref<?xi8> to memref<?xf32>
// CHECK:        memref.view %arena[%{{.*}}][%s, %k] : memref<?xi8> to memref<?x?xf32>
func.func @main(%n: index, %m: i64, %x: memref<4xf32>, %y: memref<?xf32>, %f: f32) {
  %a = memref.alloc(%n) : memref<?xf32>
  "memref.copy"(%y, %a) : (memref<?xf32>, memref<?xf32>) -> ()
  %k = arith.index_cast %m : i64 to index
  %s = arith.addi %n, %k : index
  %b = memref.alloc(%s, %k) : memref<?x?xf32>
  "linalg.fill"(%f, %b) <{operandSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%e: f32, %g: f32):
    linalg.yield %e : f32
  }) : (f32, memref<?x?xf32>) -> ()
  %c = memref.alloc() : memref<4xf32>
  "memref.copy"(%x, %c) : (memref<4xf32>, memref<4xf32>) -> ()
  "memref.copy"(%c, %x) : (memref<4xf32>, memref<4xf32>) -> ()
  "memref.copy"(%a, %y) : (memref<?xf32>, memref<?xf32>) -> ()
  memref.dealloc %a : memref<?xf32>
  memref.dealloc %b : memref<?x?xf32>
  memref.dealloc %c : memref<4xf32>
  func.return
}
