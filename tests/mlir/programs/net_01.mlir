#map = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, d6)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d4, d5, d6, d3)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>
"builtin.module"() ({
  "func.func"() <{function_type = (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<1x8x8x1xf32>) -> (), sym_name = "program"}> ({
  ^bb0(%arg2: index, %arg3: i1, %arg4: memref<8x8xf32>, %arg5: memref<8x8xf32>, %arg6: memref<1x8x8x1xf32>):
    %18 = "arith.constant"() <{value = 1.000000e-01 : f32}> : () -> f32
    %19 = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
    %20 = "memref.expand_shape"(%arg4) <{reassociation = [[0, 1], [2, 3]], static_output_shape = array<i64: 1, 8, 8, 1>}> : (memref<8x8xf32>) -> memref<1x8x8x1xf32>
    %21 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<1x10x10x1xf32>
    "linalg.map"(%21) ({
    ^bb0(%arg27: f32):
      "linalg.yield"(%19) : (f32) -> ()
    }) : (memref<1x10x10x1xf32>) -> ()
    %22 = "memref.subview"(%21) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = array<i64: 0, 1, 1, 0>, static_sizes = array<i64: 1, 8, 8, 1>, static_strides = array<i64: 1, 1, 1, 1>}> : (memref<1x10x10x1xf32>) -> memref<1x8x8x1xf32, strided<[100, 10, 1, 1], offset: 11>>
    "memref.copy"(%20, %22) : (memref<1x8x8x1xf32>, memref<1x8x8x1xf32, strided<[100, 10, 1, 1], offset: 11>>) -> ()
    %23 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<3x3x1x4xf32>
    "linalg.fill"(%18, %23) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg25: f32, %arg26: f32):
      "linalg.yield"(%arg25) : (f32) -> ()
    }) : (f32, memref<3x3x1x4xf32>) -> ()
    %24 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<1x8x8x4xf32>
    "linalg.fill"(%19, %24) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg23: f32, %arg24: f32):
      "linalg.yield"(%arg23) : (f32) -> ()
    }) : (f32, memref<1x8x8x4xf32>) -> ()
    "linalg.conv_2d_nhwc_hwcf"(%21, %23, %24) <{dilations = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>, strides = dense<1> : tensor<2xi64>}> ({
    ^bb0(%arg20: f32, %arg21: f32, %arg22: f32):
      %36 = "arith.mulf"(%arg20, %arg21) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %37 = "arith.addf"(%arg22, %36) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%37) : (f32) -> ()
    }) {linalg.memoized_indexing_maps = [#map, #map1, #map2]} : (memref<1x10x10x1xf32>, memref<3x3x1x4xf32>, memref<1x8x8x4xf32>) -> ()
    %25 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<1x8x8x4xf32>
    "linalg.tanh"(%24, %25) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg18: f32, %arg19: f32):
      %35 = "math.tanh"(%arg18) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
      "linalg.yield"(%35) : (f32) -> ()
    }) : (memref<1x8x8x4xf32>, memref<1x8x8x4xf32>) -> ()
    %26 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<1x10x10x4xf32>
    "linalg.map"(%26) ({
    ^bb0(%arg17: f32):
      "linalg.yield"(%19) : (f32) -> ()
    }) : (memref<1x10x10x4xf32>) -> ()
    %27 = "memref.subview"(%26) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = array<i64: 0, 1, 1, 0>, static_sizes = array<i64: 1, 8, 8, 4>, static_strides = array<i64: 1, 1, 1, 1>}> : (memref<1x10x10x4xf32>) -> memref<1x8x8x4xf32, strided<[400, 40, 4, 1], offset: 44>>
    "memref.copy"(%25, %27) : (memref<1x8x8x4xf32>, memref<1x8x8x4xf32, strided<[400, 40, 4, 1], offset: 44>>) -> ()
    %28 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<3x3x4x1xf32>
    "linalg.fill"(%18, %28) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg15: f32, %arg16: f32):
      "linalg.yield"(%arg15) : (f32) -> ()
    }) : (f32, memref<3x3x4x1xf32>) -> ()
    %29 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<1x8x8x1xf32>
    "linalg.fill"(%19, %29) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg13: f32, %arg14: f32):
      "linalg.yield"(%arg13) : (f32) -> ()
    }) : (f32, memref<1x8x8x1xf32>) -> ()
    "linalg.conv_2d_nhwc_hwcf"(%26, %28, %29) <{dilations = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>, strides = dense<1> : tensor<2xi64>}> ({
    ^bb0(%arg10: f32, %arg11: f32, %arg12: f32):
      %33 = "arith.mulf"(%arg10, %arg11) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %34 = "arith.addf"(%arg12, %33) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%34) : (f32) -> ()
    }) {linalg.memoized_indexing_maps = [#map, #map1, #map2]} : (memref<1x10x10x4xf32>, memref<3x3x4x1xf32>, memref<1x8x8x1xf32>) -> ()
    %30 = "memref.expand_shape"(%arg5) <{reassociation = [[0, 1], [2, 3]], static_output_shape = array<i64: 1, 8, 8, 1>}> : (memref<8x8xf32>) -> memref<1x8x8x1xf32>
    %31 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<1x8x8x1xf32>
    "linalg.add"(%29, %30, %31) <{operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg7: f32, %arg8: f32, %arg9: f32):
      %32 = "arith.addf"(%arg7, %arg8) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%32) : (f32) -> ()
    }) : (memref<1x8x8x1xf32>, memref<1x8x8x1xf32>, memref<1x8x8x1xf32>) -> ()
    "memref.copy"(%31, %arg6) : (memref<1x8x8x1xf32>, memref<1x8x8x1xf32>) -> ()
    "memref.dealloc"(%21) : (memref<1x10x10x1xf32>) -> ()
    "memref.dealloc"(%23) : (memref<3x3x1x4xf32>) -> ()
    "memref.dealloc"(%24) : (memref<1x8x8x4xf32>) -> ()
    "memref.dealloc"(%25) : (memref<1x8x8x4xf32>) -> ()
    "memref.dealloc"(%26) : (memref<1x10x10x4xf32>) -> ()
    "memref.dealloc"(%28) : (memref<3x3x4x1xf32>) -> ()
    "memref.dealloc"(%29) : (memref<1x8x8x1xf32>) -> ()
    "memref.dealloc"(%31) : (memref<1x8x8x1xf32>) -> ()
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
    %10 = "memref.alloca"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<1x8x8x1xf32>
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
    %11 = "memref.cast"(%10) : (memref<1x8x8x1xf32>) -> memref<*xf32>
    "func.call"(%3, %5, %8, %9, %10) <{callee = @program}> : (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<1x8x8x1xf32>) -> ()
    "func.call"(%11) <{callee = @printMemrefF32}> : (memref<*xf32>) -> ()
    "func.call"(%1, %0, %8, %9, %10) <{callee = @program}> : (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<1x8x8x1xf32>) -> ()
    "func.call"(%11) <{callee = @printMemrefF32}> : (memref<*xf32>) -> ()
    "func.call"(%4, %0, %8, %9, %10) <{callee = @program}> : (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<1x8x8x1xf32>) -> ()
    "func.call"(%11) <{callee = @printMemrefF32}> : (memref<*xf32>) -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

