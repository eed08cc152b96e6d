#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
"builtin.module"() ({
  "func.func"() <{function_type = (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> (), sym_name = "program"}> ({
  ^bb0(%arg2: index, %arg3: i1, %arg4: memref<8x8xf32>, %arg5: memref<8x8xf32>, %arg6: memref<8x8xf32>):
    %18 = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
    %19 = "memref.expand_shape"(%arg4) <{reassociation = [[0, 1], [2]], static_output_shape = array<i64: 2, 4, 8>}> : (memref<8x8xf32>) -> memref<2x4x8xf32>
    %20 = "memref.expand_shape"(%arg5) <{reassociation = [[0, 1], [2]], static_output_shape = array<i64: 2, 4, 8>}> : (memref<8x8xf32>) -> memref<2x4x8xf32>
    %21 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<2x8x4xf32>
    "linalg.transpose"(%20, %21) <{permutation = array<i64: 0, 2, 1>}> ({
    ^bb0(%arg21: f32, %arg22: f32):
      "linalg.yield"(%arg21) : (f32) -> ()
    }) : (memref<2x4x8xf32>, memref<2x8x4xf32>) -> ()
    %22 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<2x4x4xf32>
    "linalg.fill"(%18, %22) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg19: f32, %arg20: f32):
      "linalg.yield"(%arg19) : (f32) -> ()
    }) : (f32, memref<2x4x4xf32>) -> ()
    "linalg.batch_matmul"(%19, %21, %22) <{indexing_maps = [#map, #map1, #map2], operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg16: f32, %arg17: f32, %arg18: f32):
      %31 = "arith.mulf"(%arg16, %arg17) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %32 = "arith.addf"(%arg18, %31) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%32) : (f32) -> ()
    }) : (memref<2x4x8xf32>, memref<2x8x4xf32>, memref<2x4x4xf32>) -> ()
    %23 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<2x4x4xf32>
    "linalg.tanh"(%22, %23) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg14: f32, %arg15: f32):
      %30 = "math.tanh"(%arg14) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
      "linalg.yield"(%30) : (f32) -> ()
    }) : (memref<2x4x4xf32>, memref<2x4x4xf32>) -> ()
    %24 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<2x4x8xf32>
    "linalg.fill"(%18, %24) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg12: f32, %arg13: f32):
      "linalg.yield"(%arg12) : (f32) -> ()
    }) : (f32, memref<2x4x8xf32>) -> ()
    "linalg.batch_matmul"(%23, %20, %24) <{indexing_maps = [#map, #map1, #map2], operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg9: f32, %arg10: f32, %arg11: f32):
      %28 = "arith.mulf"(%arg9, %arg10) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %29 = "arith.addf"(%arg11, %28) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%29) : (f32) -> ()
    }) : (memref<2x4x4xf32>, memref<2x4x8xf32>, memref<2x4x8xf32>) -> ()
    %25 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<2x4x8xf32>
    "linalg.exp"(%24, %25) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg7: f32, %arg8: f32):
      %27 = "math.exp"(%arg7) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
      "linalg.yield"(%27) : (f32) -> ()
    }) : (memref<2x4x8xf32>, memref<2x4x8xf32>) -> ()
    %26 = "memref.collapse_shape"(%25) <{reassociation = [[0, 1], [2]]}> : (memref<2x4x8xf32>) -> memref<8x8xf32>
    "memref.copy"(%26, %arg6) : (memref<8x8xf32>, memref<8x8xf32>) -> ()
    "memref.dealloc"(%21) : (memref<2x8x4xf32>) -> ()
    "memref.dealloc"(%22) : (memref<2x4x4xf32>) -> ()
    "memref.dealloc"(%23) : (memref<2x4x4xf32>) -> ()
    "memref.dealloc"(%24) : (memref<2x4x8xf32>) -> ()
    "memref.dealloc"(%25) : (memref<2x4x8xf32>) -> ()
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

