"builtin.module"() ({
  "func.func"() <{function_type = (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> (), sym_name = "program"}> ({
  ^bb0(%arg0: index, %arg1: i1, %arg2: memref<8x8xf32>, %arg3: memref<8x8xf32>, %arg4: memref<8x8xf32>):
    %24 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.exp"(%arg2, %24) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg15: f32, %arg16: f32):
      %37 = "math.exp"(%arg15) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
      "linalg.yield"(%37) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>) -> ()
    %25 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.tanh"(%arg3, %25) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg13: f32, %arg14: f32):
      %36 = "math.tanh"(%arg13) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
      "linalg.yield"(%36) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>) -> ()
    "cf.cond_br"(%arg1)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> ()
  ^bb1:  // pred: ^bb0
    %26 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.negf"(%24, %26) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%arg11: f32, %arg12: f32):
      %35 = "arith.negf"(%arg11) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
      "linalg.yield"(%35) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>) -> ()
    %27 = "memref.cast"(%26) : (memref<8x8xf32>) -> memref<8x8xf32, strided<[?, ?], offset: ?>>
    "cf.br"(%27)[^bb3] : (memref<8x8xf32, strided<[?, ?], offset: ?>>) -> ()
  ^bb2:  // pred: ^bb0
    %28 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.add"(%24, %25, %28) <{operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg8: f32, %arg9: f32, %arg10: f32):
      %34 = "arith.addf"(%arg8, %arg9) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%34) : (f32) -> ()
    }) : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    %29 = "memref.cast"(%28) : (memref<8x8xf32>) -> memref<8x8xf32, strided<[?, ?], offset: ?>>
    "cf.br"(%29)[^bb3] : (memref<8x8xf32, strided<[?, ?], offset: ?>>) -> ()
  ^bb3(%30: memref<8x8xf32, strided<[?, ?], offset: ?>>):  // 2 preds: ^bb1, ^bb2
    %31 = "memref.alloc"() <{alignment = 64 : i64, operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<8x8xf32>
    "linalg.add"(%30, %24, %31) <{operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%arg5: f32, %arg6: f32, %arg7: f32):
      %33 = "arith.addf"(%arg5, %arg6) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "linalg.yield"(%33) : (f32) -> ()
    }) : (memref<8x8xf32, strided<[?, ?], offset: ?>>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    "memref.copy"(%31, %arg4) : (memref<8x8xf32>, memref<8x8xf32>) -> ()
    %32:6 = "memref.extract_strided_metadata"(%30) : (memref<8x8xf32, strided<[?, ?], offset: ?>>) -> (memref<f32>, index, index, index, index, index)
    "memref.dealloc"(%24) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%25) : (memref<8x8xf32>) -> ()
    "memref.dealloc"(%32#0) : (memref<f32>) -> ()
    "memref.dealloc"(%31) : (memref<8x8xf32>) -> ()
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
    "cf.br"(%1)[^bb1] : (index) -> ()
  ^bb1(%11: index):  // 2 preds: ^bb0, ^bb4
    %12 = "arith.cmpi"(%11, %7) <{predicate = 2 : i64}> : (index, index) -> i1
    "cf.cond_br"(%12, %1)[^bb2, ^bb5] <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (i1, index) -> ()
  ^bb2(%13: index):  // 2 preds: ^bb1, ^bb3
    %14 = "arith.cmpi"(%13, %7) <{predicate = 2 : i64}> : (index, index) -> i1
    "cf.cond_br"(%14)[^bb3, ^bb4] <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> ()
  ^bb3:  // pred: ^bb2
    %15 = "arith.addi"(%11, %2) <{overflowFlags = #arith.overflow<none>}> : (index, index) -> index
    %16 = "arith.addi"(%15, %13) <{overflowFlags = #arith.overflow<none>}> : (index, index) -> index
    %17 = "arith.index_cast"(%16) : (index) -> i32
    %18 = "arith.sitofp"(%17) : (i32) -> f32
    %19 = "arith.mulf"(%18, %6) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    %20 = "arith.mulf"(%19, %19) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    "memref.store"(%19, %8, %11, %13) : (f32, memref<8x8xf32>, index, index) -> ()
    "memref.store"(%20, %9, %11, %13) : (f32, memref<8x8xf32>, index, index) -> ()
    %21 = "arith.addi"(%13, %2) <{overflowFlags = #arith.overflow<none>}> : (index, index) -> index
    "cf.br"(%21)[^bb2] : (index) -> ()
  ^bb4:  // pred: ^bb2
    %22 = "arith.addi"(%11, %2) <{overflowFlags = #arith.overflow<none>}> : (index, index) -> index
    "cf.br"(%22)[^bb1] : (index) -> ()
  ^bb5:  // pred: ^bb1
    %23 = "memref.cast"(%10) : (memref<8x8xf32>) -> memref<*xf32>
    "func.call"(%3, %5, %8, %9, %10) <{callee = @program}> : (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    "func.call"(%23) <{callee = @printMemrefF32}> : (memref<*xf32>) -> ()
    "func.call"(%1, %0, %8, %9, %10) <{callee = @program}> : (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    "func.call"(%23) <{callee = @printMemrefF32}> : (memref<*xf32>) -> ()
    "func.call"(%4, %0, %8, %9, %10) <{callee = @program}> : (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    "func.call"(%23) <{callee = @printMemrefF32}> : (memref<*xf32>) -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

