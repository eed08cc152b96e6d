// RUN: plan-opt %s -p plan-memory 2>&1 | filecheck %s

// Text of MLIR 22 that xDSL rejects: unknown properties, another form of operands,
// attributes and a dialect that it lacks. Only operations that touch memory get a
// remark, one for each name.

// CHECK: newer-mlir.mlir:19:5: remark: memref.atomic_rmw does not match the definition in xDSL ({{.*}}), 2 times: its effects on memrefs are unknown

"builtin.module"() ({
  "func.func"() <{function_type = (i64, memref<4xf32>) -> i32, sym_name = "main"}> ({
  ^bb0(%n: i64, %r: memref<4xf32>):
    %0 = "arith.trunci"(%n) <{overflowFlags = #arith.overflow<none>}> : (i64) -> i32
    %1 = "arith.index_castui"(%n) <{nonNeg}> : (i64) -> index
    %2 = "index.add"(%1, %1) : (index, index) -> index
    "vector.print"(%0) <{punctuation = #vector.punctuation<newline>}> : (i32) -> ()
    %x = "memref.alloc"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<4xf32>
    "memref.copy"(%r, %x) : (memref<4xf32>, memref<4xf32>) -> ()
    "memref.copy"(%x, %r) : (memref<4xf32>, memref<4xf32>) -> ()
    "memref.atomic_rmw"(%r) : (memref<4xf32>) -> ()
    "memref.atomic_rmw"(%r) : (memref<4xf32>) -> ()
    %c0 = "arith.constant"() <{value = 0 : index}> : () -> index
    "memref.prefetch"(%x, %c0) <{isDataCache = true, isWrite = false, localityHint = 3 : i32}> : (memref<4xf32>, index) -> ()
    %o = "memref.generic_atomic_rmw"(%r, %c0) ({
    ^bb0(%v: f32):
      "memref.atomic_yield"(%v) : (f32) -> ()
    }) : (memref<4xf32>, index) -> f32
    "memref.dealloc"(%x) : (memref<4xf32>) -> ()
    "func.return"(%0) : (i32) -> ()
  }) : () -> ()
}) : () -> ()

// CHECK-NOT:  remark: memref
// CHECK:      %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<16xi8>
// CHECK:      memref.view %arena
