// RUN: plan-opt %s --target-memory %S/dma.toml -p plan-spill,plan-overlap-copies | filecheck %s
// RUN: plan-opt %s --target-memory %S/dma.toml -p plan-spill,plan-overlap-copies 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: plan-opt %s --target-memory %S/dma.toml -p plan-spill,plan-overlap-copies,plan-memory,plan-check -o /dev/null

// REMARK: :[[#]]:1: remark: 2 of 2 asynchronous copies overlap with operations, which hide an estimated {{[0-9]+}} of 3372 ns: {{[0-9]+}} of 32768 bytes

// The source of the copy out is freed after the wait; it does not fit beside %d.
// CHECK:      linalg.add ins(%a, %x
// CHECK-NEXT: "memref.dma_start"(%a, %c0, %c0, [[AWAY:%a_[0-9]+]], %c0, %c0, %c4096, [[OUT:%tag[_0-9]*]], %c0)
// CHECK:      linalg.matmul
// CHECK-NEXT: "memref.dma_wait"([[OUT]], %c0, %c4096)
// CHECK-NEXT: memref.dealloc %a
// CHECK-NEXT: %d = memref.alloc()
// The target of the copy back is allocated when %b and %c are dead.
// CHECK-NEXT: linalg.mul
// CHECK-NEXT: [[BACK:%a_[0-9]+]] = memref.alloc()
// CHECK-NEXT: "memref.dma_start"([[AWAY]], %c0, %c0, [[BACK]], %c0, %c0, %c4096, [[IN:%tag[_0-9]*]], %c0)
// CHECK-NEXT: linalg.exp
// CHECK-NEXT: linalg.exp
// CHECK-NEXT: "memref.dma_wait"([[IN]], %c0, %c4096)
// CHECK-NEXT: memref.dealloc [[AWAY]]
// CHECK-NEXT: linalg.add ins(%d, [[BACK]]
!t = memref<64x64xf32, "sram">
func.func @layer(%x: !t, %y: !t) {
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc() : !t
  linalg.exp ins(%x : !t) outs(%a : !t)
  %b = memref.alloc() : !t
  linalg.add ins(%a, %x : !t, !t) outs(%b : !t)
  %c = memref.alloc() : !t
  linalg.fill ins(%zero : f32) outs(%c : !t)
  linalg.matmul ins(%b, %x : !t, !t) outs(%c : !t)
  %d = memref.alloc() : !t
  linalg.mul ins(%c, %b : !t, !t) outs(%d : !t)
  linalg.exp ins(%d : !t) outs(%d : !t)
  linalg.exp ins(%d : !t) outs(%d : !t)
  linalg.add ins(%d, %a : !t, !t) outs(%y : !t)
  func.return
}
