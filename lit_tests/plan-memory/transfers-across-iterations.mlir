// RUN: plan-opt %s -p plan-memory,plan-check | filecheck %s

// An iteration starts the transfer of the next one's data. The transfer keeps its slot
// across the end of the iteration, until the wait: two slots rotate, and the data from
// before the loop is in the slot that is written last.

// CHECK: %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<512xi8, "sram">
// CHECK: %first = memref.view %arena[%[[ZERO:.*]]][]
// CHECK: "memref.dma_start"(%x0, %c0, %first,
// CHECK: %slot = memref.view %arena[%c256][]
// CHECK-NEXT: %slot_1 = memref.view %arena[%[[ZERO]]][]
// CHECK-NEXT: scf.for {{.*}} iter_args(%cur = %first, %[[A:.*]] = %slot, %[[B:.*]] = %slot_1)
// CHECK: %next = memref.view %[[A]]
// CHECK: "memref.dma_wait"
// CHECK-NEXT: "memref.dma_start"(%xi, %c0, %next,
// CHECK: scf.yield %next, %[[B]], %[[A]]

func.func @main(%x: memref<8x64xf32>, %y: memref<8x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %tag = memref.alloca() : memref<1xi32>
  %c64 = arith.constant 64 : index
  %first = memref.alloc() : memref<64xf32, "sram">
  %x0 = memref.subview %x[0, 0] [1, 64] [1, 1] : memref<8x64xf32> to memref<64xf32, strided<[1]>>
  memref.dma_start %x0[%c0], %first[%c0], %c64, %tag[%c0] : memref<64xf32, strided<[1]>>, memref<64xf32, "sram">, memref<1xi32>
  %last = scf.for %i = %c0 to %c7 step %c1 iter_args(%cur = %first) -> (memref<64xf32, "sram">) {
    %next = memref.alloc() : memref<64xf32, "sram">
    %i1 = arith.addi %i, %c1 : index
    %xi = memref.subview %x[%i1, 0] [1, 64] [1, 1] : memref<8x64xf32> to memref<64xf32, strided<[1], offset: ?>>
    memref.dma_wait %tag[%c0], %c64 : memref<1xi32>
    memref.dma_start %xi[%c0], %next[%c0], %c64, %tag[%c0] : memref<64xf32, strided<[1], offset: ?>>, memref<64xf32, "sram">, memref<1xi32>
    %yi = memref.subview %y[%i, 0] [1, 64] [1, 1] : memref<8x64xf32> to memref<64xf32, strided<[1], offset: ?>>
    linalg.exp ins(%cur : memref<64xf32, "sram">) outs(%yi : memref<64xf32, strided<[1], offset: ?>>)
    memref.dealloc %cur : memref<64xf32, "sram">
    scf.yield %next : memref<64xf32, "sram">
  }
  memref.dma_wait %tag[%c0], %c64 : memref<1xi32>
  %yl = memref.subview %y[7, 0] [1, 64] [1, 1] : memref<8x64xf32> to memref<64xf32, strided<[1], offset: 448>>
  linalg.exp ins(%last : memref<64xf32, "sram">) outs(%yl : memref<64xf32, strided<[1], offset: 448>>)
  memref.dealloc %last : memref<64xf32, "sram">
  return
}
