// The result of a call is other memory than its arguments if the callee allocates it.
// RUN: plan-opt %s -p plan-memory --allow-unregistered-dialect 2>/dev/null | filecheck %s
// RUN: plan-opt %s -p plan-memory --allow-unregistered-dialect 2>&1 >/dev/null | filecheck %s --check-prefix=REMARK

// The returned allocation stays, also in the functions that call the function.
// CHECK:      func.func private @exp(
// CHECK-NEXT:   %y = memref.alloc() : memref<16xf32>
// REMARK: new-results.mlir:10:8: remark: memref.alloc is not planned: it escapes through func.return
func.func private @exp(%x: memref<16xf32>) -> memref<16xf32> {
  %y = memref.alloc() : memref<16xf32>
  linalg.exp ins(%x : memref<16xf32>) outs(%y : memref<16xf32>)
  func.return %y : memref<16xf32>
}
func.func private @exp_twice(%x: memref<16xf32>) -> memref<16xf32> {
  %y = func.call @exp(%x) : (memref<16xf32>) -> memref<16xf32>
  %z = func.call @exp(%y) : (memref<16xf32>) -> memref<16xf32>
  memref.dealloc %y : memref<16xf32>
  func.return %z : memref<16xf32>
}
// %a is dead after the call, so %b has its bytes.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT:    %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
// CHECK-NEXT:    %c0 = arith.constant 0 : index
// CHECK-NEXT:    %a = memref.view %arena[%c0][]
// CHECK:         %e = func.call @exp_twice(%a)
// CHECK:         %b = memref.view %arena[%c0][]
// CHECK:         linalg.mul
// CHECK-NEXT:    memref.dealloc %e : memref<16xf32>
// CHECK-NEXT:    memref.dealloc %arena
func.func @main(%x: memref<16xf32>) {
  %a = memref.alloc() : memref<16xf32>
  linalg.exp ins(%x : memref<16xf32>) outs(%a : memref<16xf32>)
  %e = func.call @exp_twice(%a) : (memref<16xf32>) -> memref<16xf32>
  memref.dealloc %a : memref<16xf32>
  %b = memref.alloc() : memref<16xf32>
  linalg.exp ins(%x : memref<16xf32>) outs(%b : memref<16xf32>)
  linalg.mul ins(%b, %e : memref<16xf32>, memref<16xf32>) outs(%x : memref<16xf32>)
  memref.dealloc %b : memref<16xf32>
  memref.dealloc %e : memref<16xf32>
  func.return
}
// This callee may return its argument.
// CHECK-LABEL: func.func @other(
// CHECK-NEXT:    memref.alloc() : memref<16xf32>
// REMARK-NEXT: new-results.mlir:47:8: remark: memref.alloc is not planned: func.call may return it
func.func @other(%x: memref<16xf32>, %c: i1) {
  %a = memref.alloc() : memref<16xf32>
  linalg.exp ins(%x : memref<16xf32>) outs(%a : memref<16xf32>)
  %e = func.call @perhaps(%a, %c) : (memref<16xf32>, i1) -> memref<16xf32>
  "memref.copy"(%e, %x) : (memref<16xf32>, memref<16xf32>) -> ()
  func.return
}
func.func private @perhaps(%x: memref<16xf32>, %c: i1) -> memref<16xf32> {
  cf.cond_br %c, ^new, ^old
^new:
  %y = memref.alloc() : memref<16xf32>
  "memref.copy"(%x, %y) : (memref<16xf32>, memref<16xf32>) -> ()
  func.return %y : memref<16xf32>
^old:
  func.return %x : memref<16xf32>
}
