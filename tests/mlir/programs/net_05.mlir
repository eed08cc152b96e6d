#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
"builtin.module"() ({
  "func.func"() <{function_type = (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> (), sym_name = "program"}> ({
  ^bb0(%arg2: index, %arg3: i1, %arg4: memref<8x8xf32>, %arg5: memref<8x8xf32>, %arg6: memref<8x8xf32>):
    %18 = "arith.constant"() <{value = 4 : index}> : () -> index
    %19 = "arith.constant"() <{value = 0 : index}> : () -> index
    %20 = "arith.constant"() <{value = 8 : index}> : () -> index
    %21 = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
    %22 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.fill"(%21, %22) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg17: f32, %arg18: f32):
      "linalg.yield"(%arg17) : (f32) -> ()
    }) : (f32, memref<8x8xf32>) -> ()
    "scf.for"(%19, %20, %18) ({
    ^bb0(%arg7: index):
      "scf.for"(%19, %20, %18) ({
      ^bb0(%arg8: index):
        %23 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<4x4xf32>
        "linalg.fill"(%21, %23) <{operandSegmentSizes = array<i32: 1, 1>}> ({
        ^bb0(%arg15: f32, %arg16: f32):
          "linalg.yield"(%arg15) : (f32) -> ()
        }) : (f32, memref<4x4xf32>) -> ()
        "scf.for"(%19, %20, %18) ({
        ^bb0(%arg11: index):
          %27 = "memref.subview"(%arg4, %arg7, %arg11) <{operandSegmentSizes = array<i32: 1, 2, 0, 0>, static_offsets = array<i64: -9223372036854775808, -9223372036854775808>, static_sizes = array<i64: 4, 4>, static_strides = array<i64: 1, 1>}> : (memref<8x8xf32>, index, index) -> memref<4x4xf32, strided<[8, 1], offset: ?>>
          %28 = "memref.subview"(%arg5, %arg11, %arg8) <{operandSegmentSizes = array<i32: 1, 2, 0, 0>, static_offsets = array<i64: -9223372036854775808, -9223372036854775808>, static_sizes = array<i64: 4, 4>, static_strides = array<i64: 1, 1>}> : (memref<8x8xf32>, index, index) -> memref<4x4xf32, strided<[8, 1], offset: ?>>
          "linalg.matmul"(%27, %28, %23) <{indexing_maps = [#map, #map1, #map2], operandSegmentSizes = array<i32: 2, 1>}> ({
          ^bb0(%arg12: f32, %arg13: f32, %arg14: f32):
            %29 = "arith.mulf"(%arg12, %arg13) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
            %30 = "arith.addf"(%arg14, %29) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
            "linalg.yield"(%30) : (f32) -> ()
          }) : (memref<4x4xf32, strided<[8, 1], offset: ?>>, memref<4x4xf32, strided<[8, 1], offset: ?>>, memref<4x4xf32>) -> ()
          "scf.yield"() : () -> ()
        }) : (index, index, index) -> ()
        %24 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<4x4xf32>
        "linalg.tanh"(%23, %24) <{operandSegmentSizes = array<i32: 1, 1>}> ({
        ^bb0(%arg9: f32, %arg10: f32):
          %26 = "math.tanh"(%arg9) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
          "linalg.yield"(%26) : (f32) -> ()
        }) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
        %25 = "memref.subview"(%22, %arg7, %arg8) <{operandSegmentSizes = array<i32: 1, 2, 0, 0>, static_offsets = array<i64: -9223372036854775808, -9223372036854775808>, static_sizes = array<i64: 4, 4>, static_strides = array<i64: 1, 1>}> : (memref<8x8xf32>, index, index) -> memref<4x4xf32, strided<[8, 1], offset: ?>>
        "memref.copy"(%24, %25) : (memref<4x4xf32>, memref<4x4xf32, strided<[8, 1], offset: ?>>) -> ()
        "memref.dealloc"(%23) : (memref<4x4xf32>) -> ()
        "memref.dealloc"(%24) : (memref<4x4xf32>) -> ()
        "scf.yield"() : () -> ()
      }) : (index, index, index) -> ()
      "scf.yield"() : () -> ()
    }) : (index, index, index) -> ()
    "memref.copy"(%22, %arg6) : (memref<8x8xf32>, memref<8x8xf32>) -> ()
    "memref.dealloc"(%22) : (memref<8x8xf32>) -> ()
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

