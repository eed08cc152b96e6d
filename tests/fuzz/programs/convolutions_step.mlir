module @jit_convolutions_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x8x6x3xf32>, %arg1: tensor<3x3x3x4xf32> {tf.aliasing_output = 0 : i32}, %arg2: tensor<3x3x1x4xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<3x3x3x4xf32> {jax.result_info = "result[0]"}, tensor<3x3x1x4xf32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x8x6x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x8x6x4xf32>
    %1 = call @relu(%0) : (tensor<2x8x6x4xf32>) -> tensor<2x8x6x4xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x8x6x4xf32>
    %3 = stablehlo.compare GT, %0, %2, FLOAT : (tensor<2x8x6x4xf32>, tensor<2x8x6x4xf32>) -> tensor<2x8x6x4xi1>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x8x6x4xf32>
    %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<f32>
    %6 = "stablehlo.reduce_window"(%1, %5) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %36 = stablehlo.maximum %arg3, %arg4 : tensor<f32>
      stablehlo.return %36 : tensor<f32>
    }) : (tensor<2x8x6x4xf32>, tensor<f32>) -> tensor<2x4x3x4xf32>
    %7 = stablehlo.convolution(%6, %arg2) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x3x4xf32>, tensor<3x3x1x4xf32>) -> tensor<2x4x3x4xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_2 = stablehlo.constant dense<6> : tensor<i32>
    %8:3 = call @clip(%7, %c, %c_2) : (tensor<2x4x3x4xf32>, tensor<i32>, tensor<i32>) -> (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>)
    %9 = stablehlo.multiply %8#0, %8#0 : tensor<2x4x3x4xf32>
    %cst_3 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x4x3x4xf32>
    %11 = stablehlo.multiply %10, %8#0 : tensor<2x4x3x4xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %12 = stablehlo.reduce(%9 init: %cst_4) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<2x4x3x4xf32>, tensor<f32>) -> tensor<f32>
    %cst_5 = stablehlo.constant dense<9.600000e+01> : tensor<f32>
    %13 = stablehlo.divide %12, %cst_5 : tensor<f32>
    %cst_6 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_7 = stablehlo.constant dense<9.600000e+01> : tensor<f32>
    %14 = stablehlo.divide %cst_6, %cst_7 : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [] : (tensor<f32>) -> tensor<2x4x3x4xf32>
    %16 = stablehlo.multiply %15, %11 : tensor<2x4x3x4xf32>
    %17 = call @clip_0(%8#1, %8#2, %16) : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> tensor<2x4x3x4xf32>
    %18 = stablehlo.convolution(%6, %17) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 4 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> tensor<3x3x1x4xf32>
    %19 = stablehlo.reshape %arg2 : (tensor<3x3x1x4xf32>) -> tensor<3x3x1x4x1xf32>
    %20 = stablehlo.transpose %19, dims = [0, 1, 3, 2, 4] : (tensor<3x3x1x4x1xf32>) -> tensor<3x3x4x1x1xf32>
    %21 = stablehlo.reshape %20 : (tensor<3x3x4x1x1xf32>) -> tensor<3x3x4x1xf32>
    %22 = stablehlo.reverse %21, dims = [0, 1] : tensor<3x3x4x1xf32>
    %23 = stablehlo.convolution(%17, %22) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x3x4xf32>, tensor<3x3x4x1xf32>) -> tensor<2x4x3x4xf32>
    %cst_8 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %24 = stablehlo.pad %1, %cst_8, low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<2x8x6x4xf32>, tensor<f32>) -> tensor<2x8x6x4xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %25 = "stablehlo.select_and_scatter"(%24, %23, %cst_9) <{padding = dense<0> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %36 = stablehlo.compare GE, %arg3, %arg4, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %36 : tensor<i1>
    }, {
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %36 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %36 : tensor<f32>
    }) : (tensor<2x8x6x4xf32>, tensor<2x4x3x4xf32>, tensor<f32>) -> tensor<2x8x6x4xf32>
    %26 = stablehlo.slice %25 [0:2, 0:8, 0:6, 0:4] : (tensor<2x8x6x4xf32>) -> tensor<2x8x6x4xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<2x8x6x4xf32>
    %28 = stablehlo.select %3, %26, %27 : tensor<2x8x6x4xi1>, tensor<2x8x6x4xf32>
    %29 = stablehlo.convolution(%arg0, %28) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x8x6x3xf32>, tensor<2x8x6x4xf32>) -> tensor<3x3x3x4xf32>
    %cst_11 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %30 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<3x3x3x4xf32>
    %31 = stablehlo.multiply %30, %29 : tensor<3x3x3x4xf32>
    %32 = stablehlo.subtract %arg1, %31 : tensor<3x3x3x4xf32>
    %cst_12 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %33 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %34 = stablehlo.multiply %33, %18 : tensor<3x3x1x4xf32>
    %35 = stablehlo.subtract %arg2, %34 : tensor<3x3x1x4xf32>
    return %32, %35 : tensor<3x3x3x4xf32>, tensor<3x3x1x4xf32>
  }
  func.func private @relu(%arg0: tensor<2x8x6x4xf32>) -> tensor<2x8x6x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x8x6x4xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<2x8x6x4xf32>
    return %1 : tensor<2x8x6x4xf32>
  }
  func.func private @clip(%arg0: tensor<2x4x3x4xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x4x3x4xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<2x4x3x4xf32>
    %3 = stablehlo.compare EQ, %arg0, %2, FLOAT : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> tensor<2x4x3x4xi1>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x4x3x4xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x4x3x4xf32>
    %6 = stablehlo.select %3, %4, %5 : tensor<2x4x3x4xi1>, tensor<2x4x3x4xf32>
    %7 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x4x3x4xf32>
    %8 = stablehlo.compare EQ, %7, %2, FLOAT : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> tensor<2x4x3x4xi1>
    %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x4x3x4xf32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x4x3x4xf32>
    %11 = stablehlo.select %8, %9, %10 : tensor<2x4x3x4xi1>, tensor<2x4x3x4xf32>
    %12 = stablehlo.divide %6, %11 : tensor<2x4x3x4xf32>
    %13 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> tensor<2x4x3x4xf32>
    %15 = stablehlo.minimum %14, %2 : tensor<2x4x3x4xf32>
    %16 = stablehlo.compare EQ, %2, %15, FLOAT : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> tensor<2x4x3x4xi1>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x4x3x4xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %18 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x4x3x4xf32>
    %19 = stablehlo.select %16, %17, %18 : tensor<2x4x3x4xi1>, tensor<2x4x3x4xf32>
    %20 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> tensor<2x4x3x4xf32>
    %21 = stablehlo.compare EQ, %20, %15, FLOAT : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> tensor<2x4x3x4xi1>
    %cst_5 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %22 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2x4x3x4xf32>
    %cst_6 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<2x4x3x4xf32>
    %24 = stablehlo.select %21, %22, %23 : tensor<2x4x3x4xi1>, tensor<2x4x3x4xf32>
    %25 = stablehlo.divide %19, %24 : tensor<2x4x3x4xf32>
    return %15, %12, %25 : tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>
  }
  func.func private @clip_0(%arg0: tensor<2x4x3x4xf32>, %arg1: tensor<2x4x3x4xf32>, %arg2: tensor<2x4x3x4xf32>) -> tensor<2x4x3x4xf32> {
    %0 = stablehlo.multiply %arg2, %arg1 : tensor<2x4x3x4xf32>
    %1 = stablehlo.multiply %0, %arg0 : tensor<2x4x3x4xf32>
    return %1 : tensor<2x4x3x4xf32>
  }
}
