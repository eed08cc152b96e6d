// RUN: plan-opt %s --target-memory %S/copies.toml -p plan-spill | filecheck %s
// RUN: plan-opt %s --target-memory %S/copies.toml -p plan-spill,plan-memory,plan-check -o /dev/null

!t = memref<64x64xf32, "sram">

// After two iterations, %a and %b are where they were. So two iterations are one, and
// the last one follows the loop.
// CHECK-LABEL: func.func @exchanged
func.func @exchanged(%x: !t, %y: !t) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = arith.constant 7 : index
  %a = memref.alloc() : !t
  %b = memref.alloc() : !t
  // CHECK: linalg.exp ins(%x {{.*}} outs(%a
  linalg.exp ins(%x : !t) outs(%a : !t)
  %c = memref.alloc() : !t
  linalg.exp ins(%x : !t) outs(%c : !t)
  // CHECK:      [[END:%.*]] = arith.constant 6 : index
  // CHECK-NEXT: [[STEP:%.*]] = arith.constant 2 : index
  // CHECK:      scf.for %i = %zero to [[END]] step [[STEP]] {
  // CHECK:      linalg.exp ins(%a {{.*}} outs([[B:%b[_0-9]*]]
  // CHECK:      linalg.exp ins([[B]] {{.*}} outs(%a
  // CHECK:      memref.dealloc [[B]]
  %p, %q = scf.for %i = %zero to %end step %one iter_args(%old = %a, %new = %b) -> (!t, !t) {
    linalg.exp ins(%old : !t) outs(%new : !t)
    %d = memref.alloc() : !t
    linalg.exp ins(%c : !t) outs(%d : !t)
    linalg.add ins(%c, %d : !t, !t) outs(%y : !t)
    scf.yield %new, %old : !t, !t
  }
  // CHECK:      linalg.exp ins(%a {{.*}} outs([[LAST:%b[_0-9]*]]
  // CHECK:      linalg.exp ins([[LAST]] {{.*}} outs(%y
  linalg.exp ins(%p : !t) outs(%y : !t)
  func.return
}
