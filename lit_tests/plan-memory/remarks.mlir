// Allocations that can't be planned stay, and a remark says why.
// RUN: plan-opt %s -p plan-memory --allow-unregistered-dialect 2>/dev/null | filecheck %s
// RUN: plan-opt %s -p plan-memory --allow-unregistered-dialect 2>&1 >/dev/null | filecheck %s --check-prefix=REMARK

// CHECK-NOT: memref.view
// CHECK-COUNT-9: memref.alloc
// REMARK: remarks.mlir:9:8: remark: memref.alloc is not planned: it escapes through func.return
func.func @returned() -> memref<4xf32> {
  %x = memref.alloc() : memref<4xf32>
  func.return %x : memref<4xf32>
}
// REMARK-NEXT: remark: memref.alloc is not planned: the size of memref<?xf32> cannot be derived from the shapes of the arguments
func.func @dynamic(%size: memref<index>) {
  %n = memref.load %size[] : memref<index>
  %x = memref.alloc(%n) : memref<?xf32>
  memref.dealloc %x : memref<?xf32>
  func.return
}
// %n is certain to be a size only if %c is true.
// REMARK-NEXT: remark: memref.alloc is not planned: the size of memref<?xf32> cannot be derived from the shapes of the arguments
func.func @perhaps(%n: index, %c: i1) {
  scf.if %c {
    %x = memref.alloc(%n) : memref<?xf32>
    memref.dealloc %x : memref<?xf32>
  }
  func.return
}
// REMARK-NEXT: remark: memref.alloc is not planned: the effects of test.unknown on it are unknown
func.func @unknown() {
  %x = memref.alloc() : memref<4xf32>
  "test.unknown"(%x) : (memref<4xf32>) -> ()
  func.return
}
// REMARK-NEXT: remark: memref.alloc is not planned: the effects of func.call on it are unknown
func.func @call() {
  %x = memref.alloc() : memref<4xf32>
  func.call @callee(%x) : (memref<4xf32>) -> ()
  func.return
}
func.func private @callee(memref<4xf32>)
// REMARK-NEXT: remark: memref.alloc is not planned: it is inside scf.parallel, which may run concurrently with itself
func.func @concurrent(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  "scf.parallel"(%c0, %n, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    %x = memref.alloc() : memref<4xf32>
    memref.dealloc %x : memref<4xf32>
    "scf.reduce"() : () -> ()
  }) : (index, index, index) -> ()
  func.return
}
// %y may be carried for any number of iterations; one dealloc frees %y or %z.
// REMARK-NEXT: remark: memref.alloc is not planned: it is still live when the next iteration allocates it again
// REMARK-NEXT: remark: memref.alloc is not planned: its dealloc may also free memory that is not planned
func.func @carried(%n: index, %in: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = memref.alloc() : memref<4xf32>
  "memref.copy"(%in, %z) : (memref<4xf32>, memref<4xf32>) -> ()
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%v = %z) -> (memref<4xf32>) {
    %c = arith.cmpi eq, %i, %c0 : index
    %w = scf.if %c -> (memref<4xf32>) {
      %y = memref.alloc() : memref<4xf32>
      tgraph.reverse %v outs(%y) {dimensions = array<i64: 0>} : memref<4xf32>
      memref.dealloc %v : memref<4xf32>
      scf.yield %y : memref<4xf32>
    } else {
      scf.yield %v : memref<4xf32>
    }
    scf.yield %w : memref<4xf32>
  }
  "memref.copy"(%r, %in) : (memref<4xf32>, memref<4xf32>) -> ()
  memref.dealloc %r : memref<4xf32>
  func.return
}
// REMARK-NEXT: remark: memref.alloc is not planned: memref<4xf32, strided<[2]>> has a layout other than the identity
func.func @strided() {
  %x = memref.alloc() : memref<4xf32, strided<[2]>>
  memref.dealloc %x : memref<4xf32, strided<[2]>>
  func.return
}
