// RUN: plan-opt %s -p plan-strip-memory-spaces | filecheck %s
// RUN: plan-opt %s -p plan-strip-memory-spaces | filecheck %s --check-prefix=DMA

// Signatures, constants and all values lose their memory space; layouts stay.
// CHECK-NOT: "cpu:0"
// CHECK:     func.func @f(%a: memref<4xf32>, %r: memref<2xf32, strided<[2]>>)
// CHECK:     memref.alloc() : memref<4xf32>
"memref.global"() <{sym_name = "c", type = memref<2xf32, "cpu:0">, initial_value = dense<[1.0, 2.0]> : tensor<2xf32>, sym_visibility = "private", constant}> : () -> ()
func.func @f(%a: memref<4xf32, "cpu:0">, %r: memref<2xf32, strided<[2]>, "cpu:0">) {
  %c = memref.get_global @c : memref<2xf32, "cpu:0">
  %0 = memref.alloc() : memref<4xf32, "cpu:0">
  memref.dealloc %0 : memref<4xf32, "cpu:0">
  func.return
}

// Transfers become copies at their start: of whole memrefs, or of as many elements.
// DMA-LABEL: func.func @transfers
// DMA-NOT:   alloca
// DMA:       "memref.copy"(%a, %far) : (memref<4x2xf32>, memref<4x2xf32>) -> ()
// DMA-NEXT:  "test.op"() : () -> ()
// DMA-NEXT:  %[[FROM:.*]] = memref.reinterpret_cast %far to offset: [2], sizes: [6], strides: [1] : memref<4x2xf32> to memref<6xf32, strided<[1], offset: 2>>
// DMA-NEXT:  %[[TO:.*]] = memref.reinterpret_cast %row to offset: [8], sizes: [6], strides: [1] : memref<8xf32, strided<[1], offset: 8>> to memref<6xf32, strided<[1], offset: 8>>
// DMA-NEXT:  "memref.copy"(%[[FROM]], %[[TO]]) :
// DMA-NEXT:  memref.load
// DMA:       arith.addi
// DMA:       %[[AT:.*]] = arith.addi
// DMA:       memref.reinterpret_cast %a to offset: [%[[AT]]], sizes: [%n], strides: [1] : memref<4x2xf32> to memref<?xf32, strided<[1], offset: ?>>
// DMA:       "memref.copy"({{.*}}) : (memref<?xf32, strided<[1], offset: ?>>, memref<?xf32, strided<[1]>>) -> ()
// DMA-NOT:   memref.dma
func.func @transfers(%a: memref<4x2xf32, "sram">, %far: memref<4x2xf32, "psram">, %row: memref<8xf32, strided<[1], offset: 8>, "sram">, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  %tag = memref.alloca() : memref<1xi32>
  memref.dma_start %a[%c0, %c0], %far[%c0, %c0], %c8, %tag[%c0] : memref<4x2xf32, "sram">, memref<4x2xf32, "psram">, memref<1xi32>
  "test.op"() : () -> ()
  memref.dma_wait %tag[%c0], %c8 : memref<1xi32>
  memref.dma_start %far[%c1, %c0], %row[%c0], %c6, %tag[%c0] : memref<4x2xf32, "psram">, memref<8xf32, strided<[1], offset: 8>, "sram">, memref<1xi32>
  memref.dma_wait %tag[%c0], %c6 : memref<1xi32>
  %seen = memref.load %row[%c0] : memref<8xf32, strided<[1], offset: 8>, "sram">
  memref.dma_start %a[%n, %c1], %far[%c0, %c0], %n, %tag[%c0] : memref<4x2xf32, "sram">, memref<4x2xf32, "psram">, memref<1xi32>
  memref.dma_wait %tag[%c0], %n : memref<1xi32>
  func.return
}

// Tensors in a fusion lose their device, too.
// DMA-LABEL: func.func @fusion
// DMA-NOT:   "sram"
func.func @fusion(%x: memref<4xf32, "sram">, %y: memref<4xf32, "sram">) {
  "tgraph.fusion"(%x, %y) <{operandSegmentSizes = array<i32: 1, 1, 0>}> ({
  ^bb0(%in: tensor<4xf32, "sram">):
    %out = tgraph.negate %in : tensor<4xf32, "sram">
    tgraph.yield %out : tensor<4xf32, "sram">
  }) : (memref<4xf32, "sram">, memref<4xf32, "sram">) -> ()
  func.return
}
