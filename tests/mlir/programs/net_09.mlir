#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
"builtin.module"() ({
  "func.func"() <{function_type = (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> (), sym_name = "program"}> ({
  ^bb0(%arg2: index, %arg3: i1, %arg4: memref<8x8xf32>, %arg5: memref<8x8xf32>, %arg6: memref<8x8xf32>):
    %18 = "arith.constant"() <{value = 2.000000e+00 : f32}> : () -> f32
    %19 = "arith.constant"() <{value = 2 : index}> : () -> index
    %20 = "arith.constant"() <{value = 0 : index}> : () -> index
    %21 = "arith.constant"() <{value = 8 : index}> : () -> index
    %22 = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
    %23 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.fill"(%22, %23) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg19: f32, %arg20: f32):
      "linalg.yield"(%arg19) : (f32) -> ()
    }) : (f32, memref<8x8xf32>) -> ()
    "scf.for"(%20, %21, %19) ({
    ^bb0(%arg7: index):
      %24 = "memref.subview"(%arg4, %arg7) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>, static_offsets = array<i64: -9223372036854775808, 0>, static_sizes = array<i64: 2, 8>, static_strides = array<i64: 1, 1>}> : (memref<8x8xf32>, index) -> memref<2x8xf32, strided<[8, 1], offset: ?>>
      %25 = "memref.load"(%24, %20, %20) <{nontemporal = false}> : (memref<2x8xf32, strided<[8, 1], offset: ?>>, index, index) -> f32
      %26 = "arith.cmpf"(%25, %18) <{fastmath = #arith.fastmath<none>, predicate = 4 : i64}> : (f32, f32) -> i1
      %27 = "scf.if"(%26) ({
        %35 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<2x8xf32>
        "linalg.fill"(%22, %35) <{operandSegmentSizes = array<i32: 1, 1>}> ({
        ^bb0(%arg17: f32, %arg18: f32):
          "linalg.yield"(%arg17) : (f32) -> ()
        }) : (f32, memref<2x8xf32>) -> ()
        "linalg.matmul"(%24, %arg5, %35) <{indexing_maps = [#map, #map1, #map2], operandSegmentSizes = array<i32: 2, 1>}> ({
        ^bb0(%arg14: f32, %arg15: f32, %arg16: f32):
          %39 = "arith.mulf"(%arg14, %arg15) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
          %40 = "arith.addf"(%arg16, %39) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
          "linalg.yield"(%40) : (f32) -> ()
        }) : (memref<2x8xf32, strided<[8, 1], offset: ?>>, memref<8x8xf32>, memref<2x8xf32>) -> ()
        %36 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<2x8xf32>
        "linalg.exp"(%35, %36) <{operandSegmentSizes = array<i32: 1, 1>}> ({
        ^bb0(%arg12: f32, %arg13: f32):
          %38 = "math.exp"(%arg12) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
          "linalg.yield"(%38) : (f32) -> ()
        }) : (memref<2x8xf32>, memref<2x8xf32>) -> ()
        %37 = "memref.cast"(%36) : (memref<2x8xf32>) -> memref<2x8xf32, strided<[?, ?], offset: ?>>
        "memref.dealloc"(%35) : (memref<2x8xf32>) -> ()
        "scf.yield"(%37) : (memref<2x8xf32, strided<[?, ?], offset: ?>>) -> ()
      }, {
        %30 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<2x8xf32>
        "linalg.negf"(%24, %30) <{operandSegmentSizes = array<i32: 1, 1>}> ({
        ^bb0(%arg10: f32, %arg11: f32):
          %34 = "arith.negf"(%arg10) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
          "linalg.yield"(%34) : (f32) -> ()
        }) : (memref<2x8xf32, strided<[8, 1], offset: ?>>, memref<2x8xf32>) -> ()
        %31 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<2x8xf32>
        "linalg.tanh"(%30, %31) <{operandSegmentSizes = array<i32: 1, 1>}> ({
        ^bb0(%arg8: f32, %arg9: f32):
          %33 = "math.tanh"(%arg8) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
          "linalg.yield"(%33) : (f32) -> ()
        }) : (memref<2x8xf32>, memref<2x8xf32>) -> ()
        %32 = "memref.cast"(%31) : (memref<2x8xf32>) -> memref<2x8xf32, strided<[?, ?], offset: ?>>
        "memref.dealloc"(%30) : (memref<2x8xf32>) -> ()
        "scf.yield"(%32) : (memref<2x8xf32, strided<[?, ?], offset: ?>>) -> ()
      }) : (i1) -> memref<2x8xf32, strided<[?, ?], offset: ?>>
      %28 = "memref.subview"(%23, %arg7) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>, static_offsets = array<i64: -9223372036854775808, 0>, static_sizes = array<i64: 2, 8>, static_strides = array<i64: 1, 1>}> : (memref<8x8xf32>, index) -> memref<2x8xf32, strided<[8, 1], offset: ?>>
      "memref.copy"(%27, %28) : (memref<2x8xf32, strided<[?, ?], offset: ?>>, memref<2x8xf32, strided<[8, 1], offset: ?>>) -> ()
      %29:6 = "memref.extract_strided_metadata"(%27) : (memref<2x8xf32, strided<[?, ?], offset: ?>>) -> (memref<f32>, index, index, index, index, index)
      "memref.dealloc"(%29#0) : (memref<f32>) -> ()
      "scf.yield"() : () -> ()
    }) : (index, index, index) -> ()
    "memref.copy"(%23, %arg6) : (memref<8x8xf32>, memref<8x8xf32>) -> ()
    "memref.dealloc"(%23) : (memref<8x8xf32>) -> ()
    "func.return"() : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (memref<*xf32>) -> (), sym_name = "printMemrefF32", sym_visibility = "private"}> ({
  }) {llvm.emit_c_interface} : () -> ()
  "func.func"() <{function_type = () -> (), sym_name = "main"}> ({
    %0 = "arith.constant"() <{value = false}> : () -> i1
    %1 = "arith.constant"() <{value = 0 : index}> : () -> index
    %2 = "arith.constant"() <{value = 1 : index}> : () -> index
    %3 = "arith.constant"() <{value = 3 : index}> : () -> index
    %4 = "arith.constant"() <{value = 4 : index}> : () -> index
    %5 = "arith.constant"() <{value = true}> : () -> i1
    %6 = "arith.constant"() <{value = 6.250000e-02 : f32}> : () -> f32
    %7 = "arith.constant"() <{value = 8 : index}> : () -> index
    %8 = "memref.alloca"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    %9 = "memref.alloca"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    %10 = "memref.alloca"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "scf.for"(%1, %7, %2) ({
    ^bb0(%arg0: index):
      "scf.for"(%1, %7, %2) ({
      ^bb0(%arg1: index):
        %12 = "arith.addi"(%arg0, %2) <{overflowFlags = #arith.overflow<none>}> : (index, index) -> index
        %13 = "arith.addi"(%12, %arg1) <{overflowFlags = #arith.overflow<none>}> : (index, index) -> index
        %14 = "arith.index_cast"(%13) : (index) -> i32
        %15 = "arith.sitofp"(%14) : (i32) -> f32
        %16 = "arith.mulf"(%15, %6) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
        %17 = "arith.mulf"(%16, %16) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
        "memref.store"(%16, %8, %arg0, %arg1) : (f32, memref<8x8xf32>, index, index) -> ()
        "memref.store"(%17, %9, %arg0, %arg1) : (f32, memref<8x8xf32>, index, index) -> ()
        "scf.yield"() : () -> ()
      }) : (index, index, index) -> ()
      "scf.yield"() : () -> ()
    }) : (index, index, index) -> ()
    %11 = "memref.cast"(%10) : (memref<8x8xf32>) -> memref<*xf32>
    "func.call"(%3, %5, %8, %9, %10) <{callee = @program}> : (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    "func.call"(%11) <{callee = @printMemrefF32}> : (memref<*xf32>) -> ()
    "func.call"(%1, %0, %8, %9, %10) <{callee = @program}> : (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    "func.call"(%11) <{callee = @printMemrefF32}> : (memref<*xf32>) -> ()
    "func.call"(%4, %0, %8, %9, %10) <{callee = @program}> : (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    "func.call"(%11) <{callee = @printMemrefF32}> : (memref<*xf32>) -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

