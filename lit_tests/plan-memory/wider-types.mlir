// RUN: plan-opt %s -p plan-memory 2>&1 | filecheck %s

// IR that MLIR allows and xDSL rejects: a `?` in the type of a cast to known sizes, and
// an affine map that multiplies by a symbol. The file is planned anyway.

#semi = affine_map<(d0, d1)[s0] -> (d1 * s0 + d0 floordiv s0 + d1 mod s0)>

// CHECK: wider-types.mlir:15:10: remark: memref.alloc is not planned: {{.*}} has a layout other than the identity
// CHECK: affine_map<(d0, d1)[s0] -> ((((d1 * s0) + (d0 floordiv s0)) + (d1 mod s0)))>
// CHECK: memref.view %arena

"builtin.module"() ({
  "func.func"() <{function_type = (index, memref<?xf32>, memref<4xf32>) -> (), sym_name = "main"}> ({
  ^bb0(%n: index, %s: memref<?xf32>, %r: memref<4xf32>):
    %m = "memref.alloc"(%n) <{operandSegmentSizes = array<i32: 0, 1>}> : (index) -> memref<2x2xf32, #semi>
    %v = "memref.reinterpret_cast"(%s) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = array<i64: 0>, static_sizes = array<i64: 2, 4>, static_strides = array<i64: 4, 1>}> : (memref<?xf32>) -> memref<2x?xf32, strided<[4, 1]>>
    %x = "memref.alloc"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<4xf32>
    "memref.copy"(%r, %x) : (memref<4xf32>, memref<4xf32>) -> ()
    "memref.copy"(%x, %r) : (memref<4xf32>, memref<4xf32>) -> ()
    "memref.dealloc"(%x) : (memref<4xf32>) -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
