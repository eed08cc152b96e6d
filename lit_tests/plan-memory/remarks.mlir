// What can't be planned stays, and a remark says why.
// RUN: plan-opt %s -p plan-memory --allow-unregistered-dialect 2>/dev/null | filecheck %s
// RUN: plan-opt %s -p plan-memory --allow-unregistered-dialect 2>&1 >/dev/null | filecheck %s --check-prefix=REMARK

// CHECK-NOT: memref.view
// CHECK-COUNT-7: memref.alloc
// REMARK: remarks.mlir:9:8: remark: memref.alloc is left as it is: it is passed on by func.return
func.func @returned() -> memref<4xf32> {
  %x = memref.alloc() : memref<4xf32>
  func.return %x : memref<4xf32>
}
// REMARK-NEXT: remark: memref.alloc is left as it is: memref<?xf32> has a dynamic size
func.func @dynamic(%n: index) {
  %x = memref.alloc(%n) : memref<?xf32>
  memref.dealloc %x : memref<?xf32>
  func.return
}
// REMARK-NEXT: remark: memref.alloc is left as it is: what test.unknown does with it is not known
func.func @unknown() {
  %x = memref.alloc() : memref<4xf32>
  "test.unknown"(%x) : (memref<4xf32>) -> ()
  func.return
}
// REMARK-NEXT: remark: memref.alloc is left as it is: what func.call does with it is not known
func.func @call() {
  %x = memref.alloc() : memref<4xf32>
  func.call @callee(%x) : (memref<4xf32>) -> ()
  func.return
}
func.func private @callee(memref<4xf32>)
// REMARK-NEXT: remark: memref.alloc is left as it is: it is inside a region of another operation
func.func @nested(%n: index, %c: i1) {
  scf.if %c {
    %x = memref.alloc() : memref<4xf32>
    memref.dealloc %x : memref<4xf32>
  }
  func.return
}
// REMARK-NEXT: remark: memref.alloc is left as it is: the function has 2 blocks, not 1
func.func @blocks() {
  %x = memref.alloc() : memref<4xf32>
  cf.br ^next
^next:
  memref.dealloc %x : memref<4xf32>
  func.return
}
// REMARK-NEXT: remark: memref.alloc is left as it is: memref<4xf32, strided<[2]>> has a layout other than the identity
func.func @strided() {
  %x = memref.alloc() : memref<4xf32, strided<[2]>>
  memref.dealloc %x : memref<4xf32, strided<[2]>>
  func.return
}
