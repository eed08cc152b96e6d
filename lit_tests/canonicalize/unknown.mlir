// An unregistered operation stays in its loop, as it may have effects.
// RUN: plan-opt %s --allow-unregistered-dialect -p canonicalize | filecheck %s

// CHECK:      scf.for %i = %c0 to %c8 step %c1 {
// CHECK-NEXT:   "npu.issue"(%x, %i) : (memref<8xf32>, index) -> ()
// CHECK-NEXT: }
func.func @f(%x: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    "npu.issue"(%x, %i) : (memref<8xf32>, index) -> ()
  }
  func.return
}
