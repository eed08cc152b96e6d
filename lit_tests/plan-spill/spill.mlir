// RUN: plan-opt %s --target-memory %S/copies.toml -p plan-spill | filecheck %s
// RUN: plan-opt %s --target-memory %S/copies.toml -p plan-spill 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: plan-opt %s --target-memory %S/copies.toml -p plan-spill,plan-memory,plan-check -o /dev/null
// RUN: not plan-opt %s --target-memory %S/copies.toml -p plan-memory 2>&1 | filecheck %s --check-prefix=ALONE

// ALONE: error: the arena in sram takes 65536 bytes, expected at most 49152

// Buffers do not move to rom, although copies to it are faster: it is smaller.
// REMARK:      :[[#]]:8: remark: 16384 bytes of %a are in psram between linalg.add ({{.*}}:[[#]]:3) and linalg.add ({{.*}}:[[#]]:3)
// REMARK-NEXT: :[[#]]:8: remark: 16384 bytes of %p are in psram between linalg.exp ({{.*}}:[[#]]:3) and linalg.matmul ({{.*}}:[[#]]:3)
// REMARK-NEXT: :[[#]]:8: remark: 16384 bytes of %s are in psram between scf.for ({{.*}}:[[#]]:3) and linalg.exp ({{.*}}:[[#]]:3)
// REMARK-NEXT: :[[#]]:8: remark: 16384 bytes of %w are in psram between linalg.exp ({{.*}}:[[#]]:3) and scf.for ({{.*}}:[[#]]:3)
// REMARK-NEXT: :[[#]]:8: remark: 16384 bytes of %w are in psram between linalg.sub ({{.*}}:[[#]]:5) and the next iteration's linalg.sub ({{.*}}:[[#]]:5)
!t = memref<64x64xf32, "sram">

// CHECK-LABEL: func.func @copied
func.func @copied(%x: !t, %y: !t) {
  %zero = arith.constant 0.0 : f32
  // CHECK:      %a = memref.alloc() : [[SRAM:memref<64x64xf32, "sram">]]
  // CHECK-NEXT: linalg.exp {{.*}} outs(%a
  %a = memref.alloc() : !t
  linalg.exp ins(%x : !t) outs(%a : !t)
  %b = memref.alloc() : !t
  // %a is in psram while %b, %c and %d are live.
  // CHECK:      linalg.add ins(%a, %x
  // CHECK-NEXT: "memref.copy"(%a, [[AWAY:%a_[0-9]+]]) : ([[SRAM]], memref<64x64xf32, "psram">) -> ()
  // CHECK-NEXT: memref.dealloc %a : [[SRAM]]
  linalg.add ins(%a, %x : !t, !t) outs(%b : !t)
  %c = memref.alloc() : !t
  linalg.fill ins(%zero : f32) outs(%c : !t)
  linalg.matmul ins(%b, %x : !t, !t) outs(%c : !t)
  %d = memref.alloc() : !t
  // CHECK:      linalg.mul
  linalg.mul ins(%c, %b : !t, !t) outs(%d : !t)
  memref.dealloc %b : !t
  memref.dealloc %c : !t
  // CHECK:      [[BACK:%a_[0-9]+]] = memref.alloc() : [[SRAM]]
  // CHECK-NEXT: "memref.copy"([[AWAY]], [[BACK]])
  // CHECK-NEXT: memref.dealloc [[AWAY]] : memref<64x64xf32, "psram">
  // CHECK-NEXT: linalg.add ins(%d, [[BACK]]
  // CHECK-NEXT: memref.dealloc [[BACK]]
  linalg.add ins(%d, %a : !t, !t) outs(%y : !t)
  memref.dealloc %a : !t
  memref.dealloc %d : !t
  // CHECK-NEXT: memref.dealloc %d
  func.return
}

// The product may read operands in psram, so nothing is copied back.
// CHECK-LABEL: func.func @read_there
func.func @read_there(%x: !t, %y: !t) {
  %p = memref.alloc() : !t
  // CHECK:      linalg.exp
  // CHECK-NEXT: "memref.copy"(%p, [[AWAY:%p_[0-9]+]])
  linalg.exp ins(%x : !t) outs(%p : !t)
  %q = memref.alloc() : !t
  %r = memref.alloc() : !t
  %u = memref.alloc() : !t
  linalg.exp ins(%x : !t) outs(%q : !t)
  linalg.exp ins(%x : !t) outs(%r : !t)
  linalg.add ins(%q, %r : !t, !t) outs(%u : !t)
  // CHECK:      linalg.matmul ins([[AWAY]], %q : memref<64x64xf32, "psram">, [[SRAM]]) outs(%u
  // CHECK-NEXT: memref.dealloc [[AWAY]]
  linalg.matmul ins(%p, %q : !t, !t) outs(%u : !t)
  linalg.add ins(%u, %r : !t, !t) outs(%y : !t)
  func.return
}

// A value written by a loop is evicted after it; its view is recreated where needed.
// CHECK-LABEL: func.func @in_a_loop
func.func @in_a_loop(%x: !t, %y: !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %s = memref.alloc() : !t
  %v = memref.cast %s : !t to memref<?x64xf32, "sram">
  %value = arith.constant 1.0 : f32
  // CHECK: scf.for
  scf.for %i = %c0 to %c64 step %c1 {
    memref.store %value, %v[%i, %c0] : memref<?x64xf32, "sram">
  }
  // CHECK:      "memref.copy"(%s, [[AWAY:%s_[0-9]+]])
  %q = memref.alloc() : !t
  %r = memref.alloc() : !t
  %u = memref.alloc() : !t
  linalg.exp ins(%x : !t) outs(%q : !t)
  linalg.exp ins(%q : !t) outs(%r : !t)
  linalg.add ins(%q, %r : !t, !t) outs(%u : !t)
  // CHECK:      "memref.copy"([[AWAY]], [[BACK:%s_[0-9]+]])
  // CHECK:      [[VIEW:%v_[0-9]+]] = "memref.cast"([[BACK]])
  // CHECK-NEXT: linalg.exp ins([[VIEW]]
  linalg.exp ins(%v : memref<?x64xf32, "sram">) outs(%q : !t)
  linalg.add ins(%u, %q : !t, !t) outs(%y : !t)
  func.return
}

// A value that the loop only reads is evicted once, and prefetched in each iteration.
// CHECK-LABEL: func.func @weights
func.func @weights(%x: !t, %y: !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %w = memref.alloc() : !t
  linalg.exp ins(%x : !t) outs(%w : !t)
  // CHECK:      "memref.copy"(%w, [[AWAY:%w_[0-9]+]])
  // CHECK-NEXT: memref.dealloc %w
  // CHECK-NEXT: scf.for
  scf.for %i = %c0 to %c64 step %c1 {
    %p = memref.alloc() : !t
    linalg.exp ins(%y : !t) outs(%p : !t)
    %q = memref.alloc() : !t
    linalg.add ins(%p, %x : !t, !t) outs(%q : !t)
    // CHECK:      linalg.mul
    %s = memref.alloc() : !t
    linalg.mul ins(%p, %q : !t, !t) outs(%s : !t)
    %r = memref.alloc() : !t
    // CHECK:      [[BACK:%w_[0-9]+]] = memref.alloc()
    // CHECK-NEXT: "memref.copy"([[AWAY]], [[BACK]])
    // CHECK-NEXT: linalg.sub ins([[BACK]], %s
    // CHECK-NEXT: memref.dealloc [[BACK]]
    linalg.sub ins(%w, %s : !t, !t) outs(%r : !t)
    linalg.add ins(%r, %s : !t, !t) outs(%y : !t)
  }
  // CHECK:      memref.dealloc [[AWAY]]
  func.return
}
