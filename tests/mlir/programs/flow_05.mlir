#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
"builtin.module"() ({
  "func.func"() <{function_type = (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> (), sym_name = "program"}> ({
  ^bb0(%arg13: index, %arg14: i1, %arg15: memref<8x8xf32>, %arg16: memref<8x8xf32>, %arg17: memref<8x8xf32>):
    %38 = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
    %39 = "arith.constant"() <{value = 1 : index}> : () -> index
    %40 = "arith.constant"() <{value = 0 : index}> : () -> index
    %41 = "arith.constant"() <{value = false}> : () -> i1
    %42 = "arith.constant"() <{value = true}> : () -> i1
    %43 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.tanh"(%arg15, %43) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg28: f32, %arg29: f32):
      %66 = "math.tanh"(%arg28) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
      "linalg.yield"(%66) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>) -> ()
    %44:2 = "scf.for"(%40, %arg13, %39, %43, %41) ({
    ^bb0(%arg18: index, %arg19: memref<8x8xf32>, %arg20: i1):
      %60 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
      "linalg.fill"(%38, %60) <{operandSegmentSizes = array<i32: 1, 1>}> ({
      ^bb0(%arg26: f32, %arg27: f32):
        "linalg.yield"(%arg26) : (f32) -> ()
      }) : (f32, memref<8x8xf32>) -> ()
      "linalg.matmul"(%arg19, %arg16, %60) <{indexing_maps = [#map, #map1, #map2], operandSegmentSizes = array<i32: 2, 1>}> ({
      ^bb0(%arg23: f32, %arg24: f32, %arg25: f32):
        %64 = "arith.mulf"(%arg23, %arg24) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
        %65 = "arith.addf"(%arg25, %64) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
        "linalg.yield"(%65) : (f32) -> ()
      }) : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
      %61 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
      "linalg.tanh"(%60, %61) <{operandSegmentSizes = array<i32: 1, 1>}> ({
      ^bb0(%arg21: f32, %arg22: f32):
        %63 = "math.tanh"(%arg21) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
        "linalg.yield"(%63) : (f32) -> ()
      }) : (memref<8x8xf32>, memref<8x8xf32>) -> ()
      %62:6 = "memref.extract_strided_metadata"(%arg19) : (memref<8x8xf32>) -> (memref<f32>, index, index, index, index, index)
      "scf.if"(%arg20) ({
        "memref.dealloc"(%62#0) : (memref<f32>) -> ()
        "scf.yield"() : () -> ()
      }, {
      }) : (i1) -> ()
      "memref.dealloc"(%60) : (memref<8x8xf32>) -> ()
      "scf.yield"(%61, %42) : (memref<8x8xf32>, i1) -> ()
    }) : (index, index, index, memref<8x8xf32>, i1) -> (memref<8x8xf32>, i1)
    "memref.copy"(%44#0, %arg17) : (memref<8x8xf32>, memref<8x8xf32>) -> ()
    %45:6 = "memref.extract_strided_metadata"(%44#0) : (memref<8x8xf32>) -> (memref<f32>, index, index, index, index, index)
    %46 = "memref.alloc"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<2xindex>
    %47 = "memref.alloc"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<2xi1>
    %48 = "memref.alloc"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<0xindex>
    %49 = "memref.extract_aligned_pointer_as_index"(%43) : (memref<8x8xf32>) -> index
    "memref.store"(%49, %46, %40) <{nontemporal = false}> : (index, memref<2xindex>, index) -> ()
    %50 = "memref.extract_aligned_pointer_as_index"(%45#0) : (memref<f32>) -> index
    "memref.store"(%50, %46, %39) <{nontemporal = false}> : (index, memref<2xindex>, index) -> ()
    "memref.store"(%42, %47, %40) <{nontemporal = false}> : (i1, memref<2xi1>, index) -> ()
    "memref.store"(%44#1, %47, %39) <{nontemporal = false}> : (i1, memref<2xi1>, index) -> ()
    %51 = "memref.cast"(%46) : (memref<2xindex>) -> memref<?xindex>
    %52 = "memref.cast"(%47) : (memref<2xi1>) -> memref<?xi1>
    %53 = "memref.cast"(%48) : (memref<0xindex>) -> memref<?xindex>
    %54 = "memref.alloc"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<2xi1>
    %55 = "memref.alloc"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<0xi1>
    %56 = "memref.cast"(%54) : (memref<2xi1>) -> memref<?xi1>
    %57 = "memref.cast"(%55) : (memref<0xi1>) -> memref<?xi1>
    "func.call"(%51, %53, %52, %56, %57) <{callee = @dealloc_helper}> : (memref<?xindex>, memref<?xindex>, memref<?xi1>, memref<?xi1>, memref<?xi1>) -> ()
    %58 = "memref.load"(%54, %40) <{nontemporal = false}> : (memref<2xi1>, index) -> i1
    "scf.if"(%58) ({
      "memref.dealloc"(%43) : (memref<8x8xf32>) -> ()
      "scf.yield"() : () -> ()
    }, {
    }) : (i1) -> ()
    %59 = "memref.load"(%54, %39) <{nontemporal = false}> : (memref<2xi1>, index) -> i1
    "scf.if"(%59) ({
      "memref.dealloc"(%45#0) : (memref<f32>) -> ()
      "scf.yield"() : () -> ()
    }, {
    }) : (i1) -> ()
    "memref.dealloc"(%46) : (memref<2xindex>) -> ()
    "memref.dealloc"(%48) : (memref<0xindex>) -> ()
    "memref.dealloc"(%47) : (memref<2xi1>) -> ()
    "memref.dealloc"(%54) : (memref<2xi1>) -> ()
    "memref.dealloc"(%55) : (memref<0xi1>) -> ()
    "func.return"() : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (memref<*xf32>) -> (), sym_name = "printMemrefF32", sym_visibility = "private"}> ({
  }) {llvm.emit_c_interface} : () -> ()
  "func.func"() <{function_type = () -> (), sym_name = "main"}> ({
    %20 = "arith.constant"() <{value = false}> : () -> i1
    %21 = "arith.constant"() <{value = 0 : index}> : () -> index
    %22 = "arith.constant"() <{value = 1 : index}> : () -> index
    %23 = "arith.constant"() <{value = 3 : index}> : () -> index
    %24 = "arith.constant"() <{value = 4 : index}> : () -> index
    %25 = "arith.constant"() <{value = true}> : () -> i1
    %26 = "arith.constant"() <{value = 6.250000e-02 : f32}> : () -> f32
    %27 = "arith.constant"() <{value = 8 : index}> : () -> index
    %28 = "memref.alloca"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    %29 = "memref.alloca"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    %30 = "memref.alloca"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "scf.for"(%21, %27, %22) ({
    ^bb0(%arg11: index):
      "scf.for"(%21, %27, %22) ({
      ^bb0(%arg12: index):
        %32 = "arith.addi"(%arg11, %22) <{overflowFlags = #arith.overflow<none>}> : (index, index) -> index
        %33 = "arith.addi"(%32, %arg12) <{overflowFlags = #arith.overflow<none>}> : (index, index) -> index
        %34 = "arith.index_cast"(%33) : (index) -> i32
        %35 = "arith.sitofp"(%34) : (i32) -> f32
        %36 = "arith.mulf"(%35, %26) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
        %37 = "arith.mulf"(%36, %36) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
        "memref.store"(%36, %28, %arg11, %arg12) : (f32, memref<8x8xf32>, index, index) -> ()
        "memref.store"(%37, %29, %arg11, %arg12) : (f32, memref<8x8xf32>, index, index) -> ()
        "scf.yield"() : () -> ()
      }) : (index, index, index) -> ()
      "scf.yield"() : () -> ()
    }) : (index, index, index) -> ()
    %31 = "memref.cast"(%30) : (memref<8x8xf32>) -> memref<*xf32>
    "func.call"(%23, %25, %28, %29, %30) <{callee = @program}> : (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    "func.call"(%31) <{callee = @printMemrefF32}> : (memref<*xf32>) -> ()
    "func.call"(%21, %20, %28, %29, %30) <{callee = @program}> : (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    "func.call"(%31) <{callee = @printMemrefF32}> : (memref<*xf32>) -> ()
    "func.call"(%24, %20, %28, %29, %30) <{callee = @program}> : (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    "func.call"(%31) <{callee = @printMemrefF32}> : (memref<*xf32>) -> ()
    "func.return"() : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (memref<?xindex>, memref<?xindex>, memref<?xi1>, memref<?xi1>, memref<?xi1>) -> (), sym_name = "dealloc_helper", sym_visibility = "private"}> ({
  ^bb0(%arg0: memref<?xindex>, %arg1: memref<?xindex>, %arg2: memref<?xi1>, %arg3: memref<?xi1>, %arg4: memref<?xi1>):
    %0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %1 = "arith.constant"() <{value = 1 : index}> : () -> index
    %2 = "arith.constant"() <{value = true}> : () -> i1
    %3 = "arith.constant"() <{value = false}> : () -> i1
    %4 = "memref.dim"(%arg0, %0) : (memref<?xindex>, index) -> index
    %5 = "memref.dim"(%arg1, %0) : (memref<?xindex>, index) -> index
    "scf.for"(%0, %5, %1) ({
    ^bb0(%arg10: index):
      "memref.store"(%3, %arg4, %arg10) <{nontemporal = false}> : (i1, memref<?xi1>, index) -> ()
      "scf.yield"() : () -> ()
    }) : (index, index, index) -> ()
    "scf.for"(%0, %4, %1) ({
    ^bb0(%arg5: index):
      %6 = "memref.load"(%arg0, %arg5) <{nontemporal = false}> : (memref<?xindex>, index) -> index
      %7 = "memref.load"(%arg2, %arg5) <{nontemporal = false}> : (memref<?xi1>, index) -> i1
      %8 = "scf.for"(%0, %5, %1, %2) ({
      ^bb0(%arg8: index, %arg9: i1):
        %14 = "memref.load"(%arg1, %arg8) <{nontemporal = false}> : (memref<?xindex>, index) -> index
        %15 = "arith.cmpi"(%14, %6) <{predicate = 0 : i64}> : (index, index) -> i1
        "scf.if"(%15) ({
          %18 = "memref.load"(%arg4, %arg8) <{nontemporal = false}> : (memref<?xi1>, index) -> i1
          %19 = "arith.ori"(%18, %7) : (i1, i1) -> i1
          "memref.store"(%19, %arg4, %arg8) <{nontemporal = false}> : (i1, memref<?xi1>, index) -> ()
          "scf.yield"() : () -> ()
        }, {
        }) : (i1) -> ()
        %16 = "arith.cmpi"(%14, %6) <{predicate = 1 : i64}> : (index, index) -> i1
        %17 = "arith.andi"(%arg9, %16) : (i1, i1) -> i1
        "scf.yield"(%17) : (i1) -> ()
      }) : (index, index, index, i1) -> i1
      %9 = "scf.for"(%0, %arg5, %1, %8) ({
      ^bb0(%arg6: index, %arg7: i1):
        %11 = "memref.load"(%arg0, %arg6) <{nontemporal = false}> : (memref<?xindex>, index) -> index
        %12 = "arith.cmpi"(%11, %6) <{predicate = 1 : i64}> : (index, index) -> i1
        %13 = "arith.andi"(%arg7, %12) : (i1, i1) -> i1
        "scf.yield"(%13) : (i1) -> ()
      }) : (index, index, index, i1) -> i1
      %10 = "arith.andi"(%9, %7) : (i1, i1) -> i1
      "memref.store"(%10, %arg3, %arg5) <{nontemporal = false}> : (i1, memref<?xi1>, index) -> ()
      "scf.yield"() : () -> ()
    }) : (index, index, index) -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

