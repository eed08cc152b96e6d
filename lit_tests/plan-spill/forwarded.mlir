// RUN: plan-opt %s --target-memory %S/copies.toml -p plan-spill | filecheck %s
// RUN: plan-opt %s --target-memory %S/copies.toml -p plan-spill 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: plan-opt %s --target-memory %S/copies.toml -p plan-spill,plan-memory,plan-check -o /dev/null

// REMARK:      :[[#]]:10: remark: 16384 bytes of %a are in psram between scf.if ({{.*}}:[[#]]:8) and linalg.exp ({{.*}}:[[#]]:3)
// REMARK-NEXT: :[[#]]:5: remark: 16384 bytes of %new are copied where scf.yield forwards them
// REMARK-NEXT: :[[#]]:8: remark: 16384 bytes of %a are copied where arith.select forwards them
// REMARK:      :[[#]]:3: remark: 16384 bytes of %first are copied where cf.cond_br forwards them
!t = memref<64x64xf32, "sram">

// Both branches write one buffer, which is evicted after them.
// CHECK-LABEL: func.func @together
func.func @together(%c: i1, %x: !t, %y: !t) {
  // CHECK:      %a = memref.alloc() : [[SRAM:memref<64x64xf32, "sram">]]
  // CHECK:      scf.if %c {
  // CHECK-NEXT:   linalg.exp {{.*}} outs(%a
  // CHECK-NEXT: } else {
  // CHECK-NEXT:   linalg.log {{.*}} outs(%a
  // CHECK-NEXT: }
  // CHECK-NEXT: "memref.copy"(%a, [[AWAY:%a_[0-9]+]]) : ([[SRAM]], memref<64x64xf32, "psram">)
  // CHECK-NEXT: memref.dealloc %a
  %r = scf.if %c -> (!t) {
    %a = memref.alloc() : !t
    linalg.exp ins(%x : !t) outs(%a : !t)
    scf.yield %a : !t
  } else {
    %a = memref.alloc() : !t
    linalg.log ins(%x : !t) outs(%a : !t)
    scf.yield %a : !t
  }
  %p = memref.alloc() : !t
  %q = memref.alloc() : !t
  linalg.exp ins(%x : !t) outs(%p : !t)
  linalg.add ins(%p, %p : !t, !t) outs(%q : !t)
  %s = memref.alloc() : !t
  linalg.sub ins(%p, %q : !t, !t) outs(%s : !t)
  linalg.add ins(%p, %s : !t, !t) outs(%y : !t)
  linalg.add ins(%q, %s : !t, !t) outs(%y : !t)
  memref.dealloc %p : !t
  memref.dealloc %q : !t
  memref.dealloc %s : !t
  // CHECK:      "memref.copy"([[AWAY]], [[BACK:%a_[0-9]+]])
  // CHECK:      linalg.exp ins([[BACK]]
  linalg.exp ins(%r : !t) outs(%y : !t)
  memref.dealloc %r : !t
  func.return
}

// There is no room for the two slots that the loop would rotate. The product can't be
// computed in place over its operand, so its result is copied there.
// CHECK-LABEL: func.func @apart
func.func @apart(%x: !t, %y: !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: linalg.exp {{.*}} outs(%first
  %first = memref.alloc() : !t
  linalg.exp ins(%x : !t) outs(%first : !t)
  // CHECK: scf.for {{[^(]*}} {
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%old = %first) -> (!t) {
    %p = memref.alloc() : !t
    %q = memref.alloc() : !t
    linalg.exp ins(%x : !t) outs(%p : !t)
    linalg.add ins(%p, %p : !t, !t) outs(%q : !t)
    linalg.add ins(%p, %q : !t, !t) outs(%y : !t)
    memref.dealloc %p : !t
    memref.dealloc %q : !t
    // CHECK:      linalg.matmul ins(%first, %x {{.*}} outs(%new
    // CHECK-NEXT: "memref.copy"(%new, %first)
    %new = memref.alloc() : !t
    linalg.fill ins(%zero : f32) outs(%new : !t)
    linalg.matmul ins(%old, %x : !t, !t) outs(%new : !t)
    memref.dealloc %old : !t
    scf.yield %new : !t
  }
  linalg.exp ins(%r : !t) outs(%y : !t)
  memref.dealloc %r : !t
  func.return
}

// Two buffers are live at once. The first is copied to the second where it is selected.
// CHECK-LABEL: func.func @selected
func.func @selected(%c: i1, %x: !t, %y: !t) {
  %a = memref.alloc() : !t
  linalg.exp ins(%x : !t) outs(%a : !t)
  %b = memref.alloc() : !t
  linalg.log ins(%x : !t) outs(%b : !t)
  // CHECK:      scf.if %c {
  // CHECK-NEXT:   "memref.copy"([[A:%[a-z0-9_]+]], [[B:%[a-z0-9_]+]]) : ([[SRAM:memref<64x64xf32, "sram">]], [[SRAM]])
  // CHECK-NEXT: } else {
  // CHECK-NEXT: }
  %r = arith.select %c, %a, %b : !t
  %p = memref.alloc() : !t
  %q = memref.alloc() : !t
  linalg.exp ins(%x : !t) outs(%p : !t)
  linalg.add ins(%p, %p : !t, !t) outs(%q : !t)
  %s = memref.alloc() : !t
  linalg.sub ins(%p, %q : !t, !t) outs(%s : !t)
  linalg.add ins(%p, %s : !t, !t) outs(%y : !t)
  linalg.add ins(%q, %s : !t, !t) outs(%y : !t)
  linalg.exp ins(%r : !t) outs(%y : !t)
  func.return
}

// A block on the way to ^right copies %first, so that %a may be computed from it elsewhere.
// CHECK-LABEL: func.func @blocks
func.func @blocks(%c: i1, %x: !t, %y: !t) {
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc() : !t
  linalg.fill ins(%zero : f32) outs(%a : !t)
  %first = memref.alloc() : !t
  linalg.exp ins(%x : !t) outs(%first : !t)
  // CHECK:      cf.cond_br %c, ^[[LEFT:[0-9a-z]+]], ^[[WAY:[0-9a-z]+]]
  cf.cond_br %c, ^left, ^right(%first : !t)
  // CHECK:      ^[[WAY]]:
  // CHECK-NEXT:   "memref.copy"(%first{{[_0-9]*}}, [[AWAY:%first[_0-9]*]]) : {{.*}}, "psram">)
  // CHECK-NEXT:   cf.br ^[[RIGHT:[0-9a-z]+]]
  // CHECK:        linalg.matmul ins(%first{{.*}} outs([[HERE:%first[_0-9]*]]
  // CHECK-NEXT:   "memref.copy"([[HERE]], [[AWAY]])
^left:
  linalg.matmul ins(%first, %x : !t, !t) outs(%a : !t)
  cf.br ^right(%a : !t)
^right(%r: !t):
  // CHECK:      ^[[RIGHT]]:
  %p = memref.alloc() : !t
  %q = memref.alloc() : !t
  linalg.exp ins(%x : !t) outs(%p : !t)
  linalg.add ins(%p, %p : !t, !t) outs(%q : !t)
  %s = memref.alloc() : !t
  linalg.sub ins(%p, %q : !t, !t) outs(%s : !t)
  linalg.add ins(%p, %s : !t, !t) outs(%y : !t)
  linalg.add ins(%q, %s : !t, !t) outs(%y : !t)
  linalg.exp ins(%r : !t) outs(%y : !t)
  func.return
}
