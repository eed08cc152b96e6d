// RUN: plan-opt %s -p plan-memory --allow-unregistered-dialect 2>/dev/null | filecheck %s
// RUN: plan-opt %s -p plan-memory --allow-unregistered-dialect 2>&1 >/dev/null | filecheck %s --check-prefix=REMARK

// A layout of an unregistered dialect (snax-mlir's) stays. It does not say where
// elements are, so buffers with it are not planned; all others are.

// CHECK:      func.func @main(%x: memref<16x16xi8, #tsl.tsl<[2, 8] -> (128, 8), [2, 8] -> (64, 1)>, "L1">)
// CHECK-NEXT:   %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<256xi8, "L1">
// CHECK:        %tiled = memref.alloc() : memref<16x16xi8, #tsl.tsl<[2, 8] -> (128, 8), [2, 8] -> (64, 1)>, "L1">
// CHECK:        memref.view %arena
// CHECK-SAME:     to memref<256xi8, "L1">
// REMARK: remark: memref.alloc is not planned: memref<16x16xi8, #tsl.tsl<[2, 8] -> (128, 8), [2, 8] -> (64, 1)>, "L1"> has a layout other than the identity
func.func @main(%x: memref<16x16xi8, #tsl.tsl<[2, 8] -> (128, 8), [2, 8] -> (64, 1)>, "L1">) {
  %tiled = memref.alloc() : memref<16x16xi8, #tsl.tsl<[2, 8] -> (128, 8), [2, 8] -> (64, 1)>, "L1">
  memref.copy %x, %tiled : memref<16x16xi8, #tsl.tsl<[2, 8] -> (128, 8), [2, 8] -> (64, 1)>, "L1"> to memref<16x16xi8, #tsl.tsl<[2, 8] -> (128, 8), [2, 8] -> (64, 1)>, "L1">
  %flat = memref.alloc() : memref<256xi8, "L1">
  "test.use"(%tiled, %flat) : (memref<16x16xi8, #tsl.tsl<[2, 8] -> (128, 8), [2, 8] -> (64, 1)>, "L1">, memref<256xi8, "L1">) -> ()
  memref.dealloc %flat : memref<256xi8, "L1">
  memref.dealloc %tiled : memref<16x16xi8, #tsl.tsl<[2, 8] -> (128, 8), [2, 8] -> (64, 1)>, "L1">
  return
}
