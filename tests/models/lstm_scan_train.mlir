module @jit_adam attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<32xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<8x32xf32> {tf.aliasing_output = 1 : i32}, %arg2: tensor<5x32xf32> {tf.aliasing_output = 2 : i32}, %arg3: tensor<8x11xf32> {tf.aliasing_output = 3 : i32}, %arg4: tensor<32xf32> {tf.aliasing_output = 4 : i32}, %arg5: tensor<8x32xf32> {tf.aliasing_output = 5 : i32}, %arg6: tensor<5x32xf32> {tf.aliasing_output = 6 : i32}, %arg7: tensor<8x11xf32> {tf.aliasing_output = 7 : i32}, %arg8: tensor<32xf32> {tf.aliasing_output = 8 : i32}, %arg9: tensor<8x32xf32> {tf.aliasing_output = 9 : i32}, %arg10: tensor<5x32xf32> {tf.aliasing_output = 10 : i32}, %arg11: tensor<8x11xf32> {tf.aliasing_output = 11 : i32}, %arg12: tensor<f32> {tf.aliasing_output = 12 : i32}, %arg13: tensor<6x3x5xf32>, %arg14: tensor<6x3xi32>) -> (tensor<32xf32> {jax.result_info = "result[0]['bias']"}, tensor<8x32xf32> {jax.result_info = "result[0]['hidden']"}, tensor<5x32xf32> {jax.result_info = "result[0]['input']"}, tensor<8x11xf32> {jax.result_info = "result[0]['project']"}, tensor<32xf32> {jax.result_info = "result[1]['bias']"}, tensor<8x32xf32> {jax.result_info = "result[1]['hidden']"}, tensor<5x32xf32> {jax.result_info = "result[1]['input']"}, tensor<8x11xf32> {jax.result_info = "result[1]['project']"}, tensor<32xf32> {jax.result_info = "result[2]['bias']"}, tensor<8x32xf32> {jax.result_info = "result[2]['hidden']"}, tensor<5x32xf32> {jax.result_info = "result[2]['input']"}, tensor<8x11xf32> {jax.result_info = "result[2]['project']"}, tensor<f32> {jax.result_info = "result[3]"}, tensor<f32> {jax.result_info = "result[4]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x8xf32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<6x3x8xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<6x3x8xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<6x3x8xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<6x3x8xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<6x3x8xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<6x3x8xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<6x3x8xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<6x3x8xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<6x3x8xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<6x3x8xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<6x3x8xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<6x3x8xf32>
    %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<6x3x8xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %15:20 = stablehlo.while(%iterArg = %arg13, %iterArg_66 = %arg2, %iterArg_67 = %arg1, %iterArg_68 = %1, %iterArg_69 = %c, %iterArg_70 = %0, %iterArg_71 = %0, %iterArg_72 = %2, %iterArg_73 = %3, %iterArg_74 = %4, %iterArg_75 = %5, %iterArg_76 = %6, %iterArg_77 = %7, %iterArg_78 = %8, %iterArg_79 = %9, %iterArg_80 = %10, %iterArg_81 = %11, %iterArg_82 = %12, %iterArg_83 = %13, %iterArg_84 = %14) : tensor<6x3x5xf32>, tensor<5x32xf32>, tensor<8x32xf32>, tensor<1x32xf32>, tensor<i32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>
    cond {
      %c_85 = stablehlo.constant dense<6> : tensor<i32>
      %144 = stablehlo.compare LT, %iterArg_69, %c_85, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %144 : tensor<i1>
    } do {
      %144 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_69) : (tensor<6x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %145:15 = func.call @closed_call(%iterArg_66, %iterArg_67, %iterArg_68, %iterArg_70, %iterArg_71, %144) : (tensor<5x32xf32>, tensor<8x32xf32>, tensor<1x32xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x5xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>)
      %146 = func.call @dynamic_update_index_in_dim(%iterArg_72, %145#2, %iterArg_69) : (tensor<6x3x8xf32>, tensor<3x8xf32>, tensor<i32>) -> tensor<6x3x8xf32>
      %147 = func.call @dynamic_update_index_in_dim(%iterArg_73, %145#3, %iterArg_69) : (tensor<6x3x8xf32>, tensor<3x8xf32>, tensor<i32>) -> tensor<6x3x8xf32>
      %148 = func.call @dynamic_update_index_in_dim(%iterArg_74, %145#4, %iterArg_69) : (tensor<6x3x8xf32>, tensor<3x8xf32>, tensor<i32>) -> tensor<6x3x8xf32>
      %149 = func.call @dynamic_update_index_in_dim(%iterArg_75, %145#5, %iterArg_69) : (tensor<6x3x8xf32>, tensor<3x8xf32>, tensor<i32>) -> tensor<6x3x8xf32>
      %150 = func.call @dynamic_update_index_in_dim(%iterArg_76, %145#6, %iterArg_69) : (tensor<6x3x8xf32>, tensor<3x8xf32>, tensor<i32>) -> tensor<6x3x8xf32>
      %151 = func.call @dynamic_update_index_in_dim(%iterArg_77, %145#7, %iterArg_69) : (tensor<6x3x8xf32>, tensor<3x8xf32>, tensor<i32>) -> tensor<6x3x8xf32>
      %152 = func.call @dynamic_update_index_in_dim(%iterArg_78, %145#8, %iterArg_69) : (tensor<6x3x8xf32>, tensor<3x8xf32>, tensor<i32>) -> tensor<6x3x8xf32>
      %153 = func.call @dynamic_update_index_in_dim(%iterArg_79, %145#9, %iterArg_69) : (tensor<6x3x8xf32>, tensor<3x8xf32>, tensor<i32>) -> tensor<6x3x8xf32>
      %154 = func.call @dynamic_update_index_in_dim(%iterArg_80, %145#10, %iterArg_69) : (tensor<6x3x8xf32>, tensor<3x8xf32>, tensor<i32>) -> tensor<6x3x8xf32>
      %155 = func.call @dynamic_update_index_in_dim(%iterArg_81, %145#11, %iterArg_69) : (tensor<6x3x8xf32>, tensor<3x8xf32>, tensor<i32>) -> tensor<6x3x8xf32>
      %156 = func.call @dynamic_update_index_in_dim(%iterArg_82, %145#12, %iterArg_69) : (tensor<6x3x8xf32>, tensor<3x8xf32>, tensor<i32>) -> tensor<6x3x8xf32>
      %157 = func.call @dynamic_update_index_in_dim(%iterArg_83, %145#13, %iterArg_69) : (tensor<6x3x8xf32>, tensor<3x8xf32>, tensor<i32>) -> tensor<6x3x8xf32>
      %158 = func.call @dynamic_update_index_in_dim(%iterArg_84, %145#14, %iterArg_69) : (tensor<6x3x8xf32>, tensor<3x8xf32>, tensor<i32>) -> tensor<6x3x8xf32>
      %c_85 = stablehlo.constant dense<1> : tensor<i32>
      %159 = stablehlo.add %iterArg_69, %c_85 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_66, %iterArg_67, %iterArg_68, %159, %145#0, %145#1, %146, %147, %148, %149, %150, %151, %152, %153, %154, %155, %156, %157, %158 : tensor<6x3x5xf32>, tensor<5x32xf32>, tensor<8x32xf32>, tensor<1x32xf32>, tensor<i32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>
    }
    %16 = stablehlo.dot_general %15#7, %arg3, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<6x3x8xf32>, tensor<8x11xf32>) -> tensor<6x3x11xf32>
    %17:3 = call @log_softmax(%16) : (tensor<6x3x11xf32>) -> (tensor<6x3x11xf32>, tensor<6x3x11xf32>, tensor<6x3x1xf32>)
    %18 = stablehlo.broadcast_in_dim %arg14, dims = [0, 1] : (tensor<6x3xi32>) -> tensor<6x3x1xi32>
    %19:2 = call @take_along_axis(%17#0, %18) : (tensor<6x3x11xf32>, tensor<6x3x1xi32>) -> (tensor<6x3x1xf32>, tensor<6x3x1x1xi32>)
    %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %20 = stablehlo.reduce(%19#0 init: %cst_13) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<6x3x1xf32>, tensor<f32>) -> tensor<f32>
    %cst_14 = stablehlo.constant dense<1.800000e+01> : tensor<f32>
    %21 = stablehlo.divide %20, %cst_14 : tensor<f32>
    %22 = stablehlo.negate %21 : tensor<f32>
    %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<3x8xf32>
    %cst_16 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %24 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<3x8xf32>
    %cst_17 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %25 = stablehlo.negate %cst_17 : tensor<f32>
    %cst_18 = stablehlo.constant dense<1.800000e+01> : tensor<f32>
    %26 = stablehlo.divide %25, %cst_18 : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [] : (tensor<f32>) -> tensor<6x3x1xf32>
    %28 = call @take_along_axis_0(%19#1, %27) : (tensor<6x3x1x1xi32>, tensor<6x3x1xf32>) -> tensor<6x3x11xf32>
    %29 = call @log_softmax_1(%17#1, %17#2, %28) : (tensor<6x3x11xf32>, tensor<6x3x1xf32>, tensor<6x3x11xf32>) -> tensor<6x3x11xf32>
    %30 = stablehlo.dot_general %29, %15#7, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<6x3x11xf32>, tensor<6x3x8xf32>) -> tensor<11x8xf32>
    %31 = stablehlo.transpose %30, dims = [1, 0] : (tensor<11x8xf32>) -> tensor<8x11xf32>
    %32 = stablehlo.dot_general %29, %arg3, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<6x3x11xf32>, tensor<8x11xf32>) -> tensor<6x3x8xf32>
    %cst_19 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %33 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<3x8xf32>
    %cst_20 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %34 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<3x8xf32>
    %cst_21 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %35 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<5x32xf32>
    %cst_22 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %36 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<8x32xf32>
    %cst_23 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %37 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %c_24 = stablehlo.constant dense<0> : tensor<i32>
    %38:21 = stablehlo.while(%iterArg = %32, %iterArg_66 = %arg13, %iterArg_67 = %15#8, %iterArg_68 = %15#9, %iterArg_69 = %15#10, %iterArg_70 = %15#11, %iterArg_71 = %15#12, %iterArg_72 = %15#13, %iterArg_73 = %15#14, %iterArg_74 = %15#15, %iterArg_75 = %15#16, %iterArg_76 = %15#17, %iterArg_77 = %15#18, %iterArg_78 = %15#19, %iterArg_79 = %arg1, %iterArg_80 = %c_24, %iterArg_81 = %35, %iterArg_82 = %36, %iterArg_83 = %37, %iterArg_84 = %33, %iterArg_85 = %34) : tensor<6x3x8xf32>, tensor<6x3x5xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<8x32xf32>, tensor<i32>, tensor<5x32xf32>, tensor<8x32xf32>, tensor<32xf32>, tensor<3x8xf32>, tensor<3x8xf32>
    cond {
      %c_86 = stablehlo.constant dense<6> : tensor<i32>
      %144 = stablehlo.compare LT, %iterArg_80, %c_86, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %144 : tensor<i1>
    } do {
      %c_86 = stablehlo.constant dense<6> : tensor<i32>
      %144 = stablehlo.subtract %c_86, %iterArg_80 : tensor<i32>
      %c_87 = stablehlo.constant dense<1> : tensor<i32>
      %145 = stablehlo.subtract %144, %c_87 : tensor<i32>
      %146 = func.call @dynamic_index_in_dim_2(%iterArg, %145) : (tensor<6x3x8xf32>, tensor<i32>) -> tensor<3x8xf32>
      %147 = func.call @dynamic_index_in_dim(%iterArg_66, %145) : (tensor<6x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %148 = func.call @dynamic_index_in_dim_2(%iterArg_67, %145) : (tensor<6x3x8xf32>, tensor<i32>) -> tensor<3x8xf32>
      %149 = func.call @dynamic_index_in_dim_2(%iterArg_68, %145) : (tensor<6x3x8xf32>, tensor<i32>) -> tensor<3x8xf32>
      %150 = func.call @dynamic_index_in_dim_2(%iterArg_69, %145) : (tensor<6x3x8xf32>, tensor<i32>) -> tensor<3x8xf32>
      %151 = func.call @dynamic_index_in_dim_2(%iterArg_70, %145) : (tensor<6x3x8xf32>, tensor<i32>) -> tensor<3x8xf32>
      %152 = func.call @dynamic_index_in_dim_2(%iterArg_71, %145) : (tensor<6x3x8xf32>, tensor<i32>) -> tensor<3x8xf32>
      %153 = func.call @dynamic_index_in_dim_2(%iterArg_72, %145) : (tensor<6x3x8xf32>, tensor<i32>) -> tensor<3x8xf32>
      %154 = func.call @dynamic_index_in_dim_2(%iterArg_73, %145) : (tensor<6x3x8xf32>, tensor<i32>) -> tensor<3x8xf32>
      %155 = func.call @dynamic_index_in_dim_2(%iterArg_74, %145) : (tensor<6x3x8xf32>, tensor<i32>) -> tensor<3x8xf32>
      %156 = func.call @dynamic_index_in_dim_2(%iterArg_75, %145) : (tensor<6x3x8xf32>, tensor<i32>) -> tensor<3x8xf32>
      %157 = func.call @dynamic_index_in_dim_2(%iterArg_76, %145) : (tensor<6x3x8xf32>, tensor<i32>) -> tensor<3x8xf32>
      %158 = func.call @dynamic_index_in_dim_2(%iterArg_77, %145) : (tensor<6x3x8xf32>, tensor<i32>) -> tensor<3x8xf32>
      %159 = func.call @dynamic_index_in_dim_2(%iterArg_78, %145) : (tensor<6x3x8xf32>, tensor<i32>) -> tensor<3x8xf32>
      %160:5 = func.call @closed_call_3(%iterArg_79, %iterArg_81, %iterArg_82, %iterArg_83, %iterArg_84, %iterArg_85, %146, %147, %148, %149, %150, %151, %152, %153, %154, %155, %156, %157, %158, %159) : (tensor<8x32xf32>, tensor<5x32xf32>, tensor<8x32xf32>, tensor<32xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x5xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>) -> (tensor<5x32xf32>, tensor<8x32xf32>, tensor<32xf32>, tensor<3x8xf32>, tensor<3x8xf32>)
      %c_88 = stablehlo.constant dense<1> : tensor<i32>
      %161 = stablehlo.add %iterArg_80, %c_88 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_66, %iterArg_67, %iterArg_68, %iterArg_69, %iterArg_70, %iterArg_71, %iterArg_72, %iterArg_73, %iterArg_74, %iterArg_75, %iterArg_76, %iterArg_77, %iterArg_78, %iterArg_79, %161, %160#0, %160#1, %160#2, %160#3, %160#4 : tensor<6x3x8xf32>, tensor<6x3x5xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<6x3x8xf32>, tensor<8x32xf32>, tensor<i32>, tensor<5x32xf32>, tensor<8x32xf32>, tensor<32xf32>, tensor<3x8xf32>, tensor<3x8xf32>
    }
    %cst_25 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %39 = stablehlo.add %arg12, %cst_25 : tensor<f32>
    %cst_26 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %40 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %41 = stablehlo.multiply %40, %arg4 : tensor<32xf32>
    %cst_27 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %42 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %43 = stablehlo.multiply %42, %38#18 : tensor<32xf32>
    %44 = stablehlo.add %41, %43 : tensor<32xf32>
    %cst_28 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %45 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<8x32xf32>
    %46 = stablehlo.multiply %45, %arg5 : tensor<8x32xf32>
    %cst_29 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %47 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<8x32xf32>
    %48 = stablehlo.multiply %47, %38#17 : tensor<8x32xf32>
    %49 = stablehlo.add %46, %48 : tensor<8x32xf32>
    %cst_30 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %50 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<f32>) -> tensor<5x32xf32>
    %51 = stablehlo.multiply %50, %arg6 : tensor<5x32xf32>
    %cst_31 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %52 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<5x32xf32>
    %53 = stablehlo.multiply %52, %38#16 : tensor<5x32xf32>
    %54 = stablehlo.add %51, %53 : tensor<5x32xf32>
    %cst_32 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %55 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<8x11xf32>
    %56 = stablehlo.multiply %55, %arg7 : tensor<8x11xf32>
    %cst_33 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %57 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<8x11xf32>
    %58 = stablehlo.multiply %57, %31 : tensor<8x11xf32>
    %59 = stablehlo.add %56, %58 : tensor<8x11xf32>
    %cst_34 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %60 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %61 = stablehlo.multiply %60, %arg8 : tensor<32xf32>
    %cst_35 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %62 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %63 = stablehlo.multiply %62, %38#18 : tensor<32xf32>
    %64 = stablehlo.multiply %63, %38#18 : tensor<32xf32>
    %65 = stablehlo.add %61, %64 : tensor<32xf32>
    %cst_36 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %66 = stablehlo.broadcast_in_dim %cst_36, dims = [] : (tensor<f32>) -> tensor<8x32xf32>
    %67 = stablehlo.multiply %66, %arg9 : tensor<8x32xf32>
    %cst_37 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %68 = stablehlo.broadcast_in_dim %cst_37, dims = [] : (tensor<f32>) -> tensor<8x32xf32>
    %69 = stablehlo.multiply %68, %38#17 : tensor<8x32xf32>
    %70 = stablehlo.multiply %69, %38#17 : tensor<8x32xf32>
    %71 = stablehlo.add %67, %70 : tensor<8x32xf32>
    %cst_38 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %72 = stablehlo.broadcast_in_dim %cst_38, dims = [] : (tensor<f32>) -> tensor<5x32xf32>
    %73 = stablehlo.multiply %72, %arg10 : tensor<5x32xf32>
    %cst_39 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %74 = stablehlo.broadcast_in_dim %cst_39, dims = [] : (tensor<f32>) -> tensor<5x32xf32>
    %75 = stablehlo.multiply %74, %38#16 : tensor<5x32xf32>
    %76 = stablehlo.multiply %75, %38#16 : tensor<5x32xf32>
    %77 = stablehlo.add %73, %76 : tensor<5x32xf32>
    %cst_40 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %78 = stablehlo.broadcast_in_dim %cst_40, dims = [] : (tensor<f32>) -> tensor<8x11xf32>
    %79 = stablehlo.multiply %78, %arg11 : tensor<8x11xf32>
    %cst_41 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %80 = stablehlo.broadcast_in_dim %cst_41, dims = [] : (tensor<f32>) -> tensor<8x11xf32>
    %81 = stablehlo.multiply %80, %31 : tensor<8x11xf32>
    %82 = stablehlo.multiply %81, %31 : tensor<8x11xf32>
    %83 = stablehlo.add %79, %82 : tensor<8x11xf32>
    %cst_42 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %84 = stablehlo.power %cst_42, %39 : tensor<f32>
    %cst_43 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %85 = stablehlo.subtract %cst_43, %84 : tensor<f32>
    %86 = stablehlo.broadcast_in_dim %85, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %87 = stablehlo.divide %44, %86 : tensor<32xf32>
    %cst_44 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %88 = stablehlo.power %cst_44, %39 : tensor<f32>
    %cst_45 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %89 = stablehlo.subtract %cst_45, %88 : tensor<f32>
    %90 = stablehlo.broadcast_in_dim %89, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %91 = stablehlo.divide %65, %90 : tensor<32xf32>
    %cst_46 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %92 = stablehlo.broadcast_in_dim %cst_46, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %93 = stablehlo.multiply %92, %87 : tensor<32xf32>
    %94 = stablehlo.sqrt %91 : tensor<32xf32>
    %cst_47 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %95 = stablehlo.broadcast_in_dim %cst_47, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %96 = stablehlo.add %94, %95 : tensor<32xf32>
    %97 = stablehlo.divide %93, %96 : tensor<32xf32>
    %98 = stablehlo.subtract %arg0, %97 : tensor<32xf32>
    %cst_48 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %99 = stablehlo.power %cst_48, %39 : tensor<f32>
    %cst_49 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %100 = stablehlo.subtract %cst_49, %99 : tensor<f32>
    %101 = stablehlo.broadcast_in_dim %100, dims = [] : (tensor<f32>) -> tensor<8x32xf32>
    %102 = stablehlo.divide %49, %101 : tensor<8x32xf32>
    %cst_50 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %103 = stablehlo.power %cst_50, %39 : tensor<f32>
    %cst_51 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %104 = stablehlo.subtract %cst_51, %103 : tensor<f32>
    %105 = stablehlo.broadcast_in_dim %104, dims = [] : (tensor<f32>) -> tensor<8x32xf32>
    %106 = stablehlo.divide %71, %105 : tensor<8x32xf32>
    %cst_52 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %107 = stablehlo.broadcast_in_dim %cst_52, dims = [] : (tensor<f32>) -> tensor<8x32xf32>
    %108 = stablehlo.multiply %107, %102 : tensor<8x32xf32>
    %109 = stablehlo.sqrt %106 : tensor<8x32xf32>
    %cst_53 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %110 = stablehlo.broadcast_in_dim %cst_53, dims = [] : (tensor<f32>) -> tensor<8x32xf32>
    %111 = stablehlo.add %109, %110 : tensor<8x32xf32>
    %112 = stablehlo.divide %108, %111 : tensor<8x32xf32>
    %113 = stablehlo.subtract %arg1, %112 : tensor<8x32xf32>
    %cst_54 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %114 = stablehlo.power %cst_54, %39 : tensor<f32>
    %cst_55 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %115 = stablehlo.subtract %cst_55, %114 : tensor<f32>
    %116 = stablehlo.broadcast_in_dim %115, dims = [] : (tensor<f32>) -> tensor<5x32xf32>
    %117 = stablehlo.divide %54, %116 : tensor<5x32xf32>
    %cst_56 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %118 = stablehlo.power %cst_56, %39 : tensor<f32>
    %cst_57 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %119 = stablehlo.subtract %cst_57, %118 : tensor<f32>
    %120 = stablehlo.broadcast_in_dim %119, dims = [] : (tensor<f32>) -> tensor<5x32xf32>
    %121 = stablehlo.divide %77, %120 : tensor<5x32xf32>
    %cst_58 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %122 = stablehlo.broadcast_in_dim %cst_58, dims = [] : (tensor<f32>) -> tensor<5x32xf32>
    %123 = stablehlo.multiply %122, %117 : tensor<5x32xf32>
    %124 = stablehlo.sqrt %121 : tensor<5x32xf32>
    %cst_59 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %125 = stablehlo.broadcast_in_dim %cst_59, dims = [] : (tensor<f32>) -> tensor<5x32xf32>
    %126 = stablehlo.add %124, %125 : tensor<5x32xf32>
    %127 = stablehlo.divide %123, %126 : tensor<5x32xf32>
    %128 = stablehlo.subtract %arg2, %127 : tensor<5x32xf32>
    %cst_60 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %129 = stablehlo.power %cst_60, %39 : tensor<f32>
    %cst_61 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %130 = stablehlo.subtract %cst_61, %129 : tensor<f32>
    %131 = stablehlo.broadcast_in_dim %130, dims = [] : (tensor<f32>) -> tensor<8x11xf32>
    %132 = stablehlo.divide %59, %131 : tensor<8x11xf32>
    %cst_62 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %133 = stablehlo.power %cst_62, %39 : tensor<f32>
    %cst_63 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %134 = stablehlo.subtract %cst_63, %133 : tensor<f32>
    %135 = stablehlo.broadcast_in_dim %134, dims = [] : (tensor<f32>) -> tensor<8x11xf32>
    %136 = stablehlo.divide %83, %135 : tensor<8x11xf32>
    %cst_64 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %137 = stablehlo.broadcast_in_dim %cst_64, dims = [] : (tensor<f32>) -> tensor<8x11xf32>
    %138 = stablehlo.multiply %137, %132 : tensor<8x11xf32>
    %139 = stablehlo.sqrt %136 : tensor<8x11xf32>
    %cst_65 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %140 = stablehlo.broadcast_in_dim %cst_65, dims = [] : (tensor<f32>) -> tensor<8x11xf32>
    %141 = stablehlo.add %139, %140 : tensor<8x11xf32>
    %142 = stablehlo.divide %138, %141 : tensor<8x11xf32>
    %143 = stablehlo.subtract %arg3, %142 : tensor<8x11xf32>
    return %98, %113, %128, %143, %44, %49, %54, %59, %65, %71, %77, %83, %39, %22 : tensor<32xf32>, tensor<8x32xf32>, tensor<5x32xf32>, tensor<8x11xf32>, tensor<32xf32>, tensor<8x32xf32>, tensor<5x32xf32>, tensor<8x11xf32>, tensor<32xf32>, tensor<8x32xf32>, tensor<5x32xf32>, tensor<8x11xf32>, tensor<f32>, tensor<f32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<6x3x5xf32>, %arg1: tensor<i32>) -> tensor<3x5xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 3, 5] : (tensor<6x3x5xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x5xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3x5xf32>) -> tensor<3x5xf32>
    return %1 : tensor<3x5xf32>
  }
  func.func private @closed_call(%arg0: tensor<5x32xf32>, %arg1: tensor<8x32xf32>, %arg2: tensor<1x32xf32>, %arg3: tensor<3x8xf32>, %arg4: tensor<3x8xf32>, %arg5: tensor<3x5xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>) {
    %0 = stablehlo.dot_general %arg5, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x5xf32>, tensor<5x32xf32>) -> tensor<3x32xf32>
    %1 = stablehlo.dot_general %arg3, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x8xf32>, tensor<8x32xf32>) -> tensor<3x32xf32>
    %2 = stablehlo.add %0, %1 : tensor<3x32xf32>
    %3 = stablehlo.broadcast_in_dim %arg2, dims = [0, 1] : (tensor<1x32xf32>) -> tensor<3x32xf32>
    %4 = stablehlo.add %2, %3 : tensor<3x32xf32>
    %5 = stablehlo.slice %4 [0:3, 0:8] : (tensor<3x32xf32>) -> tensor<3x8xf32>
    %6 = stablehlo.slice %4 [0:3, 8:16] : (tensor<3x32xf32>) -> tensor<3x8xf32>
    %7 = stablehlo.slice %4 [0:3, 16:24] : (tensor<3x32xf32>) -> tensor<3x8xf32>
    %8 = stablehlo.slice %4 [0:3, 24:32] : (tensor<3x32xf32>) -> tensor<3x8xf32>
    %9 = stablehlo.negate %6 : tensor<3x8xf32>
    %10 = stablehlo.exponential %9 : tensor<3x8xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x8xf32>
    %12 = stablehlo.add %11, %10 : tensor<3x8xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x8xf32>
    %14 = stablehlo.divide %13, %12 : tensor<3x8xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<3x8xf32>
    %16 = stablehlo.subtract %15, %14 : tensor<3x8xf32>
    %17 = stablehlo.multiply %14, %16 : tensor<3x8xf32>
    %18 = stablehlo.multiply %14, %arg4 : tensor<3x8xf32>
    %19 = stablehlo.negate %5 : tensor<3x8xf32>
    %20 = stablehlo.exponential %19 : tensor<3x8xf32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %21 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<3x8xf32>
    %22 = stablehlo.add %21, %20 : tensor<3x8xf32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<3x8xf32>
    %24 = stablehlo.divide %23, %22 : tensor<3x8xf32>
    %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %25 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<3x8xf32>
    %26 = stablehlo.subtract %25, %24 : tensor<3x8xf32>
    %27 = stablehlo.multiply %24, %26 : tensor<3x8xf32>
    %28 = stablehlo.tanh %7 : tensor<3x8xf32>
    %cst_5 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %29 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<3x8xf32>
    %30 = stablehlo.subtract %29, %28 : tensor<3x8xf32>
    %31 = stablehlo.multiply %24, %28 : tensor<3x8xf32>
    %32 = stablehlo.add %18, %31 : tensor<3x8xf32>
    %33 = stablehlo.negate %8 : tensor<3x8xf32>
    %34 = stablehlo.exponential %33 : tensor<3x8xf32>
    %cst_6 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %35 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<3x8xf32>
    %36 = stablehlo.add %35, %34 : tensor<3x8xf32>
    %cst_7 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %37 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x8xf32>
    %38 = stablehlo.divide %37, %36 : tensor<3x8xf32>
    %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %39 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<3x8xf32>
    %40 = stablehlo.subtract %39, %38 : tensor<3x8xf32>
    %41 = stablehlo.multiply %38, %40 : tensor<3x8xf32>
    %42 = stablehlo.tanh %32 : tensor<3x8xf32>
    %cst_9 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %43 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<3x8xf32>
    %44 = stablehlo.subtract %43, %42 : tensor<3x8xf32>
    %45 = stablehlo.multiply %38, %42 : tensor<3x8xf32>
    return %45, %32, %45, %arg3, %17, %arg4, %14, %27, %28, %30, %24, %41, %42, %44, %38 : tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<6x3x8xf32>, %arg1: tensor<3x8xf32>, %arg2: tensor<i32>) -> tensor<6x3x8xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<3x8xf32>) -> tensor<1x3x8xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<6x3x8xf32>, tensor<1x3x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<6x3x8xf32>
    return %1 : tensor<6x3x8xf32>
  }
  func.func private @log_softmax(%arg0: tensor<6x3x11xf32>) -> (tensor<6x3x11xf32>, tensor<6x3x11xf32>, tensor<6x3x1xf32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [2] : (tensor<6x3x11xf32>, tensor<f32>) -> tensor<6x3xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<6x3xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<6x3xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<6x3xf32>) -> tensor<6x3x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<6x3x1xf32>) -> tensor<6x3x11xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<6x3x11xf32>
    %6 = stablehlo.exponential %5 : tensor<6x3x11xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<6x3x11xf32>, tensor<f32>) -> tensor<6x3xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<6x3xf32>) -> tensor<6x3x1xf32>
    %9 = stablehlo.log %8 : tensor<6x3x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2] : (tensor<6x3x1xf32>) -> tensor<6x3x11xf32>
    %11 = stablehlo.subtract %5, %10 : tensor<6x3x11xf32>
    return %11, %6, %8 : tensor<6x3x11xf32>, tensor<6x3x11xf32>, tensor<6x3x1xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<6x3x11xf32>, %arg1: tensor<6x3x1xi32>) -> (tensor<6x3x1xf32>, tensor<6x3x1x1xi32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<6x3x1xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<6x3x1xi32>, tensor<6x3x1xi32>) -> tensor<6x3x1xi1>
    %c_0 = stablehlo.constant dense<11> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<6x3x1xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<6x3x1xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<6x3x1xi1>, tensor<6x3x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<6x3x1xi32>) -> tensor<6x3x1x1xi32>
    %c_1 = stablehlo.constant dense<10> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<6x3x1x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<6x3x1x1xi32>, tensor<6x3x1x1xi32>) -> tensor<6x3x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [3] : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xi32>) -> tensor<6x3x1x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<6x3x1x1xi32>, tensor<6x3x1x1xi32>) -> tensor<6x3x1x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<6x3x1x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [3] : (tensor<6x3x1x1xi1>, tensor<i1>) -> tensor<6x3x1xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [2], operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 1], start_index_map = [2], index_vector_dim = 3>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<6x3x11xf32>, tensor<6x3x1x1xi32>) -> tensor<6x3x1xf32>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6x3x1xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<6x3x1xi1>, tensor<6x3x1xf32>
    return %15, %5 : tensor<6x3x1xf32>, tensor<6x3x1x1xi32>
  }
  func.func private @take_along_axis_0(%arg0: tensor<6x3x1x1xi32>, %arg1: tensor<6x3x1xf32>) -> tensor<6x3x11xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6x3x11xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [2], input_batching_dims = [0, 1], scatter_indices_batching_dims = [0, 1], scatter_dims_to_operand_dims = [2], index_vector_dim = 3>, unique_indices = false}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<6x3x11xf32>, tensor<6x3x1x1xi32>, tensor<6x3x1xf32>) -> tensor<6x3x11xf32>
    return %1 : tensor<6x3x11xf32>
  }
  func.func private @log_softmax_1(%arg0: tensor<6x3x11xf32>, %arg1: tensor<6x3x1xf32>, %arg2: tensor<6x3x11xf32>) -> tensor<6x3x11xf32> {
    %0 = stablehlo.negate %arg2 : tensor<6x3x11xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<6x3x11xf32>, tensor<f32>) -> tensor<6x3xf32>
    %2 = stablehlo.reshape %1 : (tensor<6x3xf32>) -> tensor<6x3x1xf32>
    %3 = stablehlo.divide %2, %arg1 : tensor<6x3x1xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<6x3x1xf32>, tensor<f32>) -> tensor<6x3xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<6x3xf32>) -> tensor<6x3x11xf32>
    %6 = stablehlo.multiply %5, %arg0 : tensor<6x3x11xf32>
    %7 = stablehlo.add %arg2, %6 : tensor<6x3x11xf32>
    return %7 : tensor<6x3x11xf32>
  }
  func.func private @dynamic_index_in_dim_2(%arg0: tensor<6x3x8xf32>, %arg1: tensor<i32>) -> tensor<3x8xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 3, 8] : (tensor<6x3x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x8xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3x8xf32>) -> tensor<3x8xf32>
    return %1 : tensor<3x8xf32>
  }
  func.func private @closed_call_3(%arg0: tensor<8x32xf32>, %arg1: tensor<5x32xf32>, %arg2: tensor<8x32xf32>, %arg3: tensor<32xf32>, %arg4: tensor<3x8xf32>, %arg5: tensor<3x8xf32>, %arg6: tensor<3x8xf32>, %arg7: tensor<3x5xf32>, %arg8: tensor<3x8xf32>, %arg9: tensor<3x8xf32>, %arg10: tensor<3x8xf32>, %arg11: tensor<3x8xf32>, %arg12: tensor<3x8xf32>, %arg13: tensor<3x8xf32>, %arg14: tensor<3x8xf32>, %arg15: tensor<3x8xf32>, %arg16: tensor<3x8xf32>, %arg17: tensor<3x8xf32>, %arg18: tensor<3x8xf32>, %arg19: tensor<3x8xf32>) -> (tensor<5x32xf32>, tensor<8x32xf32>, tensor<32xf32>, tensor<3x8xf32>, tensor<3x8xf32>) {
    %0 = stablehlo.add %arg4, %arg6 : tensor<3x8xf32>
    %1 = stablehlo.multiply %arg19, %0 : tensor<3x8xf32>
    %2 = stablehlo.multiply %0, %arg17 : tensor<3x8xf32>
    %3 = stablehlo.multiply %1, %arg18 : tensor<3x8xf32>
    %4 = stablehlo.add %arg5, %3 : tensor<3x8xf32>
    %5 = stablehlo.multiply %3, %arg17 : tensor<3x8xf32>
    %6 = stablehlo.add %4, %5 : tensor<3x8xf32>
    %7 = stablehlo.multiply %2, %arg16 : tensor<3x8xf32>
    %8 = stablehlo.multiply %arg15, %6 : tensor<3x8xf32>
    %9 = stablehlo.multiply %6, %arg13 : tensor<3x8xf32>
    %10 = stablehlo.multiply %8, %arg14 : tensor<3x8xf32>
    %11 = stablehlo.multiply %10, %arg13 : tensor<3x8xf32>
    %12 = stablehlo.add %10, %11 : tensor<3x8xf32>
    %13 = stablehlo.multiply %9, %arg12 : tensor<3x8xf32>
    %14 = stablehlo.multiply %arg11, %6 : tensor<3x8xf32>
    %15 = stablehlo.multiply %6, %arg10 : tensor<3x8xf32>
    %16 = stablehlo.multiply %15, %arg9 : tensor<3x8xf32>
    %17 = stablehlo.concatenate %13, %16, %12, %7, dim = 1 : (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x32xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %18 = stablehlo.reduce(%17 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<3x32xf32>, tensor<f32>) -> tensor<32xf32>
    %19 = stablehlo.reshape %18 : (tensor<32xf32>) -> tensor<1x32xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %20 = stablehlo.reduce(%19 init: %cst_0) applies stablehlo.add across dimensions = [0] : (tensor<1x32xf32>, tensor<f32>) -> tensor<32xf32>
    %21 = stablehlo.add %arg3, %20 : tensor<32xf32>
    %22 = stablehlo.dot_general %17, %arg8, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x32xf32>, tensor<3x8xf32>) -> tensor<32x8xf32>
    %23 = stablehlo.transpose %22, dims = [1, 0] : (tensor<32x8xf32>) -> tensor<8x32xf32>
    %24 = stablehlo.add %arg2, %23 : tensor<8x32xf32>
    %25 = stablehlo.dot_general %17, %arg0, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<3x32xf32>, tensor<8x32xf32>) -> tensor<3x8xf32>
    %26 = stablehlo.dot_general %17, %arg7, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x32xf32>, tensor<3x5xf32>) -> tensor<32x5xf32>
    %27 = stablehlo.transpose %26, dims = [1, 0] : (tensor<32x5xf32>) -> tensor<5x32xf32>
    %28 = stablehlo.add %arg1, %27 : tensor<5x32xf32>
    return %28, %24, %21, %25, %14 : tensor<5x32xf32>, tensor<8x32xf32>, tensor<32xf32>, tensor<3x8xf32>, tensor<3x8xf32>
  }
}
