module @jit_adam attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x64xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<3x64x16xf32> {tf.aliasing_output = 1 : i32}, %arg2: tensor<3x16x16xf32> {tf.aliasing_output = 2 : i32}, %arg3: tensor<3x16x48xf32> {tf.aliasing_output = 3 : i32}, %arg4: tensor<3x16xf32> {tf.aliasing_output = 4 : i32}, %arg5: tensor<3x16xf32> {tf.aliasing_output = 5 : i32}, %arg6: tensor<3x16xf32> {tf.aliasing_output = 6 : i32}, %arg7: tensor<3x16xf32> {tf.aliasing_output = 7 : i32}, %arg8: tensor<3x16x64xf32> {tf.aliasing_output = 8 : i32}, %arg9: tensor<16x16xf32> {tf.aliasing_output = 9 : i32}, %arg10: tensor<23x16xf32> {tf.aliasing_output = 10 : i32}, %arg11: tensor<3x64xf32> {tf.aliasing_output = 11 : i32}, %arg12: tensor<3x64x16xf32> {tf.aliasing_output = 12 : i32}, %arg13: tensor<3x16x16xf32> {tf.aliasing_output = 13 : i32}, %arg14: tensor<3x16x48xf32> {tf.aliasing_output = 14 : i32}, %arg15: tensor<3x16xf32> {tf.aliasing_output = 15 : i32}, %arg16: tensor<3x16xf32> {tf.aliasing_output = 16 : i32}, %arg17: tensor<3x16xf32> {tf.aliasing_output = 17 : i32}, %arg18: tensor<3x16xf32> {tf.aliasing_output = 18 : i32}, %arg19: tensor<3x16x64xf32> {tf.aliasing_output = 19 : i32}, %arg20: tensor<16x16xf32> {tf.aliasing_output = 20 : i32}, %arg21: tensor<23x16xf32> {tf.aliasing_output = 21 : i32}, %arg22: tensor<3x64xf32> {tf.aliasing_output = 22 : i32}, %arg23: tensor<3x64x16xf32> {tf.aliasing_output = 23 : i32}, %arg24: tensor<3x16x16xf32> {tf.aliasing_output = 24 : i32}, %arg25: tensor<3x16x48xf32> {tf.aliasing_output = 25 : i32}, %arg26: tensor<3x16xf32> {tf.aliasing_output = 26 : i32}, %arg27: tensor<3x16xf32> {tf.aliasing_output = 27 : i32}, %arg28: tensor<3x16xf32> {tf.aliasing_output = 28 : i32}, %arg29: tensor<3x16xf32> {tf.aliasing_output = 29 : i32}, %arg30: tensor<3x16x64xf32> {tf.aliasing_output = 30 : i32}, %arg31: tensor<16x16xf32> {tf.aliasing_output = 31 : i32}, %arg32: tensor<23x16xf32> {tf.aliasing_output = 32 : i32}, %arg33: tensor<f32> {tf.aliasing_output = 33 : i32}, %arg34: tensor<2x8xi32>, %arg35: tensor<2x8xi32>) -> (tensor<3x64xf32> {jax.result_info = "result[0]['layers']['bias']"}, tensor<3x64x16xf32> {jax.result_info = "result[0]['layers']['down']"}, tensor<3x16x16xf32> {jax.result_info = "result[0]['layers']['out']"}, tensor<3x16x48xf32> {jax.result_info = "result[0]['layers']['qkv']"}, tensor<3x16xf32> {jax.result_info = "result[0]['layers']['scale1']"}, tensor<3x16xf32> {jax.result_info = "result[0]['layers']['scale2']"}, tensor<3x16xf32> {jax.result_info = "result[0]['layers']['shift1']"}, tensor<3x16xf32> {jax.result_info = "result[0]['layers']['shift2']"}, tensor<3x16x64xf32> {jax.result_info = "result[0]['layers']['up']"}, tensor<16x16xf32> {jax.result_info = "result[0]['places']"}, tensor<23x16xf32> {jax.result_info = "result[0]['words']"}, tensor<3x64xf32> {jax.result_info = "result[1]['layers']['bias']"}, tensor<3x64x16xf32> {jax.result_info = "result[1]['layers']['down']"}, tensor<3x16x16xf32> {jax.result_info = "result[1]['layers']['out']"}, tensor<3x16x48xf32> {jax.result_info = "result[1]['layers']['qkv']"}, tensor<3x16xf32> {jax.result_info = "result[1]['layers']['scale1']"}, tensor<3x16xf32> {jax.result_info = "result[1]['layers']['scale2']"}, tensor<3x16xf32> {jax.result_info = "result[1]['layers']['shift1']"}, tensor<3x16xf32> {jax.result_info = "result[1]['layers']['shift2']"}, tensor<3x16x64xf32> {jax.result_info = "result[1]['layers']['up']"}, tensor<16x16xf32> {jax.result_info = "result[1]['places']"}, tensor<23x16xf32> {jax.result_info = "result[1]['words']"}, tensor<3x64xf32> {jax.result_info = "result[2]['layers']['bias']"}, tensor<3x64x16xf32> {jax.result_info = "result[2]['layers']['down']"}, tensor<3x16x16xf32> {jax.result_info = "result[2]['layers']['out']"}, tensor<3x16x48xf32> {jax.result_info = "result[2]['layers']['qkv']"}, tensor<3x16xf32> {jax.result_info = "result[2]['layers']['scale1']"}, tensor<3x16xf32> {jax.result_info = "result[2]['layers']['scale2']"}, tensor<3x16xf32> {jax.result_info = "result[2]['layers']['shift1']"}, tensor<3x16xf32> {jax.result_info = "result[2]['layers']['shift2']"}, tensor<3x16x64xf32> {jax.result_info = "result[2]['layers']['up']"}, tensor<16x16xf32> {jax.result_info = "result[2]['places']"}, tensor<23x16xf32> {jax.result_info = "result[2]['words']"}, tensor<f32> {jax.result_info = "result[3]"}, tensor<f32> {jax.result_info = "result[4]"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<2x8xi32>
    %1 = stablehlo.compare LT, %arg34, %0, SIGNED : (tensor<2x8xi32>, tensor<2x8xi32>) -> tensor<2x8xi1>
    %c_0 = stablehlo.constant dense<23> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<2x8xi32>
    %3 = stablehlo.add %arg34, %2 : tensor<2x8xi32>
    %4 = stablehlo.select %1, %3, %arg34 : tensor<2x8xi1>, tensor<2x8xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<2x8xi32>) -> tensor<2x8x1xi32>
    %6 = "stablehlo.gather"(%arg10, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 16>}> : (tensor<23x16xf32>, tensor<2x8x1xi32>) -> tensor<2x8x16xf32>
    %7 = stablehlo.slice %arg9 [0:8, 0:16] : (tensor<16x16xf32>) -> tensor<8x16xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [1, 2] : (tensor<8x16xf32>) -> tensor<1x8x16xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<1x8x16xf32>) -> tensor<2x8x16xf32>
    %10 = stablehlo.add %6, %9 : tensor<2x8x16xf32>
    %c_1 = stablehlo.constant dense<true> : tensor<i1>
    %11 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %12 = call @tril(%11) : (tensor<8x8xi1>) -> tensor<8x8xi1>
    %cst = stablehlo.constant dense<-1.000000e+30> : tensor<f32>
    %13:2 = call @_where(%12, %cst) : (tensor<8x8xi1>, tensor<f32>) -> (tensor<2x2x8x8xi1>, tensor<2x2x8x8xf32>)
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<3x2x8x16xf32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %15:14 = stablehlo.while(%iterArg = %arg0, %iterArg_133 = %arg1, %iterArg_134 = %arg2, %iterArg_135 = %arg3, %iterArg_136 = %arg4, %iterArg_137 = %arg5, %iterArg_138 = %arg6, %iterArg_139 = %arg7, %iterArg_140 = %arg8, %iterArg_141 = %13#0, %iterArg_142 = %13#1, %iterArg_143 = %c_3, %iterArg_144 = %10, %iterArg_145 = %14) : tensor<3x64xf32>, tensor<3x64x16xf32>, tensor<3x16x16xf32>, tensor<3x16x48xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x64xf32>, tensor<2x2x8x8xi1>, tensor<2x2x8x8xf32>, tensor<i32>, tensor<2x8x16xf32>, tensor<3x2x8x16xf32>
    cond {
      %c_146 = stablehlo.constant dense<3> : tensor<i32>
      %337 = stablehlo.compare LT, %iterArg_143, %c_146, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %337 : tensor<i1>
    } do {
      %337 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_143) : (tensor<3x64xf32>, tensor<i32>) -> tensor<64xf32>
      %338 = func.call @dynamic_index_in_dim_0(%iterArg_133, %iterArg_143) : (tensor<3x64x16xf32>, tensor<i32>) -> tensor<64x16xf32>
      %339 = func.call @dynamic_index_in_dim_1(%iterArg_134, %iterArg_143) : (tensor<3x16x16xf32>, tensor<i32>) -> tensor<16x16xf32>
      %340 = func.call @dynamic_index_in_dim_2(%iterArg_135, %iterArg_143) : (tensor<3x16x48xf32>, tensor<i32>) -> tensor<16x48xf32>
      %341 = func.call @dynamic_index_in_dim_3(%iterArg_136, %iterArg_143) : (tensor<3x16xf32>, tensor<i32>) -> tensor<16xf32>
      %342 = func.call @dynamic_index_in_dim_3(%iterArg_137, %iterArg_143) : (tensor<3x16xf32>, tensor<i32>) -> tensor<16xf32>
      %343 = func.call @dynamic_index_in_dim_3(%iterArg_138, %iterArg_143) : (tensor<3x16xf32>, tensor<i32>) -> tensor<16xf32>
      %344 = func.call @dynamic_index_in_dim_3(%iterArg_139, %iterArg_143) : (tensor<3x16xf32>, tensor<i32>) -> tensor<16xf32>
      %345 = func.call @dynamic_index_in_dim_4(%iterArg_140, %iterArg_143) : (tensor<3x16x64xf32>, tensor<i32>) -> tensor<16x64xf32>
      %346:2 = func.call @closed_call(%iterArg_141, %iterArg_142, %iterArg_144, %337, %338, %339, %340, %341, %342, %343, %344, %345) : (tensor<2x2x8x8xi1>, tensor<2x2x8x8xf32>, tensor<2x8x16xf32>, tensor<64xf32>, tensor<64x16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xf32>) -> (tensor<2x8x16xf32>, tensor<2x8x16xf32>)
      %347 = func.call @dynamic_update_index_in_dim(%iterArg_145, %346#1, %iterArg_143) : (tensor<3x2x8x16xf32>, tensor<2x8x16xf32>, tensor<i32>) -> tensor<3x2x8x16xf32>
      %c_146 = stablehlo.constant dense<1> : tensor<i32>
      %348 = stablehlo.add %iterArg_143, %c_146 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_133, %iterArg_134, %iterArg_135, %iterArg_136, %iterArg_137, %iterArg_138, %iterArg_139, %iterArg_140, %iterArg_141, %iterArg_142, %348, %346#0, %347 : tensor<3x64xf32>, tensor<3x64x16xf32>, tensor<3x16x16xf32>, tensor<3x16x48xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x64xf32>, tensor<2x2x8x8xi1>, tensor<2x2x8x8xf32>, tensor<i32>, tensor<2x8x16xf32>, tensor<3x2x8x16xf32>
    }
    %16 = stablehlo.transpose %arg10, dims = [1, 0] : (tensor<23x16xf32>) -> tensor<16x23xf32>
    %17 = stablehlo.dot_general %15#12, %16, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x8x16xf32>, tensor<16x23xf32>) -> tensor<2x8x23xf32>
    %18:3 = call @log_softmax(%17) : (tensor<2x8x23xf32>) -> (tensor<2x8x23xf32>, tensor<2x8x23xf32>, tensor<2x8x1xf32>)
    %19 = stablehlo.broadcast_in_dim %arg35, dims = [0, 1] : (tensor<2x8xi32>) -> tensor<2x8x1xi32>
    %20:2 = call @take_along_axis(%18#0, %19) : (tensor<2x8x23xf32>, tensor<2x8x1xi32>) -> (tensor<2x8x1xf32>, tensor<2x8x1x1xi32>)
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %21 = stablehlo.reduce(%20#0 init: %cst_4) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x8x1xf32>, tensor<f32>) -> tensor<f32>
    %cst_5 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %22 = stablehlo.divide %21, %cst_5 : tensor<f32>
    %23 = stablehlo.negate %22 : tensor<f32>
    %cst_6 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %24 = stablehlo.negate %cst_6 : tensor<f32>
    %cst_7 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %25 = stablehlo.divide %24, %cst_7 : tensor<f32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %27 = call @take_along_axis_6(%20#1, %26) : (tensor<2x8x1x1xi32>, tensor<2x8x1xf32>) -> tensor<2x8x23xf32>
    %28 = call @log_softmax_7(%18#1, %18#2, %27) : (tensor<2x8x23xf32>, tensor<2x8x1xf32>, tensor<2x8x23xf32>) -> tensor<2x8x23xf32>
    %29 = stablehlo.dot_general %28, %15#12, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x8x23xf32>, tensor<2x8x16xf32>) -> tensor<23x16xf32>
    %30 = stablehlo.transpose %29, dims = [1, 0] : (tensor<23x16xf32>) -> tensor<16x23xf32>
    %31 = stablehlo.dot_general %28, %16, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x8x23xf32>, tensor<16x23xf32>) -> tensor<2x8x16xf32>
    %32 = stablehlo.transpose %30, dims = [1, 0] : (tensor<16x23xf32>) -> tensor<23x16xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %33 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<3x64xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %34 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %35 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %36 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %37 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %38 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %39 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %40 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %cst_16 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %41 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %c_17 = stablehlo.constant dense<0> : tensor<i32>
    %42:21 = stablehlo.while(%iterArg = %15#13, %iterArg_133 = %arg0, %iterArg_134 = %arg1, %iterArg_135 = %arg2, %iterArg_136 = %arg3, %iterArg_137 = %arg4, %iterArg_138 = %arg5, %iterArg_139 = %arg6, %iterArg_140 = %arg7, %iterArg_141 = %arg8, %iterArg_142 = %c_17, %iterArg_143 = %31, %iterArg_144 = %33, %iterArg_145 = %34, %iterArg_146 = %35, %iterArg_147 = %36, %iterArg_148 = %37, %iterArg_149 = %38, %iterArg_150 = %39, %iterArg_151 = %40, %iterArg_152 = %41) : tensor<3x2x8x16xf32>, tensor<3x64xf32>, tensor<3x64x16xf32>, tensor<3x16x16xf32>, tensor<3x16x48xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x64xf32>, tensor<i32>, tensor<2x8x16xf32>, tensor<3x64xf32>, tensor<3x64x16xf32>, tensor<3x16x16xf32>, tensor<3x16x48xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x64xf32>
    cond {
      %c_153 = stablehlo.constant dense<3> : tensor<i32>
      %337 = stablehlo.compare LT, %iterArg_142, %c_153, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %337 : tensor<i1>
    } do {
      %c_153 = stablehlo.constant dense<3> : tensor<i32>
      %337 = stablehlo.subtract %c_153, %iterArg_142 : tensor<i32>
      %c_154 = stablehlo.constant dense<1> : tensor<i32>
      %338 = stablehlo.subtract %337, %c_154 : tensor<i32>
      %339 = func.call @dynamic_index_in_dim_8(%iterArg, %338) : (tensor<3x2x8x16xf32>, tensor<i32>) -> tensor<2x8x16xf32>
      %340 = func.call @dynamic_index_in_dim(%iterArg_133, %338) : (tensor<3x64xf32>, tensor<i32>) -> tensor<64xf32>
      %341 = func.call @dynamic_index_in_dim_0(%iterArg_134, %338) : (tensor<3x64x16xf32>, tensor<i32>) -> tensor<64x16xf32>
      %342 = func.call @dynamic_index_in_dim_1(%iterArg_135, %338) : (tensor<3x16x16xf32>, tensor<i32>) -> tensor<16x16xf32>
      %343 = func.call @dynamic_index_in_dim_2(%iterArg_136, %338) : (tensor<3x16x48xf32>, tensor<i32>) -> tensor<16x48xf32>
      %344 = func.call @dynamic_index_in_dim_3(%iterArg_137, %338) : (tensor<3x16xf32>, tensor<i32>) -> tensor<16xf32>
      %345 = func.call @dynamic_index_in_dim_3(%iterArg_138, %338) : (tensor<3x16xf32>, tensor<i32>) -> tensor<16xf32>
      %346 = func.call @dynamic_index_in_dim_3(%iterArg_139, %338) : (tensor<3x16xf32>, tensor<i32>) -> tensor<16xf32>
      %347 = func.call @dynamic_index_in_dim_3(%iterArg_140, %338) : (tensor<3x16xf32>, tensor<i32>) -> tensor<16xf32>
      %348 = func.call @dynamic_index_in_dim_4(%iterArg_141, %338) : (tensor<3x16x64xf32>, tensor<i32>) -> tensor<16x64xf32>
      %349:10 = func.call @closed_call_9(%iterArg_143, %339, %340, %341, %342, %343, %344, %345, %346, %347, %348) : (tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<64xf32>, tensor<64x16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xf32>) -> (tensor<2x8x16xf32>, tensor<64xf32>, tensor<64x16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xf32>)
      %350 = func.call @dynamic_update_index_in_dim_13(%iterArg_144, %349#1, %338) : (tensor<3x64xf32>, tensor<64xf32>, tensor<i32>) -> tensor<3x64xf32>
      %351 = func.call @dynamic_update_index_in_dim_14(%iterArg_145, %349#2, %338) : (tensor<3x64x16xf32>, tensor<64x16xf32>, tensor<i32>) -> tensor<3x64x16xf32>
      %352 = func.call @dynamic_update_index_in_dim_15(%iterArg_146, %349#3, %338) : (tensor<3x16x16xf32>, tensor<16x16xf32>, tensor<i32>) -> tensor<3x16x16xf32>
      %353 = func.call @dynamic_update_index_in_dim_16(%iterArg_147, %349#4, %338) : (tensor<3x16x48xf32>, tensor<16x48xf32>, tensor<i32>) -> tensor<3x16x48xf32>
      %354 = func.call @dynamic_update_index_in_dim_17(%iterArg_148, %349#5, %338) : (tensor<3x16xf32>, tensor<16xf32>, tensor<i32>) -> tensor<3x16xf32>
      %355 = func.call @dynamic_update_index_in_dim_17(%iterArg_149, %349#6, %338) : (tensor<3x16xf32>, tensor<16xf32>, tensor<i32>) -> tensor<3x16xf32>
      %356 = func.call @dynamic_update_index_in_dim_17(%iterArg_150, %349#7, %338) : (tensor<3x16xf32>, tensor<16xf32>, tensor<i32>) -> tensor<3x16xf32>
      %357 = func.call @dynamic_update_index_in_dim_17(%iterArg_151, %349#8, %338) : (tensor<3x16xf32>, tensor<16xf32>, tensor<i32>) -> tensor<3x16xf32>
      %358 = func.call @dynamic_update_index_in_dim_18(%iterArg_152, %349#9, %338) : (tensor<3x16x64xf32>, tensor<16x64xf32>, tensor<i32>) -> tensor<3x16x64xf32>
      %c_155 = stablehlo.constant dense<1> : tensor<i32>
      %359 = stablehlo.add %iterArg_142, %c_155 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_133, %iterArg_134, %iterArg_135, %iterArg_136, %iterArg_137, %iterArg_138, %iterArg_139, %iterArg_140, %iterArg_141, %359, %349#0, %350, %351, %352, %353, %354, %355, %356, %357, %358 : tensor<3x2x8x16xf32>, tensor<3x64xf32>, tensor<3x64x16xf32>, tensor<3x16x16xf32>, tensor<3x16x48xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x64xf32>, tensor<i32>, tensor<2x8x16xf32>, tensor<3x64xf32>, tensor<3x64x16xf32>, tensor<3x16x16xf32>, tensor<3x16x48xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x64xf32>
    }
    %cst_18 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %43 = stablehlo.reduce(%42#11 init: %cst_18) applies stablehlo.add across dimensions = [0] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<8x16xf32>
    %44 = stablehlo.reshape %43 : (tensor<8x16xf32>) -> tensor<1x8x16xf32>
    %cst_19 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %45 = stablehlo.reduce(%44 init: %cst_19) applies stablehlo.add across dimensions = [0] : (tensor<1x8x16xf32>, tensor<f32>) -> tensor<8x16xf32>
    %cst_20 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %46 = stablehlo.pad %45, %cst_20, low = [0, 0], high = [8, 0], interior = [0, 0] : (tensor<8x16xf32>, tensor<f32>) -> tensor<16x16xf32>
    %cst_21 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %47 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<23x16xf32>
    %48 = "stablehlo.scatter"(%47, %5, %42#11) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg36: tensor<f32>, %arg37: tensor<f32>):
      %337 = stablehlo.add %arg36, %arg37 : tensor<f32>
      stablehlo.return %337 : tensor<f32>
    }) : (tensor<23x16xf32>, tensor<2x8x1xi32>, tensor<2x8x16xf32>) -> tensor<23x16xf32>
    %49 = stablehlo.add %32, %48 : tensor<23x16xf32>
    %cst_22 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %50 = stablehlo.add %arg33, %cst_22 : tensor<f32>
    %cst_23 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %51 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<3x64xf32>
    %52 = stablehlo.multiply %51, %arg11 : tensor<3x64xf32>
    %cst_24 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %53 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<3x64xf32>
    %54 = stablehlo.multiply %53, %42#12 : tensor<3x64xf32>
    %55 = stablehlo.add %52, %54 : tensor<3x64xf32>
    %cst_25 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %56 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %57 = stablehlo.multiply %56, %arg12 : tensor<3x64x16xf32>
    %cst_26 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %58 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %59 = stablehlo.multiply %58, %42#13 : tensor<3x64x16xf32>
    %60 = stablehlo.add %57, %59 : tensor<3x64x16xf32>
    %cst_27 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %61 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %62 = stablehlo.multiply %61, %arg13 : tensor<3x16x16xf32>
    %cst_28 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %63 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %64 = stablehlo.multiply %63, %42#14 : tensor<3x16x16xf32>
    %65 = stablehlo.add %62, %64 : tensor<3x16x16xf32>
    %cst_29 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %66 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %67 = stablehlo.multiply %66, %arg14 : tensor<3x16x48xf32>
    %cst_30 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %68 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %69 = stablehlo.multiply %68, %42#15 : tensor<3x16x48xf32>
    %70 = stablehlo.add %67, %69 : tensor<3x16x48xf32>
    %cst_31 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %71 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %72 = stablehlo.multiply %71, %arg15 : tensor<3x16xf32>
    %cst_32 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %73 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %74 = stablehlo.multiply %73, %42#16 : tensor<3x16xf32>
    %75 = stablehlo.add %72, %74 : tensor<3x16xf32>
    %cst_33 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %76 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %77 = stablehlo.multiply %76, %arg16 : tensor<3x16xf32>
    %cst_34 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %78 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %79 = stablehlo.multiply %78, %42#17 : tensor<3x16xf32>
    %80 = stablehlo.add %77, %79 : tensor<3x16xf32>
    %cst_35 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %81 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %82 = stablehlo.multiply %81, %arg17 : tensor<3x16xf32>
    %cst_36 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %83 = stablehlo.broadcast_in_dim %cst_36, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %84 = stablehlo.multiply %83, %42#18 : tensor<3x16xf32>
    %85 = stablehlo.add %82, %84 : tensor<3x16xf32>
    %cst_37 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %86 = stablehlo.broadcast_in_dim %cst_37, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %87 = stablehlo.multiply %86, %arg18 : tensor<3x16xf32>
    %cst_38 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %88 = stablehlo.broadcast_in_dim %cst_38, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %89 = stablehlo.multiply %88, %42#19 : tensor<3x16xf32>
    %90 = stablehlo.add %87, %89 : tensor<3x16xf32>
    %cst_39 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %91 = stablehlo.broadcast_in_dim %cst_39, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %92 = stablehlo.multiply %91, %arg19 : tensor<3x16x64xf32>
    %cst_40 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %93 = stablehlo.broadcast_in_dim %cst_40, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %94 = stablehlo.multiply %93, %42#20 : tensor<3x16x64xf32>
    %95 = stablehlo.add %92, %94 : tensor<3x16x64xf32>
    %cst_41 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %96 = stablehlo.broadcast_in_dim %cst_41, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %97 = stablehlo.multiply %96, %arg20 : tensor<16x16xf32>
    %cst_42 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %98 = stablehlo.broadcast_in_dim %cst_42, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %99 = stablehlo.multiply %98, %46 : tensor<16x16xf32>
    %100 = stablehlo.add %97, %99 : tensor<16x16xf32>
    %cst_43 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %101 = stablehlo.broadcast_in_dim %cst_43, dims = [] : (tensor<f32>) -> tensor<23x16xf32>
    %102 = stablehlo.multiply %101, %arg21 : tensor<23x16xf32>
    %cst_44 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %103 = stablehlo.broadcast_in_dim %cst_44, dims = [] : (tensor<f32>) -> tensor<23x16xf32>
    %104 = stablehlo.multiply %103, %49 : tensor<23x16xf32>
    %105 = stablehlo.add %102, %104 : tensor<23x16xf32>
    %cst_45 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %106 = stablehlo.broadcast_in_dim %cst_45, dims = [] : (tensor<f32>) -> tensor<3x64xf32>
    %107 = stablehlo.multiply %106, %arg22 : tensor<3x64xf32>
    %cst_46 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %108 = stablehlo.broadcast_in_dim %cst_46, dims = [] : (tensor<f32>) -> tensor<3x64xf32>
    %109 = stablehlo.multiply %108, %42#12 : tensor<3x64xf32>
    %110 = stablehlo.multiply %109, %42#12 : tensor<3x64xf32>
    %111 = stablehlo.add %107, %110 : tensor<3x64xf32>
    %cst_47 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %112 = stablehlo.broadcast_in_dim %cst_47, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %113 = stablehlo.multiply %112, %arg23 : tensor<3x64x16xf32>
    %cst_48 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %114 = stablehlo.broadcast_in_dim %cst_48, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %115 = stablehlo.multiply %114, %42#13 : tensor<3x64x16xf32>
    %116 = stablehlo.multiply %115, %42#13 : tensor<3x64x16xf32>
    %117 = stablehlo.add %113, %116 : tensor<3x64x16xf32>
    %cst_49 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %118 = stablehlo.broadcast_in_dim %cst_49, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %119 = stablehlo.multiply %118, %arg24 : tensor<3x16x16xf32>
    %cst_50 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %120 = stablehlo.broadcast_in_dim %cst_50, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %121 = stablehlo.multiply %120, %42#14 : tensor<3x16x16xf32>
    %122 = stablehlo.multiply %121, %42#14 : tensor<3x16x16xf32>
    %123 = stablehlo.add %119, %122 : tensor<3x16x16xf32>
    %cst_51 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %124 = stablehlo.broadcast_in_dim %cst_51, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %125 = stablehlo.multiply %124, %arg25 : tensor<3x16x48xf32>
    %cst_52 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %126 = stablehlo.broadcast_in_dim %cst_52, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %127 = stablehlo.multiply %126, %42#15 : tensor<3x16x48xf32>
    %128 = stablehlo.multiply %127, %42#15 : tensor<3x16x48xf32>
    %129 = stablehlo.add %125, %128 : tensor<3x16x48xf32>
    %cst_53 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %130 = stablehlo.broadcast_in_dim %cst_53, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %131 = stablehlo.multiply %130, %arg26 : tensor<3x16xf32>
    %cst_54 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %132 = stablehlo.broadcast_in_dim %cst_54, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %133 = stablehlo.multiply %132, %42#16 : tensor<3x16xf32>
    %134 = stablehlo.multiply %133, %42#16 : tensor<3x16xf32>
    %135 = stablehlo.add %131, %134 : tensor<3x16xf32>
    %cst_55 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %136 = stablehlo.broadcast_in_dim %cst_55, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %137 = stablehlo.multiply %136, %arg27 : tensor<3x16xf32>
    %cst_56 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %138 = stablehlo.broadcast_in_dim %cst_56, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %139 = stablehlo.multiply %138, %42#17 : tensor<3x16xf32>
    %140 = stablehlo.multiply %139, %42#17 : tensor<3x16xf32>
    %141 = stablehlo.add %137, %140 : tensor<3x16xf32>
    %cst_57 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %142 = stablehlo.broadcast_in_dim %cst_57, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %143 = stablehlo.multiply %142, %arg28 : tensor<3x16xf32>
    %cst_58 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %144 = stablehlo.broadcast_in_dim %cst_58, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %145 = stablehlo.multiply %144, %42#18 : tensor<3x16xf32>
    %146 = stablehlo.multiply %145, %42#18 : tensor<3x16xf32>
    %147 = stablehlo.add %143, %146 : tensor<3x16xf32>
    %cst_59 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %148 = stablehlo.broadcast_in_dim %cst_59, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %149 = stablehlo.multiply %148, %arg29 : tensor<3x16xf32>
    %cst_60 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %150 = stablehlo.broadcast_in_dim %cst_60, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %151 = stablehlo.multiply %150, %42#19 : tensor<3x16xf32>
    %152 = stablehlo.multiply %151, %42#19 : tensor<3x16xf32>
    %153 = stablehlo.add %149, %152 : tensor<3x16xf32>
    %cst_61 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %154 = stablehlo.broadcast_in_dim %cst_61, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %155 = stablehlo.multiply %154, %arg30 : tensor<3x16x64xf32>
    %cst_62 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %156 = stablehlo.broadcast_in_dim %cst_62, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %157 = stablehlo.multiply %156, %42#20 : tensor<3x16x64xf32>
    %158 = stablehlo.multiply %157, %42#20 : tensor<3x16x64xf32>
    %159 = stablehlo.add %155, %158 : tensor<3x16x64xf32>
    %cst_63 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %160 = stablehlo.broadcast_in_dim %cst_63, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %161 = stablehlo.multiply %160, %arg31 : tensor<16x16xf32>
    %cst_64 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %162 = stablehlo.broadcast_in_dim %cst_64, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %163 = stablehlo.multiply %162, %46 : tensor<16x16xf32>
    %164 = stablehlo.multiply %163, %46 : tensor<16x16xf32>
    %165 = stablehlo.add %161, %164 : tensor<16x16xf32>
    %cst_65 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %166 = stablehlo.broadcast_in_dim %cst_65, dims = [] : (tensor<f32>) -> tensor<23x16xf32>
    %167 = stablehlo.multiply %166, %arg32 : tensor<23x16xf32>
    %cst_66 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %168 = stablehlo.broadcast_in_dim %cst_66, dims = [] : (tensor<f32>) -> tensor<23x16xf32>
    %169 = stablehlo.multiply %168, %49 : tensor<23x16xf32>
    %170 = stablehlo.multiply %169, %49 : tensor<23x16xf32>
    %171 = stablehlo.add %167, %170 : tensor<23x16xf32>
    %cst_67 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %172 = stablehlo.power %cst_67, %50 : tensor<f32>
    %cst_68 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %173 = stablehlo.subtract %cst_68, %172 : tensor<f32>
    %174 = stablehlo.broadcast_in_dim %173, dims = [] : (tensor<f32>) -> tensor<3x64xf32>
    %175 = stablehlo.divide %55, %174 : tensor<3x64xf32>
    %cst_69 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %176 = stablehlo.power %cst_69, %50 : tensor<f32>
    %cst_70 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %177 = stablehlo.subtract %cst_70, %176 : tensor<f32>
    %178 = stablehlo.broadcast_in_dim %177, dims = [] : (tensor<f32>) -> tensor<3x64xf32>
    %179 = stablehlo.divide %111, %178 : tensor<3x64xf32>
    %cst_71 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %180 = stablehlo.broadcast_in_dim %cst_71, dims = [] : (tensor<f32>) -> tensor<3x64xf32>
    %181 = stablehlo.multiply %180, %175 : tensor<3x64xf32>
    %182 = stablehlo.sqrt %179 : tensor<3x64xf32>
    %cst_72 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %183 = stablehlo.broadcast_in_dim %cst_72, dims = [] : (tensor<f32>) -> tensor<3x64xf32>
    %184 = stablehlo.add %182, %183 : tensor<3x64xf32>
    %185 = stablehlo.divide %181, %184 : tensor<3x64xf32>
    %186 = stablehlo.subtract %arg0, %185 : tensor<3x64xf32>
    %cst_73 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %187 = stablehlo.power %cst_73, %50 : tensor<f32>
    %cst_74 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %188 = stablehlo.subtract %cst_74, %187 : tensor<f32>
    %189 = stablehlo.broadcast_in_dim %188, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %190 = stablehlo.divide %60, %189 : tensor<3x64x16xf32>
    %cst_75 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %191 = stablehlo.power %cst_75, %50 : tensor<f32>
    %cst_76 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %192 = stablehlo.subtract %cst_76, %191 : tensor<f32>
    %193 = stablehlo.broadcast_in_dim %192, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %194 = stablehlo.divide %117, %193 : tensor<3x64x16xf32>
    %cst_77 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %195 = stablehlo.broadcast_in_dim %cst_77, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %196 = stablehlo.multiply %195, %190 : tensor<3x64x16xf32>
    %197 = stablehlo.sqrt %194 : tensor<3x64x16xf32>
    %cst_78 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %198 = stablehlo.broadcast_in_dim %cst_78, dims = [] : (tensor<f32>) -> tensor<3x64x16xf32>
    %199 = stablehlo.add %197, %198 : tensor<3x64x16xf32>
    %200 = stablehlo.divide %196, %199 : tensor<3x64x16xf32>
    %201 = stablehlo.subtract %arg1, %200 : tensor<3x64x16xf32>
    %cst_79 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %202 = stablehlo.power %cst_79, %50 : tensor<f32>
    %cst_80 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %203 = stablehlo.subtract %cst_80, %202 : tensor<f32>
    %204 = stablehlo.broadcast_in_dim %203, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %205 = stablehlo.divide %65, %204 : tensor<3x16x16xf32>
    %cst_81 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %206 = stablehlo.power %cst_81, %50 : tensor<f32>
    %cst_82 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %207 = stablehlo.subtract %cst_82, %206 : tensor<f32>
    %208 = stablehlo.broadcast_in_dim %207, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %209 = stablehlo.divide %123, %208 : tensor<3x16x16xf32>
    %cst_83 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %210 = stablehlo.broadcast_in_dim %cst_83, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %211 = stablehlo.multiply %210, %205 : tensor<3x16x16xf32>
    %212 = stablehlo.sqrt %209 : tensor<3x16x16xf32>
    %cst_84 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %213 = stablehlo.broadcast_in_dim %cst_84, dims = [] : (tensor<f32>) -> tensor<3x16x16xf32>
    %214 = stablehlo.add %212, %213 : tensor<3x16x16xf32>
    %215 = stablehlo.divide %211, %214 : tensor<3x16x16xf32>
    %216 = stablehlo.subtract %arg2, %215 : tensor<3x16x16xf32>
    %cst_85 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %217 = stablehlo.power %cst_85, %50 : tensor<f32>
    %cst_86 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %218 = stablehlo.subtract %cst_86, %217 : tensor<f32>
    %219 = stablehlo.broadcast_in_dim %218, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %220 = stablehlo.divide %70, %219 : tensor<3x16x48xf32>
    %cst_87 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %221 = stablehlo.power %cst_87, %50 : tensor<f32>
    %cst_88 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %222 = stablehlo.subtract %cst_88, %221 : tensor<f32>
    %223 = stablehlo.broadcast_in_dim %222, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %224 = stablehlo.divide %129, %223 : tensor<3x16x48xf32>
    %cst_89 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %225 = stablehlo.broadcast_in_dim %cst_89, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %226 = stablehlo.multiply %225, %220 : tensor<3x16x48xf32>
    %227 = stablehlo.sqrt %224 : tensor<3x16x48xf32>
    %cst_90 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %228 = stablehlo.broadcast_in_dim %cst_90, dims = [] : (tensor<f32>) -> tensor<3x16x48xf32>
    %229 = stablehlo.add %227, %228 : tensor<3x16x48xf32>
    %230 = stablehlo.divide %226, %229 : tensor<3x16x48xf32>
    %231 = stablehlo.subtract %arg3, %230 : tensor<3x16x48xf32>
    %cst_91 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %232 = stablehlo.power %cst_91, %50 : tensor<f32>
    %cst_92 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %233 = stablehlo.subtract %cst_92, %232 : tensor<f32>
    %234 = stablehlo.broadcast_in_dim %233, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %235 = stablehlo.divide %75, %234 : tensor<3x16xf32>
    %cst_93 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %236 = stablehlo.power %cst_93, %50 : tensor<f32>
    %cst_94 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %237 = stablehlo.subtract %cst_94, %236 : tensor<f32>
    %238 = stablehlo.broadcast_in_dim %237, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %239 = stablehlo.divide %135, %238 : tensor<3x16xf32>
    %cst_95 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %240 = stablehlo.broadcast_in_dim %cst_95, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %241 = stablehlo.multiply %240, %235 : tensor<3x16xf32>
    %242 = stablehlo.sqrt %239 : tensor<3x16xf32>
    %cst_96 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %243 = stablehlo.broadcast_in_dim %cst_96, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %244 = stablehlo.add %242, %243 : tensor<3x16xf32>
    %245 = stablehlo.divide %241, %244 : tensor<3x16xf32>
    %246 = stablehlo.subtract %arg4, %245 : tensor<3x16xf32>
    %cst_97 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %247 = stablehlo.power %cst_97, %50 : tensor<f32>
    %cst_98 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %248 = stablehlo.subtract %cst_98, %247 : tensor<f32>
    %249 = stablehlo.broadcast_in_dim %248, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %250 = stablehlo.divide %80, %249 : tensor<3x16xf32>
    %cst_99 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %251 = stablehlo.power %cst_99, %50 : tensor<f32>
    %cst_100 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %252 = stablehlo.subtract %cst_100, %251 : tensor<f32>
    %253 = stablehlo.broadcast_in_dim %252, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %254 = stablehlo.divide %141, %253 : tensor<3x16xf32>
    %cst_101 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %255 = stablehlo.broadcast_in_dim %cst_101, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %256 = stablehlo.multiply %255, %250 : tensor<3x16xf32>
    %257 = stablehlo.sqrt %254 : tensor<3x16xf32>
    %cst_102 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %258 = stablehlo.broadcast_in_dim %cst_102, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %259 = stablehlo.add %257, %258 : tensor<3x16xf32>
    %260 = stablehlo.divide %256, %259 : tensor<3x16xf32>
    %261 = stablehlo.subtract %arg5, %260 : tensor<3x16xf32>
    %cst_103 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %262 = stablehlo.power %cst_103, %50 : tensor<f32>
    %cst_104 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %263 = stablehlo.subtract %cst_104, %262 : tensor<f32>
    %264 = stablehlo.broadcast_in_dim %263, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %265 = stablehlo.divide %85, %264 : tensor<3x16xf32>
    %cst_105 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %266 = stablehlo.power %cst_105, %50 : tensor<f32>
    %cst_106 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %267 = stablehlo.subtract %cst_106, %266 : tensor<f32>
    %268 = stablehlo.broadcast_in_dim %267, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %269 = stablehlo.divide %147, %268 : tensor<3x16xf32>
    %cst_107 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %270 = stablehlo.broadcast_in_dim %cst_107, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %271 = stablehlo.multiply %270, %265 : tensor<3x16xf32>
    %272 = stablehlo.sqrt %269 : tensor<3x16xf32>
    %cst_108 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %273 = stablehlo.broadcast_in_dim %cst_108, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %274 = stablehlo.add %272, %273 : tensor<3x16xf32>
    %275 = stablehlo.divide %271, %274 : tensor<3x16xf32>
    %276 = stablehlo.subtract %arg6, %275 : tensor<3x16xf32>
    %cst_109 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %277 = stablehlo.power %cst_109, %50 : tensor<f32>
    %cst_110 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %278 = stablehlo.subtract %cst_110, %277 : tensor<f32>
    %279 = stablehlo.broadcast_in_dim %278, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %280 = stablehlo.divide %90, %279 : tensor<3x16xf32>
    %cst_111 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %281 = stablehlo.power %cst_111, %50 : tensor<f32>
    %cst_112 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %282 = stablehlo.subtract %cst_112, %281 : tensor<f32>
    %283 = stablehlo.broadcast_in_dim %282, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %284 = stablehlo.divide %153, %283 : tensor<3x16xf32>
    %cst_113 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %285 = stablehlo.broadcast_in_dim %cst_113, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %286 = stablehlo.multiply %285, %280 : tensor<3x16xf32>
    %287 = stablehlo.sqrt %284 : tensor<3x16xf32>
    %cst_114 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %288 = stablehlo.broadcast_in_dim %cst_114, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %289 = stablehlo.add %287, %288 : tensor<3x16xf32>
    %290 = stablehlo.divide %286, %289 : tensor<3x16xf32>
    %291 = stablehlo.subtract %arg7, %290 : tensor<3x16xf32>
    %cst_115 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %292 = stablehlo.power %cst_115, %50 : tensor<f32>
    %cst_116 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %293 = stablehlo.subtract %cst_116, %292 : tensor<f32>
    %294 = stablehlo.broadcast_in_dim %293, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %295 = stablehlo.divide %95, %294 : tensor<3x16x64xf32>
    %cst_117 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %296 = stablehlo.power %cst_117, %50 : tensor<f32>
    %cst_118 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %297 = stablehlo.subtract %cst_118, %296 : tensor<f32>
    %298 = stablehlo.broadcast_in_dim %297, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %299 = stablehlo.divide %159, %298 : tensor<3x16x64xf32>
    %cst_119 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %300 = stablehlo.broadcast_in_dim %cst_119, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %301 = stablehlo.multiply %300, %295 : tensor<3x16x64xf32>
    %302 = stablehlo.sqrt %299 : tensor<3x16x64xf32>
    %cst_120 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %303 = stablehlo.broadcast_in_dim %cst_120, dims = [] : (tensor<f32>) -> tensor<3x16x64xf32>
    %304 = stablehlo.add %302, %303 : tensor<3x16x64xf32>
    %305 = stablehlo.divide %301, %304 : tensor<3x16x64xf32>
    %306 = stablehlo.subtract %arg8, %305 : tensor<3x16x64xf32>
    %cst_121 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %307 = stablehlo.power %cst_121, %50 : tensor<f32>
    %cst_122 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %308 = stablehlo.subtract %cst_122, %307 : tensor<f32>
    %309 = stablehlo.broadcast_in_dim %308, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %310 = stablehlo.divide %100, %309 : tensor<16x16xf32>
    %cst_123 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %311 = stablehlo.power %cst_123, %50 : tensor<f32>
    %cst_124 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %312 = stablehlo.subtract %cst_124, %311 : tensor<f32>
    %313 = stablehlo.broadcast_in_dim %312, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %314 = stablehlo.divide %165, %313 : tensor<16x16xf32>
    %cst_125 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %315 = stablehlo.broadcast_in_dim %cst_125, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %316 = stablehlo.multiply %315, %310 : tensor<16x16xf32>
    %317 = stablehlo.sqrt %314 : tensor<16x16xf32>
    %cst_126 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %318 = stablehlo.broadcast_in_dim %cst_126, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %319 = stablehlo.add %317, %318 : tensor<16x16xf32>
    %320 = stablehlo.divide %316, %319 : tensor<16x16xf32>
    %321 = stablehlo.subtract %arg9, %320 : tensor<16x16xf32>
    %cst_127 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %322 = stablehlo.power %cst_127, %50 : tensor<f32>
    %cst_128 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %323 = stablehlo.subtract %cst_128, %322 : tensor<f32>
    %324 = stablehlo.broadcast_in_dim %323, dims = [] : (tensor<f32>) -> tensor<23x16xf32>
    %325 = stablehlo.divide %105, %324 : tensor<23x16xf32>
    %cst_129 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %326 = stablehlo.power %cst_129, %50 : tensor<f32>
    %cst_130 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %327 = stablehlo.subtract %cst_130, %326 : tensor<f32>
    %328 = stablehlo.broadcast_in_dim %327, dims = [] : (tensor<f32>) -> tensor<23x16xf32>
    %329 = stablehlo.divide %171, %328 : tensor<23x16xf32>
    %cst_131 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %330 = stablehlo.broadcast_in_dim %cst_131, dims = [] : (tensor<f32>) -> tensor<23x16xf32>
    %331 = stablehlo.multiply %330, %325 : tensor<23x16xf32>
    %332 = stablehlo.sqrt %329 : tensor<23x16xf32>
    %cst_132 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %333 = stablehlo.broadcast_in_dim %cst_132, dims = [] : (tensor<f32>) -> tensor<23x16xf32>
    %334 = stablehlo.add %332, %333 : tensor<23x16xf32>
    %335 = stablehlo.divide %331, %334 : tensor<23x16xf32>
    %336 = stablehlo.subtract %arg10, %335 : tensor<23x16xf32>
    return %186, %201, %216, %231, %246, %261, %276, %291, %306, %321, %336, %55, %60, %65, %70, %75, %80, %85, %90, %95, %100, %105, %111, %117, %123, %129, %135, %141, %147, %153, %159, %165, %171, %50, %23 : tensor<3x64xf32>, tensor<3x64x16xf32>, tensor<3x16x16xf32>, tensor<3x16x48xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x64xf32>, tensor<16x16xf32>, tensor<23x16xf32>, tensor<3x64xf32>, tensor<3x64x16xf32>, tensor<3x16x16xf32>, tensor<3x16x48xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x64xf32>, tensor<16x16xf32>, tensor<23x16xf32>, tensor<3x64xf32>, tensor<3x64x16xf32>, tensor<3x16x16xf32>, tensor<3x16x48xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16x64xf32>, tensor<16x16xf32>, tensor<23x16xf32>, tensor<f32>, tensor<f32>
  }
  func.func private @tril(%arg0: tensor<8x8xi1>) -> tensor<8x8xi1> {
    %0 = stablehlo.iota dim = 0 : tensor<8x8xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<8x8xi32>
    %2 = stablehlo.add %0, %1 : tensor<8x8xi32>
    %3 = stablehlo.iota dim = 1 : tensor<8x8xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<8x8xi1>, tensor<8x8xi1>
    return %6 : tensor<8x8xi1>
  }
  func.func private @_where(%arg0: tensor<8x8xi1>, %arg1: tensor<f32>) -> (tensor<2x2x8x8xi1>, tensor<2x2x8x8xf32>) {
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<8x8xi1>) -> tensor<2x2x8x8xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x2x8x8xf32>
    return %1, %2 : tensor<2x2x8x8xi1>, tensor<2x2x8x8xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<3x64xf32>, %arg1: tensor<i32>) -> tensor<64xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 64] : (tensor<3x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1x64xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x64xf32>) -> tensor<64xf32>
    return %1 : tensor<64xf32>
  }
  func.func private @dynamic_index_in_dim_0(%arg0: tensor<3x64x16xf32>, %arg1: tensor<i32>) -> tensor<64x16xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 64, 16] : (tensor<3x64x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x16xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x64x16xf32>) -> tensor<64x16xf32>
    return %1 : tensor<64x16xf32>
  }
  func.func private @dynamic_index_in_dim_1(%arg0: tensor<3x16x16xf32>, %arg1: tensor<i32>) -> tensor<16x16xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 16, 16] : (tensor<3x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
    return %1 : tensor<16x16xf32>
  }
  func.func private @dynamic_index_in_dim_2(%arg0: tensor<3x16x48xf32>, %arg1: tensor<i32>) -> tensor<16x48xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 16, 48] : (tensor<3x16x48xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x48xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x16x48xf32>) -> tensor<16x48xf32>
    return %1 : tensor<16x48xf32>
  }
  func.func private @dynamic_index_in_dim_3(%arg0: tensor<3x16xf32>, %arg1: tensor<i32>) -> tensor<16xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 16] : (tensor<3x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x16xf32>) -> tensor<16xf32>
    return %1 : tensor<16xf32>
  }
  func.func private @dynamic_index_in_dim_4(%arg0: tensor<3x16x64xf32>, %arg1: tensor<i32>) -> tensor<16x64xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 16, 64] : (tensor<3x16x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x64xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x16x64xf32>) -> tensor<16x64xf32>
    return %1 : tensor<16x64xf32>
  }
  func.func private @closed_call(%arg0: tensor<2x2x8x8xi1>, %arg1: tensor<2x2x8x8xf32>, %arg2: tensor<2x8x16xf32>, %arg3: tensor<64xf32>, %arg4: tensor<64x16xf32>, %arg5: tensor<16x16xf32>, %arg6: tensor<16x48xf32>, %arg7: tensor<16xf32>, %arg8: tensor<16xf32>, %arg9: tensor<16xf32>, %arg10: tensor<16xf32>, %arg11: tensor<16x64xf32>) -> (tensor<2x8x16xf32>, tensor<2x8x16xf32>) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg2 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<2x8xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %cst_0 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %3 = stablehlo.divide %1, %2 : tensor<2x8x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
    %5 = stablehlo.subtract %arg2, %4 : tensor<2x8x16xf32>
    %6 = stablehlo.multiply %5, %5 : tensor<2x8x16xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<2x8xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %cst_2 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %10 = stablehlo.divide %8, %9 : tensor<2x8x1xf32>
    %11 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
    %12 = stablehlo.subtract %arg2, %11 : tensor<2x8x16xf32>
    %cst_3 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %14 = stablehlo.add %10, %13 : tensor<2x8x1xf32>
    %15 = stablehlo.rsqrt %14 : tensor<2x8x1xf32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
    %17 = stablehlo.multiply %12, %16 : tensor<2x8x16xf32>
    %18 = stablehlo.broadcast_in_dim %arg7, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<2x8x16xf32>
    %20 = stablehlo.multiply %17, %19 : tensor<2x8x16xf32>
    %21 = stablehlo.broadcast_in_dim %arg9, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %22 = stablehlo.broadcast_in_dim %21, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<2x8x16xf32>
    %23 = stablehlo.add %20, %22 : tensor<2x8x16xf32>
    %24 = stablehlo.dot_general %23, %arg6, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x8x16xf32>, tensor<16x48xf32>) -> tensor<2x8x48xf32>
    %25 = stablehlo.reshape %24 : (tensor<2x8x48xf32>) -> tensor<2x8x3x2x8xf32>
    %26 = stablehlo.transpose %25, dims = [2, 0, 1, 3, 4] : (tensor<2x8x3x2x8xf32>) -> tensor<3x2x8x2x8xf32>
    %27 = stablehlo.slice %26 [0:1, 0:2, 0:8, 0:2, 0:8] : (tensor<3x2x8x2x8xf32>) -> tensor<1x2x8x2x8xf32>
    %28 = stablehlo.reshape %27 : (tensor<1x2x8x2x8xf32>) -> tensor<2x8x2x8xf32>
    %29 = stablehlo.slice %26 [1:2, 0:2, 0:8, 0:2, 0:8] : (tensor<3x2x8x2x8xf32>) -> tensor<1x2x8x2x8xf32>
    %30 = stablehlo.reshape %29 : (tensor<1x2x8x2x8xf32>) -> tensor<2x8x2x8xf32>
    %31 = stablehlo.slice %26 [2:3, 0:2, 0:8, 0:2, 0:8] : (tensor<3x2x8x2x8xf32>) -> tensor<1x2x8x2x8xf32>
    %32 = stablehlo.reshape %31 : (tensor<1x2x8x2x8xf32>) -> tensor<2x8x2x8xf32>
    %33 = stablehlo.dot_general %28, %30, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>) -> tensor<2x2x8x8xf32>
    %cst_4 = stablehlo.constant dense<2.82842708> : tensor<f32>
    %34 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x2x8x8xf32>
    %35 = stablehlo.divide %33, %34 : tensor<2x2x8x8xf32>
    %36 = call @_where_5(%35, %arg0, %arg1) : (tensor<2x2x8x8xf32>, tensor<2x2x8x8xi1>, tensor<2x2x8x8xf32>) -> tensor<2x2x8x8xf32>
    %cst_5 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %37 = stablehlo.reduce(%36 init: %cst_5) applies stablehlo.maximum across dimensions = [3] : (tensor<2x2x8x8xf32>, tensor<f32>) -> tensor<2x2x8xf32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %38 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<2x2x8xf32>
    %39 = stablehlo.maximum %38, %37 : tensor<2x2x8xf32>
    %40 = stablehlo.broadcast_in_dim %39, dims = [0, 1, 2] : (tensor<2x2x8xf32>) -> tensor<2x2x8x1xf32>
    %41 = stablehlo.broadcast_in_dim %40, dims = [0, 1, 2, 3] : (tensor<2x2x8x1xf32>) -> tensor<2x2x8x8xf32>
    %42 = stablehlo.subtract %36, %41 : tensor<2x2x8x8xf32>
    %43 = stablehlo.exponential %42 : tensor<2x2x8x8xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %44 = stablehlo.reduce(%43 init: %cst_7) applies stablehlo.add across dimensions = [3] : (tensor<2x2x8x8xf32>, tensor<f32>) -> tensor<2x2x8xf32>
    %45 = stablehlo.broadcast_in_dim %44, dims = [0, 1, 2] : (tensor<2x2x8xf32>) -> tensor<2x2x8x1xf32>
    %46 = stablehlo.broadcast_in_dim %45, dims = [0, 1, 2, 3] : (tensor<2x2x8x1xf32>) -> tensor<2x2x8x8xf32>
    %47 = stablehlo.divide %43, %46 : tensor<2x2x8x8xf32>
    %48 = stablehlo.dot_general %32, %47, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x8x2x8xf32>, tensor<2x2x8x8xf32>) -> tensor<2x2x8x8xf32>
    %49 = stablehlo.transpose %48, dims = [0, 3, 1, 2] : (tensor<2x2x8x8xf32>) -> tensor<2x8x2x8xf32>
    %50 = stablehlo.reshape %49 : (tensor<2x8x2x8xf32>) -> tensor<2x8x16xf32>
    %51 = stablehlo.dot_general %50, %arg5, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x8x16xf32>, tensor<16x16xf32>) -> tensor<2x8x16xf32>
    %52 = stablehlo.add %arg2, %51 : tensor<2x8x16xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %53 = stablehlo.reduce(%52 init: %cst_8) applies stablehlo.add across dimensions = [2] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<2x8xf32>
    %54 = stablehlo.broadcast_in_dim %53, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %cst_9 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %55 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %56 = stablehlo.divide %54, %55 : tensor<2x8x1xf32>
    %57 = stablehlo.broadcast_in_dim %56, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
    %58 = stablehlo.subtract %52, %57 : tensor<2x8x16xf32>
    %59 = stablehlo.multiply %58, %58 : tensor<2x8x16xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %60 = stablehlo.reduce(%59 init: %cst_10) applies stablehlo.add across dimensions = [2] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<2x8xf32>
    %61 = stablehlo.broadcast_in_dim %60, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %cst_11 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %62 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %63 = stablehlo.divide %61, %62 : tensor<2x8x1xf32>
    %64 = stablehlo.broadcast_in_dim %56, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
    %65 = stablehlo.subtract %52, %64 : tensor<2x8x16xf32>
    %cst_12 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %66 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %67 = stablehlo.add %63, %66 : tensor<2x8x1xf32>
    %68 = stablehlo.rsqrt %67 : tensor<2x8x1xf32>
    %69 = stablehlo.broadcast_in_dim %68, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
    %70 = stablehlo.multiply %65, %69 : tensor<2x8x16xf32>
    %71 = stablehlo.broadcast_in_dim %arg8, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %72 = stablehlo.broadcast_in_dim %71, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<2x8x16xf32>
    %73 = stablehlo.multiply %70, %72 : tensor<2x8x16xf32>
    %74 = stablehlo.broadcast_in_dim %arg10, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %75 = stablehlo.broadcast_in_dim %74, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<2x8x16xf32>
    %76 = stablehlo.add %73, %75 : tensor<2x8x16xf32>
    %77 = stablehlo.dot_general %76, %arg11, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x8x16xf32>, tensor<16x64xf32>) -> tensor<2x8x64xf32>
    %78 = stablehlo.broadcast_in_dim %arg3, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %79 = stablehlo.broadcast_in_dim %78, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x8x64xf32>
    %80 = stablehlo.add %77, %79 : tensor<2x8x64xf32>
    %81 = stablehlo.multiply %80, %80 : tensor<2x8x64xf32>
    %82 = stablehlo.multiply %81, %80 : tensor<2x8x64xf32>
    %cst_13 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %83 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<2x8x64xf32>
    %84 = stablehlo.multiply %83, %82 : tensor<2x8x64xf32>
    %85 = stablehlo.add %80, %84 : tensor<2x8x64xf32>
    %cst_14 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %86 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<2x8x64xf32>
    %87 = stablehlo.multiply %86, %85 : tensor<2x8x64xf32>
    %88 = stablehlo.tanh %87 : tensor<2x8x64xf32>
    %cst_15 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %89 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<2x8x64xf32>
    %90 = stablehlo.add %89, %88 : tensor<2x8x64xf32>
    %cst_16 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %91 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<2x8x64xf32>
    %92 = stablehlo.multiply %91, %90 : tensor<2x8x64xf32>
    %93 = stablehlo.multiply %80, %92 : tensor<2x8x64xf32>
    %94 = stablehlo.dot_general %93, %arg4, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x8x64xf32>, tensor<64x16xf32>) -> tensor<2x8x16xf32>
    %95 = stablehlo.add %52, %94 : tensor<2x8x16xf32>
    return %95, %arg2 : tensor<2x8x16xf32>, tensor<2x8x16xf32>
  }
  func.func private @_where_5(%arg0: tensor<2x2x8x8xf32>, %arg1: tensor<2x2x8x8xi1>, %arg2: tensor<2x2x8x8xf32>) -> tensor<2x2x8x8xf32> {
    %0 = stablehlo.select %arg1, %arg0, %arg2 : tensor<2x2x8x8xi1>, tensor<2x2x8x8xf32>
    return %0 : tensor<2x2x8x8xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<3x2x8x16xf32>, %arg1: tensor<2x8x16xf32>, %arg2: tensor<i32>) -> tensor<3x2x8x16xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<2x8x16xf32>) -> tensor<1x2x8x16xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<3x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x2x8x16xf32>
    return %1 : tensor<3x2x8x16xf32>
  }
  func.func private @log_softmax(%arg0: tensor<2x8x23xf32>) -> (tensor<2x8x23xf32>, tensor<2x8x23xf32>, tensor<2x8x1xf32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [2] : (tensor<2x8x23xf32>, tensor<f32>) -> tensor<2x8xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<2x8xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x23xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<2x8x23xf32>
    %6 = stablehlo.exponential %5 : tensor<2x8x23xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<2x8x23xf32>, tensor<f32>) -> tensor<2x8xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %9 = stablehlo.log %8 : tensor<2x8x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x23xf32>
    %11 = stablehlo.subtract %5, %10 : tensor<2x8x23xf32>
    return %11, %6, %8 : tensor<2x8x23xf32>, tensor<2x8x23xf32>, tensor<2x8x1xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<2x8x23xf32>, %arg1: tensor<2x8x1xi32>) -> (tensor<2x8x1xf32>, tensor<2x8x1x1xi32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<2x8x1xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<2x8x1xi32>, tensor<2x8x1xi32>) -> tensor<2x8x1xi1>
    %c_0 = stablehlo.constant dense<23> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<2x8x1xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<2x8x1xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<2x8x1xi1>, tensor<2x8x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<2x8x1xi32>) -> tensor<2x8x1x1xi32>
    %c_1 = stablehlo.constant dense<22> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<2x8x1x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<2x8x1x1xi32>, tensor<2x8x1x1xi32>) -> tensor<2x8x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [3] : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xi32>) -> tensor<2x8x1x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<2x8x1x1xi32>, tensor<2x8x1x1xi32>) -> tensor<2x8x1x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<2x8x1x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [3] : (tensor<2x8x1x1xi1>, tensor<i1>) -> tensor<2x8x1xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [2], operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 1], start_index_map = [2], index_vector_dim = 3>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<2x8x23xf32>, tensor<2x8x1x1xi32>) -> tensor<2x8x1xf32>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<2x8x1xi1>, tensor<2x8x1xf32>
    return %15, %5 : tensor<2x8x1xf32>, tensor<2x8x1x1xi32>
  }
  func.func private @take_along_axis_6(%arg0: tensor<2x8x1x1xi32>, %arg1: tensor<2x8x1xf32>) -> tensor<2x8x23xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x8x23xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [2], input_batching_dims = [0, 1], scatter_indices_batching_dims = [0, 1], scatter_dims_to_operand_dims = [2], index_vector_dim = 3>, unique_indices = false}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<2x8x23xf32>, tensor<2x8x1x1xi32>, tensor<2x8x1xf32>) -> tensor<2x8x23xf32>
    return %1 : tensor<2x8x23xf32>
  }
  func.func private @log_softmax_7(%arg0: tensor<2x8x23xf32>, %arg1: tensor<2x8x1xf32>, %arg2: tensor<2x8x23xf32>) -> tensor<2x8x23xf32> {
    %0 = stablehlo.negate %arg2 : tensor<2x8x23xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x8x23xf32>, tensor<f32>) -> tensor<2x8xf32>
    %2 = stablehlo.reshape %1 : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %3 = stablehlo.divide %2, %arg1 : tensor<2x8x1xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<2x8x1xf32>, tensor<f32>) -> tensor<2x8xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x23xf32>
    %6 = stablehlo.multiply %5, %arg0 : tensor<2x8x23xf32>
    %7 = stablehlo.add %arg2, %6 : tensor<2x8x23xf32>
    return %7 : tensor<2x8x23xf32>
  }
  func.func private @dynamic_index_in_dim_8(%arg0: tensor<3x2x8x16xf32>, %arg1: tensor<i32>) -> tensor<2x8x16xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 2, 8, 16] : (tensor<3x2x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x8x16xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x2x8x16xf32>) -> tensor<2x8x16xf32>
    return %1 : tensor<2x8x16xf32>
  }
  func.func private @closed_call_9(%arg0: tensor<2x8x16xf32>, %arg1: tensor<2x8x16xf32>, %arg2: tensor<64xf32>, %arg3: tensor<64x16xf32>, %arg4: tensor<16x16xf32>, %arg5: tensor<16x48xf32>, %arg6: tensor<16xf32>, %arg7: tensor<16xf32>, %arg8: tensor<16xf32>, %arg9: tensor<16xf32>, %arg10: tensor<16x64xf32>) -> (tensor<2x8x16xf32>, tensor<64xf32>, tensor<64x16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xf32>) {
    %0:11 = stablehlo.optimization_barrier %arg1, %arg2, %arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9, %arg10, %arg0 : tensor<2x8x16xf32>, tensor<64xf32>, tensor<64x16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xf32>, tensor<2x8x16xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0#0 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<2x8xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %cst_0 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %4 = stablehlo.divide %2, %3 : tensor<2x8x1xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
    %6 = stablehlo.subtract %0#0, %5 : tensor<2x8x16xf32>
    %7 = stablehlo.multiply %6, %6 : tensor<2x8x16xf32>
    %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x8x16xf32>
    %9 = stablehlo.multiply %8, %6 : tensor<2x8x16xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.reduce(%7 init: %cst_2) applies stablehlo.add across dimensions = [2] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<2x8xf32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %cst_3 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %13 = stablehlo.divide %11, %12 : tensor<2x8x1xf32>
    %14 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
    %15 = stablehlo.subtract %0#0, %14 : tensor<2x8x16xf32>
    %cst_4 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %17 = stablehlo.add %13, %16 : tensor<2x8x1xf32>
    %18 = stablehlo.rsqrt %17 : tensor<2x8x1xf32>
    %19 = stablehlo.divide %18, %17 : tensor<2x8x1xf32>
    %cst_5 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %21 = stablehlo.multiply %20, %19 : tensor<2x8x1xf32>
    %22 = stablehlo.broadcast_in_dim %18, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
    %23 = stablehlo.multiply %15, %22 : tensor<2x8x16xf32>
    %24 = stablehlo.broadcast_in_dim %0#5, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<2x8x16xf32>
    %26 = stablehlo.multiply %23, %25 : tensor<2x8x16xf32>
    %27 = stablehlo.broadcast_in_dim %0#7, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<2x8x16xf32>
    %29 = stablehlo.add %26, %28 : tensor<2x8x16xf32>
    %30 = stablehlo.dot_general %29, %0#4, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x8x16xf32>, tensor<16x48xf32>) -> tensor<2x8x48xf32>
    %31 = stablehlo.reshape %30 : (tensor<2x8x48xf32>) -> tensor<2x8x3x2x8xf32>
    %32 = stablehlo.transpose %31, dims = [2, 0, 1, 3, 4] : (tensor<2x8x3x2x8xf32>) -> tensor<3x2x8x2x8xf32>
    %33 = stablehlo.slice %32 [0:1, 0:2, 0:8, 0:2, 0:8] : (tensor<3x2x8x2x8xf32>) -> tensor<1x2x8x2x8xf32>
    %34 = stablehlo.reshape %33 : (tensor<1x2x8x2x8xf32>) -> tensor<2x8x2x8xf32>
    %35 = stablehlo.slice %32 [1:2, 0:2, 0:8, 0:2, 0:8] : (tensor<3x2x8x2x8xf32>) -> tensor<1x2x8x2x8xf32>
    %36 = stablehlo.reshape %35 : (tensor<1x2x8x2x8xf32>) -> tensor<2x8x2x8xf32>
    %37 = stablehlo.slice %32 [2:3, 0:2, 0:8, 0:2, 0:8] : (tensor<3x2x8x2x8xf32>) -> tensor<1x2x8x2x8xf32>
    %38 = stablehlo.reshape %37 : (tensor<1x2x8x2x8xf32>) -> tensor<2x8x2x8xf32>
    %39 = stablehlo.dot_general %34, %36, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>) -> tensor<2x2x8x8xf32>
    %cst_6 = stablehlo.constant dense<2.82842708> : tensor<f32>
    %40 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<2x2x8x8xf32>
    %41 = stablehlo.divide %39, %40 : tensor<2x2x8x8xf32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %42 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %43 = call @tril_10(%42) : (tensor<8x8xi1>) -> tensor<8x8xi1>
    %cst_7 = stablehlo.constant dense<-1.000000e+30> : tensor<f32>
    %44:3 = call @_where_11(%43, %41, %cst_7) : (tensor<8x8xi1>, tensor<2x2x8x8xf32>, tensor<f32>) -> (tensor<2x2x8x8xf32>, tensor<2x2x8x8xi1>, tensor<2x2x8x8xf32>)
    %cst_8 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %45 = stablehlo.reduce(%44#0 init: %cst_8) applies stablehlo.maximum across dimensions = [3] : (tensor<2x2x8x8xf32>, tensor<f32>) -> tensor<2x2x8xf32>
    %cst_9 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %46 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<2x2x8xf32>
    %47 = stablehlo.maximum %46, %45 : tensor<2x2x8xf32>
    %48 = stablehlo.broadcast_in_dim %47, dims = [0, 1, 2] : (tensor<2x2x8xf32>) -> tensor<2x2x8x1xf32>
    %49 = stablehlo.broadcast_in_dim %48, dims = [0, 1, 2, 3] : (tensor<2x2x8x1xf32>) -> tensor<2x2x8x8xf32>
    %50 = stablehlo.subtract %44#0, %49 : tensor<2x2x8x8xf32>
    %51 = stablehlo.exponential %50 : tensor<2x2x8x8xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %52 = stablehlo.reduce(%51 init: %cst_10) applies stablehlo.add across dimensions = [3] : (tensor<2x2x8x8xf32>, tensor<f32>) -> tensor<2x2x8xf32>
    %53 = stablehlo.broadcast_in_dim %52, dims = [0, 1, 2] : (tensor<2x2x8xf32>) -> tensor<2x2x8x1xf32>
    %54 = stablehlo.broadcast_in_dim %53, dims = [0, 1, 2, 3] : (tensor<2x2x8x1xf32>) -> tensor<2x2x8x8xf32>
    %55 = stablehlo.divide %51, %54 : tensor<2x2x8x8xf32>
    %56 = stablehlo.multiply %53, %53 : tensor<2x2x8x1xf32>
    %cst_11 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %57 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<2x2x8x1xf32>
    %58 = stablehlo.divide %57, %56 : tensor<2x2x8x1xf32>
    %59 = stablehlo.dot_general %38, %55, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x8x2x8xf32>, tensor<2x2x8x8xf32>) -> tensor<2x2x8x8xf32>
    %60 = stablehlo.transpose %59, dims = [0, 3, 1, 2] : (tensor<2x2x8x8xf32>) -> tensor<2x8x2x8xf32>
    %61 = stablehlo.reshape %60 : (tensor<2x8x2x8xf32>) -> tensor<2x8x16xf32>
    %62 = stablehlo.dot_general %61, %0#3, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x8x16xf32>, tensor<16x16xf32>) -> tensor<2x8x16xf32>
    %63 = stablehlo.add %0#0, %62 : tensor<2x8x16xf32>
    %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %64 = stablehlo.reduce(%63 init: %cst_12) applies stablehlo.add across dimensions = [2] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<2x8xf32>
    %65 = stablehlo.broadcast_in_dim %64, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %cst_13 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %66 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %67 = stablehlo.divide %65, %66 : tensor<2x8x1xf32>
    %68 = stablehlo.broadcast_in_dim %67, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
    %69 = stablehlo.subtract %63, %68 : tensor<2x8x16xf32>
    %70 = stablehlo.multiply %69, %69 : tensor<2x8x16xf32>
    %cst_14 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %71 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<2x8x16xf32>
    %72 = stablehlo.multiply %71, %69 : tensor<2x8x16xf32>
    %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %73 = stablehlo.reduce(%70 init: %cst_15) applies stablehlo.add across dimensions = [2] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<2x8xf32>
    %74 = stablehlo.broadcast_in_dim %73, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %cst_16 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %75 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %76 = stablehlo.divide %74, %75 : tensor<2x8x1xf32>
    %77 = stablehlo.broadcast_in_dim %67, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
    %78 = stablehlo.subtract %63, %77 : tensor<2x8x16xf32>
    %cst_17 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %79 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %80 = stablehlo.add %76, %79 : tensor<2x8x1xf32>
    %81 = stablehlo.rsqrt %80 : tensor<2x8x1xf32>
    %82 = stablehlo.divide %81, %80 : tensor<2x8x1xf32>
    %cst_18 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %83 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %84 = stablehlo.multiply %83, %82 : tensor<2x8x1xf32>
    %85 = stablehlo.broadcast_in_dim %81, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
    %86 = stablehlo.multiply %78, %85 : tensor<2x8x16xf32>
    %87 = stablehlo.broadcast_in_dim %0#6, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %88 = stablehlo.broadcast_in_dim %87, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<2x8x16xf32>
    %89 = stablehlo.multiply %86, %88 : tensor<2x8x16xf32>
    %90 = stablehlo.broadcast_in_dim %0#8, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %91 = stablehlo.broadcast_in_dim %90, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<2x8x16xf32>
    %92 = stablehlo.add %89, %91 : tensor<2x8x16xf32>
    %93 = stablehlo.dot_general %92, %0#9, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x8x16xf32>, tensor<16x64xf32>) -> tensor<2x8x64xf32>
    %94 = stablehlo.broadcast_in_dim %0#1, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %95 = stablehlo.broadcast_in_dim %94, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x8x64xf32>
    %96 = stablehlo.add %93, %95 : tensor<2x8x64xf32>
    %97 = stablehlo.multiply %96, %96 : tensor<2x8x64xf32>
    %98 = stablehlo.multiply %97, %96 : tensor<2x8x64xf32>
    %99 = stablehlo.multiply %96, %96 : tensor<2x8x64xf32>
    %cst_19 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %100 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<2x8x64xf32>
    %101 = stablehlo.multiply %100, %99 : tensor<2x8x64xf32>
    %cst_20 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %102 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<2x8x64xf32>
    %103 = stablehlo.multiply %102, %98 : tensor<2x8x64xf32>
    %104 = stablehlo.add %96, %103 : tensor<2x8x64xf32>
    %cst_21 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %105 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<2x8x64xf32>
    %106 = stablehlo.multiply %105, %104 : tensor<2x8x64xf32>
    %107 = stablehlo.tanh %106 : tensor<2x8x64xf32>
    %cst_22 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %108 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<2x8x64xf32>
    %109 = stablehlo.subtract %108, %107 : tensor<2x8x64xf32>
    %cst_23 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %110 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<2x8x64xf32>
    %111 = stablehlo.add %110, %107 : tensor<2x8x64xf32>
    %cst_24 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %112 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<2x8x64xf32>
    %113 = stablehlo.multiply %112, %111 : tensor<2x8x64xf32>
    %114 = stablehlo.multiply %96, %113 : tensor<2x8x64xf32>
    %115 = stablehlo.dot_general %0#10, %114, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x8x16xf32>, tensor<2x8x64xf32>) -> tensor<16x64xf32>
    %116 = stablehlo.transpose %115, dims = [1, 0] : (tensor<16x64xf32>) -> tensor<64x16xf32>
    %117 = stablehlo.dot_general %0#10, %0#2, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x8x16xf32>, tensor<64x16xf32>) -> tensor<2x8x64xf32>
    %118 = stablehlo.multiply %96, %117 : tensor<2x8x64xf32>
    %119 = stablehlo.multiply %117, %113 : tensor<2x8x64xf32>
    %cst_25 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %120 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<2x8x64xf32>
    %121 = stablehlo.multiply %120, %118 : tensor<2x8x64xf32>
    %122 = stablehlo.multiply %121, %109 : tensor<2x8x64xf32>
    %123 = stablehlo.multiply %122, %107 : tensor<2x8x64xf32>
    %124 = stablehlo.add %122, %123 : tensor<2x8x64xf32>
    %cst_26 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %125 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<2x8x64xf32>
    %126 = stablehlo.multiply %125, %124 : tensor<2x8x64xf32>
    %127 = stablehlo.add %119, %126 : tensor<2x8x64xf32>
    %cst_27 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %128 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<2x8x64xf32>
    %129 = stablehlo.multiply %128, %126 : tensor<2x8x64xf32>
    %130 = stablehlo.multiply %129, %101 : tensor<2x8x64xf32>
    %131 = stablehlo.add %127, %130 : tensor<2x8x64xf32>
    %cst_28 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %132 = stablehlo.reduce(%131 init: %cst_28) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x8x64xf32>, tensor<f32>) -> tensor<64xf32>
    %133 = stablehlo.reshape %132 : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %cst_29 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %134 = stablehlo.reduce(%133 init: %cst_29) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x64xf32>, tensor<f32>) -> tensor<64xf32>
    %135 = stablehlo.dot_general %131, %92, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x8x64xf32>, tensor<2x8x16xf32>) -> tensor<64x16xf32>
    %136 = stablehlo.transpose %135, dims = [1, 0] : (tensor<64x16xf32>) -> tensor<16x64xf32>
    %137 = stablehlo.dot_general %131, %0#9, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x8x64xf32>, tensor<16x64xf32>) -> tensor<2x8x16xf32>
    %cst_30 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %138 = stablehlo.reduce(%137 init: %cst_30) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<16xf32>
    %139 = stablehlo.reshape %138 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %cst_31 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %140 = stablehlo.reduce(%139 init: %cst_31) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %141 = stablehlo.multiply %86, %137 : tensor<2x8x16xf32>
    %cst_32 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %142 = stablehlo.reduce(%141 init: %cst_32) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<16xf32>
    %143 = stablehlo.reshape %142 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %144 = stablehlo.broadcast_in_dim %87, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<2x8x16xf32>
    %145 = stablehlo.multiply %137, %144 : tensor<2x8x16xf32>
    %cst_33 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %146 = stablehlo.reduce(%143 init: %cst_33) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %147 = stablehlo.multiply %78, %145 : tensor<2x8x16xf32>
    %cst_34 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %148 = stablehlo.reduce(%147 init: %cst_34) applies stablehlo.add across dimensions = [2] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<2x8xf32>
    %149 = stablehlo.reshape %148 : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %150 = stablehlo.broadcast_in_dim %81, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
    %151 = stablehlo.multiply %145, %150 : tensor<2x8x16xf32>
    %152 = stablehlo.multiply %149, %84 : tensor<2x8x1xf32>
    %153 = stablehlo.negate %151 : tensor<2x8x16xf32>
    %cst_35 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %154 = stablehlo.reduce(%153 init: %cst_35) applies stablehlo.add across dimensions = [2] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<2x8xf32>
    %155 = stablehlo.reshape %154 : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %156 = stablehlo.add %0#10, %151 : tensor<2x8x16xf32>
    %cst_36 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %157 = stablehlo.broadcast_in_dim %cst_36, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %158 = stablehlo.divide %152, %157 : tensor<2x8x1xf32>
    %cst_37 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %159 = stablehlo.reduce(%158 init: %cst_37) applies stablehlo.add across dimensions = [2] : (tensor<2x8x1xf32>, tensor<f32>) -> tensor<2x8xf32>
    %160 = stablehlo.broadcast_in_dim %159, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x16xf32>
    %161 = stablehlo.multiply %160, %72 : tensor<2x8x16xf32>
    %162 = stablehlo.negate %161 : tensor<2x8x16xf32>
    %cst_38 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %163 = stablehlo.reduce(%162 init: %cst_38) applies stablehlo.add across dimensions = [2] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<2x8xf32>
    %164 = stablehlo.reshape %163 : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %165 = stablehlo.add %156, %161 : tensor<2x8x16xf32>
    %166 = stablehlo.add %155, %164 : tensor<2x8x1xf32>
    %cst_39 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %167 = stablehlo.broadcast_in_dim %cst_39, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %168 = stablehlo.divide %166, %167 : tensor<2x8x1xf32>
    %cst_40 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %169 = stablehlo.reduce(%168 init: %cst_40) applies stablehlo.add across dimensions = [2] : (tensor<2x8x1xf32>, tensor<f32>) -> tensor<2x8xf32>
    %170 = stablehlo.broadcast_in_dim %169, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x16xf32>
    %171 = stablehlo.add %165, %170 : tensor<2x8x16xf32>
    %172 = stablehlo.dot_general %171, %61, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<16x16xf32>
    %173 = stablehlo.transpose %172, dims = [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %174 = stablehlo.dot_general %171, %0#3, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x8x16xf32>, tensor<16x16xf32>) -> tensor<2x8x16xf32>
    %175 = stablehlo.reshape %174 : (tensor<2x8x16xf32>) -> tensor<2x8x2x8xf32>
    %176 = stablehlo.transpose %175, dims = [0, 2, 3, 1] : (tensor<2x8x2x8xf32>) -> tensor<2x2x8x8xf32>
    %177 = stablehlo.dot_general %176, %38, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x2x8x8xf32>, tensor<2x8x2x8xf32>) -> tensor<2x2x8x8xf32>
    %178 = stablehlo.dot_general %176, %55, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x2x8x8xf32>, tensor<2x2x8x8xf32>) -> tensor<2x2x8x8xf32>
    %179 = stablehlo.transpose %178, dims = [0, 3, 1, 2] : (tensor<2x2x8x8xf32>) -> tensor<2x8x2x8xf32>
    %180 = stablehlo.broadcast_in_dim %58, dims = [0, 1, 2, 3] : (tensor<2x2x8x1xf32>) -> tensor<2x2x8x8xf32>
    %181 = stablehlo.multiply %177, %180 : tensor<2x2x8x8xf32>
    %182 = stablehlo.multiply %181, %51 : tensor<2x2x8x8xf32>
    %cst_41 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %183 = stablehlo.reduce(%182 init: %cst_41) applies stablehlo.add across dimensions = [3] : (tensor<2x2x8x8xf32>, tensor<f32>) -> tensor<2x2x8xf32>
    %184 = stablehlo.reshape %183 : (tensor<2x2x8xf32>) -> tensor<2x2x8x1xf32>
    %185 = stablehlo.negate %184 : tensor<2x2x8x1xf32>
    %186 = stablehlo.broadcast_in_dim %53, dims = [0, 1, 2, 3] : (tensor<2x2x8x1xf32>) -> tensor<2x2x8x8xf32>
    %187 = stablehlo.divide %177, %186 : tensor<2x2x8x8xf32>
    %cst_42 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %188 = stablehlo.reduce(%185 init: %cst_42) applies stablehlo.add across dimensions = [3] : (tensor<2x2x8x1xf32>, tensor<f32>) -> tensor<2x2x8xf32>
    %189 = stablehlo.broadcast_in_dim %188, dims = [0, 1, 2] : (tensor<2x2x8xf32>) -> tensor<2x2x8x8xf32>
    %190 = stablehlo.add %187, %189 : tensor<2x2x8x8xf32>
    %191 = stablehlo.multiply %190, %51 : tensor<2x2x8x8xf32>
    %192 = call @_where_12(%44#1, %44#2, %191) : (tensor<2x2x8x8xi1>, tensor<2x2x8x8xf32>, tensor<2x2x8x8xf32>) -> tensor<2x2x8x8xf32>
    %cst_43 = stablehlo.constant dense<2.82842708> : tensor<f32>
    %193 = stablehlo.broadcast_in_dim %cst_43, dims = [] : (tensor<f32>) -> tensor<2x2x8x8xf32>
    %194 = stablehlo.divide %192, %193 : tensor<2x2x8x8xf32>
    %195 = stablehlo.dot_general %194, %34, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x2x8x8xf32>, tensor<2x8x2x8xf32>) -> tensor<2x2x8x8xf32>
    %196 = stablehlo.transpose %195, dims = [0, 2, 1, 3] : (tensor<2x2x8x8xf32>) -> tensor<2x8x2x8xf32>
    %197 = stablehlo.dot_general %194, %36, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x2x8x8xf32>, tensor<2x8x2x8xf32>) -> tensor<2x2x8x8xf32>
    %198 = stablehlo.transpose %197, dims = [0, 2, 1, 3] : (tensor<2x2x8x8xf32>) -> tensor<2x8x2x8xf32>
    %199 = stablehlo.broadcast_in_dim %179, dims = [1, 2, 3, 4] : (tensor<2x8x2x8xf32>) -> tensor<1x2x8x2x8xf32>
    %cst_44 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %200 = stablehlo.pad %199, %cst_44, low = [2, 0, 0, 0, 0], high = [0, 0, 0, 0, 0], interior = [0, 0, 0, 0, 0] : (tensor<1x2x8x2x8xf32>, tensor<f32>) -> tensor<3x2x8x2x8xf32>
    %201 = stablehlo.broadcast_in_dim %196, dims = [1, 2, 3, 4] : (tensor<2x8x2x8xf32>) -> tensor<1x2x8x2x8xf32>
    %cst_45 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %202 = stablehlo.pad %201, %cst_45, low = [1, 0, 0, 0, 0], high = [1, 0, 0, 0, 0], interior = [0, 0, 0, 0, 0] : (tensor<1x2x8x2x8xf32>, tensor<f32>) -> tensor<3x2x8x2x8xf32>
    %203 = stablehlo.add %200, %202 : tensor<3x2x8x2x8xf32>
    %204 = stablehlo.broadcast_in_dim %198, dims = [1, 2, 3, 4] : (tensor<2x8x2x8xf32>) -> tensor<1x2x8x2x8xf32>
    %cst_46 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %205 = stablehlo.pad %204, %cst_46, low = [0, 0, 0, 0, 0], high = [2, 0, 0, 0, 0], interior = [0, 0, 0, 0, 0] : (tensor<1x2x8x2x8xf32>, tensor<f32>) -> tensor<3x2x8x2x8xf32>
    %206 = stablehlo.add %203, %205 : tensor<3x2x8x2x8xf32>
    %207 = stablehlo.transpose %206, dims = [1, 2, 0, 3, 4] : (tensor<3x2x8x2x8xf32>) -> tensor<2x8x3x2x8xf32>
    %208 = stablehlo.reshape %207 : (tensor<2x8x3x2x8xf32>) -> tensor<2x8x48xf32>
    %209 = stablehlo.dot_general %208, %29, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x8x48xf32>, tensor<2x8x16xf32>) -> tensor<48x16xf32>
    %210 = stablehlo.transpose %209, dims = [1, 0] : (tensor<48x16xf32>) -> tensor<16x48xf32>
    %211 = stablehlo.dot_general %208, %0#4, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x8x48xf32>, tensor<16x48xf32>) -> tensor<2x8x16xf32>
    %cst_47 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %212 = stablehlo.reduce(%211 init: %cst_47) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<16xf32>
    %213 = stablehlo.reshape %212 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %cst_48 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %214 = stablehlo.reduce(%213 init: %cst_48) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %215 = stablehlo.multiply %23, %211 : tensor<2x8x16xf32>
    %cst_49 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %216 = stablehlo.reduce(%215 init: %cst_49) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<16xf32>
    %217 = stablehlo.reshape %216 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %218 = stablehlo.broadcast_in_dim %24, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<2x8x16xf32>
    %219 = stablehlo.multiply %211, %218 : tensor<2x8x16xf32>
    %cst_50 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %220 = stablehlo.reduce(%217 init: %cst_50) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %221 = stablehlo.multiply %15, %219 : tensor<2x8x16xf32>
    %cst_51 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %222 = stablehlo.reduce(%221 init: %cst_51) applies stablehlo.add across dimensions = [2] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<2x8xf32>
    %223 = stablehlo.reshape %222 : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %224 = stablehlo.broadcast_in_dim %18, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x16xf32>
    %225 = stablehlo.multiply %219, %224 : tensor<2x8x16xf32>
    %226 = stablehlo.multiply %223, %21 : tensor<2x8x1xf32>
    %227 = stablehlo.negate %225 : tensor<2x8x16xf32>
    %cst_52 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %228 = stablehlo.reduce(%227 init: %cst_52) applies stablehlo.add across dimensions = [2] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<2x8xf32>
    %229 = stablehlo.reshape %228 : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %230 = stablehlo.add %171, %225 : tensor<2x8x16xf32>
    %cst_53 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %231 = stablehlo.broadcast_in_dim %cst_53, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %232 = stablehlo.divide %226, %231 : tensor<2x8x1xf32>
    %cst_54 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %233 = stablehlo.reduce(%232 init: %cst_54) applies stablehlo.add across dimensions = [2] : (tensor<2x8x1xf32>, tensor<f32>) -> tensor<2x8xf32>
    %234 = stablehlo.broadcast_in_dim %233, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x16xf32>
    %235 = stablehlo.multiply %234, %9 : tensor<2x8x16xf32>
    %236 = stablehlo.negate %235 : tensor<2x8x16xf32>
    %cst_55 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %237 = stablehlo.reduce(%236 init: %cst_55) applies stablehlo.add across dimensions = [2] : (tensor<2x8x16xf32>, tensor<f32>) -> tensor<2x8xf32>
    %238 = stablehlo.reshape %237 : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %239 = stablehlo.add %230, %235 : tensor<2x8x16xf32>
    %240 = stablehlo.add %229, %238 : tensor<2x8x1xf32>
    %cst_56 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %241 = stablehlo.broadcast_in_dim %cst_56, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
    %242 = stablehlo.divide %240, %241 : tensor<2x8x1xf32>
    %cst_57 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %243 = stablehlo.reduce(%242 init: %cst_57) applies stablehlo.add across dimensions = [2] : (tensor<2x8x1xf32>, tensor<f32>) -> tensor<2x8xf32>
    %244 = stablehlo.broadcast_in_dim %243, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x16xf32>
    %245 = stablehlo.add %239, %244 : tensor<2x8x16xf32>
    return %245, %134, %116, %173, %210, %220, %146, %214, %140, %136 : tensor<2x8x16xf32>, tensor<64xf32>, tensor<64x16xf32>, tensor<16x16xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16x64xf32>
  }
  func.func private @tril_10(%arg0: tensor<8x8xi1>) -> tensor<8x8xi1> {
    %0 = stablehlo.iota dim = 0 : tensor<8x8xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<8x8xi32>
    %2 = stablehlo.add %0, %1 : tensor<8x8xi32>
    %3 = stablehlo.iota dim = 1 : tensor<8x8xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<8x8xi1>, tensor<8x8xi1>
    return %6 : tensor<8x8xi1>
  }
  func.func private @_where_11(%arg0: tensor<8x8xi1>, %arg1: tensor<2x2x8x8xf32>, %arg2: tensor<f32>) -> (tensor<2x2x8x8xf32>, tensor<2x2x8x8xi1>, tensor<2x2x8x8xf32>) {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<8x8xi1>) -> tensor<2x2x8x8xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x2x8x8xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<2x2x8x8xi1>, tensor<2x2x8x8xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x2x8x8xf32>
    return %3, %1, %4 : tensor<2x2x8x8xf32>, tensor<2x2x8x8xi1>, tensor<2x2x8x8xf32>
  }
  func.func private @_where_12(%arg0: tensor<2x2x8x8xi1>, %arg1: tensor<2x2x8x8xf32>, %arg2: tensor<2x2x8x8xf32>) -> tensor<2x2x8x8xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x2x8x8xf32>
    %1 = stablehlo.select %arg0, %arg2, %0 : tensor<2x2x8x8xi1>, tensor<2x2x8x8xf32>
    return %1 : tensor<2x2x8x8xf32>
  }
  func.func private @dynamic_update_index_in_dim_13(%arg0: tensor<3x64xf32>, %arg1: tensor<64xf32>, %arg2: tensor<i32>) -> tensor<3x64xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<64xf32>) -> tensor<1x64xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c : (tensor<3x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<3x64xf32>
    return %1 : tensor<3x64xf32>
  }
  func.func private @dynamic_update_index_in_dim_14(%arg0: tensor<3x64x16xf32>, %arg1: tensor<64x16xf32>, %arg2: tensor<i32>) -> tensor<3x64x16xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<64x16xf32>) -> tensor<1x64x16xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<3x64x16xf32>, tensor<1x64x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x64x16xf32>
    return %1 : tensor<3x64x16xf32>
  }
  func.func private @dynamic_update_index_in_dim_15(%arg0: tensor<3x16x16xf32>, %arg1: tensor<16x16xf32>, %arg2: tensor<i32>) -> tensor<3x16x16xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<16x16xf32>) -> tensor<1x16x16xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<3x16x16xf32>, tensor<1x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x16x16xf32>
    return %1 : tensor<3x16x16xf32>
  }
  func.func private @dynamic_update_index_in_dim_16(%arg0: tensor<3x16x48xf32>, %arg1: tensor<16x48xf32>, %arg2: tensor<i32>) -> tensor<3x16x48xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<16x48xf32>) -> tensor<1x16x48xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<3x16x48xf32>, tensor<1x16x48xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x16x48xf32>
    return %1 : tensor<3x16x48xf32>
  }
  func.func private @dynamic_update_index_in_dim_17(%arg0: tensor<3x16xf32>, %arg1: tensor<16xf32>, %arg2: tensor<i32>) -> tensor<3x16xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c : (tensor<3x16xf32>, tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<3x16xf32>
    return %1 : tensor<3x16xf32>
  }
  func.func private @dynamic_update_index_in_dim_18(%arg0: tensor<3x16x64xf32>, %arg1: tensor<16x64xf32>, %arg2: tensor<i32>) -> tensor<3x16x64xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<16x64xf32>) -> tensor<1x16x64xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<3x16x64xf32>, tensor<1x16x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x16x64xf32>
    return %1 : tensor<3x16x64xf32>
  }
}
