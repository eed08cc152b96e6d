#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
"builtin.module"() ({
  "func.func"() <{function_type = (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> (), sym_name = "program"}> ({
  ^bb0(%arg2: index, %arg3: i1, %arg4: memref<8x8xf32>, %arg5: memref<8x8xf32>, %arg6: memref<8x8xf32>):
    %18 = "arith.constant"() <{value = 0.00999999977 : f32}> : () -> f32
    %19 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
    %20 = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
    %21 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.abs"(%arg5, %21) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg70: f32, %arg71: f32):
      %62 = "math.absf"(%arg70) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
      "linalg.yield"(%62) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>) -> ()
    %22 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.tanh"(%arg5, %22) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg68: f32, %arg69: f32):
      %61 = "math.tanh"(%arg68) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
      "linalg.yield"(%61) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>) -> ()
    %23 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.fill"(%20, %23) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg66: f32, %arg67: f32):
      "linalg.yield"(%arg66) : (f32) -> ()
    }) : (f32, memref<8x8xf32>) -> ()
    "linalg.matmul"(%arg4, %21, %23) <{indexing_maps = [#map, #map1, #map2], operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg63: f32, %arg64: f32, %arg65: f32):
      %59 = "arith.mulf"(%arg63, %arg64) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %60 = "arith.addf"(%arg65, %59) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%60) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    %24 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.tanh"(%23, %24) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg61: f32, %arg62: f32):
      %58 = "math.tanh"(%arg61) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
      "linalg.yield"(%58) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>) -> ()
    %25 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.fill"(%20, %25) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg59: f32, %arg60: f32):
      "linalg.yield"(%arg59) : (f32) -> ()
    }) : (f32, memref<8x8xf32>) -> ()
    "linalg.matmul"(%24, %22, %25) <{indexing_maps = [#map, #map1, #map2], operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg56: f32, %arg57: f32, %arg58: f32):
      %56 = "arith.mulf"(%arg56, %arg57) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %57 = "arith.addf"(%arg58, %56) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%57) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    %26 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.sub"(%25, %arg4, %26) <{operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg53: f32, %arg54: f32, %arg55: f32):
      %55 = "arith.subf"(%arg53, %arg54) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%55) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    %27 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.transpose"(%24, %27) <{permutation = array<i64: 1, 0>}> ({
    ^bb0(%arg51: f32, %arg52: f32):
      "linalg.yield"(%arg51) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>) -> ()
    %28 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.fill"(%20, %28) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg49: f32, %arg50: f32):
      "linalg.yield"(%arg49) : (f32) -> ()
    }) : (f32, memref<8x8xf32>) -> ()
    "linalg.matmul"(%27, %26, %28) <{indexing_maps = [#map, #map1, #map2], operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg46: f32, %arg47: f32, %arg48: f32):
      %53 = "arith.mulf"(%arg46, %arg47) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %54 = "arith.addf"(%arg48, %53) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%54) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    %29 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.fill"(%19, %29) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg44: f32, %arg45: f32):
      "linalg.yield"(%arg44) : (f32) -> ()
    }) : (f32, memref<8x8xf32>) -> ()
    %30 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.mul"(%24, %24, %30) <{operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg41: f32, %arg42: f32, %arg43: f32):
      %52 = "arith.mulf"(%arg41, %arg42) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%52) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    %31 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.sub"(%29, %30, %31) <{operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg38: f32, %arg39: f32, %arg40: f32):
      %51 = "arith.subf"(%arg38, %arg39) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%51) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    %32 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.transpose"(%arg4, %32) <{permutation = array<i64: 1, 0>}> ({
    ^bb0(%arg36: f32, %arg37: f32):
      "linalg.yield"(%arg36) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>) -> ()
    %33 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.transpose"(%22, %33) <{permutation = array<i64: 1, 0>}> ({
    ^bb0(%arg34: f32, %arg35: f32):
      "linalg.yield"(%arg34) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>) -> ()
    %34 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.fill"(%20, %34) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg32: f32, %arg33: f32):
      "linalg.yield"(%arg32) : (f32) -> ()
    }) : (f32, memref<8x8xf32>) -> ()
    "linalg.matmul"(%26, %33, %34) <{indexing_maps = [#map, #map1, #map2], operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg29: f32, %arg30: f32, %arg31: f32):
      %49 = "arith.mulf"(%arg29, %arg30) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %50 = "arith.addf"(%arg31, %49) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%50) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    %35 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.mul"(%31, %34, %35) <{operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg26: f32, %arg27: f32, %arg28: f32):
      %48 = "arith.mulf"(%arg26, %arg27) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%48) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    %36 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.fill"(%20, %36) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg24: f32, %arg25: f32):
      "linalg.yield"(%arg24) : (f32) -> ()
    }) : (f32, memref<8x8xf32>) -> ()
    "linalg.matmul"(%32, %35, %36) <{indexing_maps = [#map, #map1, #map2], operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg21: f32, %arg22: f32, %arg23: f32):
      %46 = "arith.mulf"(%arg21, %arg22) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      %47 = "arith.addf"(%arg23, %46) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%47) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    %37 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.fill"(%18, %37) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg19: f32, %arg20: f32):
      "linalg.yield"(%arg19) : (f32) -> ()
    }) : (f32, memref<8x8xf32>) -> ()
    %38 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.mul"(%36, %37, %38) <{operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg16: f32, %arg17: f32, %arg18: f32):
      %45 = "arith.mulf"(%arg16, %arg17) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%45) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    %39 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.sub"(%21, %38, %39) <{operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg13: f32, %arg14: f32, %arg15: f32):
      %44 = "arith.subf"(%arg13, %arg14) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%44) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    %40 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.mul"(%28, %37, %40) <{operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg10: f32, %arg11: f32, %arg12: f32):
      %43 = "arith.mulf"(%arg10, %arg11) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%43) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    %41 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.sub"(%39, %40, %41) <{operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg7: f32, %arg8: f32, %arg9: f32):
      %42 = "arith.subf"(%arg7, %arg8) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%42) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    "memref.copy"(%41, %arg6) : (memref<8x8xf32>, memref<8x8xf32>) -> ()
    "memref.dealloc"(%21) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%22) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%23) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%24) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%25) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%26) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%27) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%28) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%29) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%30) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%31) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%32) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%33) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%34) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%35) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%36) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%37) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%38) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%39) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%40) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%41) : (memref<8x8xf32>) -> ()
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

