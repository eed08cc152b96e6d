module @jit_cached_decoding attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x6xf32>, %arg1: tensor<3x4x6xf32> {tf.aliasing_output = 1 : i32}, %arg2: tensor<3x4x6xf32> {tf.aliasing_output = 2 : i32}, %arg3: tensor<i32>) -> (tensor<3x6xf32> {jax.result_info = "result[0]"}, tensor<3x4x6xf32> {jax.result_info = "result[1]"}, tensor<3x4x6xf32> {jax.result_info = "result[2]"}) {
    %0 = stablehlo.tanh %arg0 : tensor<5x6xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<5x6xf32>, tensor<f32>) -> tensor<6xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [2] : (tensor<6xf32>) -> tensor<1x1x6xf32>
    %3 = stablehlo.reshape %2 : (tensor<1x1x6xf32>) -> tensor<1x1x1x1x1x6xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2, 3, 4, 5] : (tensor<1x1x1x1x1x6xf32>) -> tensor<3x1x1x1x1x6xf32>
    %5 = stablehlo.reshape %4 : (tensor<3x1x1x1x1x6xf32>) -> tensor<3x1x6xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.compare LT, %arg3, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<4> : tensor<i32>
    %7 = stablehlo.add %arg3, %c_0 : tensor<i32>
    %8 = stablehlo.select %6, %7, %arg3 : tensor<i1>, tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %9 = stablehlo.dynamic_update_slice %arg1, %5, %c_1, %8, %c_2 : (tensor<3x4x6xf32>, tensor<3x1x6xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x4x6xf32>
    %10 = stablehlo.negate %1 : tensor<6xf32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [2] : (tensor<6xf32>) -> tensor<1x1x6xf32>
    %12 = stablehlo.reshape %11 : (tensor<1x1x6xf32>) -> tensor<1x1x1x1x1x6xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1, 2, 3, 4, 5] : (tensor<1x1x1x1x1x6xf32>) -> tensor<3x1x1x1x1x6xf32>
    %14 = stablehlo.reshape %13 : (tensor<3x1x1x1x1x6xf32>) -> tensor<3x1x6xf32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %15 = stablehlo.compare LT, %arg3, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_4 = stablehlo.constant dense<4> : tensor<i32>
    %16 = stablehlo.add %arg3, %c_4 : tensor<i32>
    %17 = stablehlo.select %15, %16, %arg3 : tensor<i1>, tensor<i32>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %c_6 = stablehlo.constant dense<0> : tensor<i32>
    %18 = stablehlo.dynamic_update_slice %arg2, %14, %c_5, %17, %c_6 : (tensor<3x4x6xf32>, tensor<3x1x6xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x4x6xf32>
    %19 = stablehlo.dot_general %1, %9, contracting_dims = [0] x [2], precision = [DEFAULT, DEFAULT] : (tensor<6xf32>, tensor<3x4x6xf32>) -> tensor<3x4xf32>
    %20 = stablehlo.iota dim = 0 : tensor<4xi32>
    %21 = stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %22 = stablehlo.compare LE, %20, %21, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %cst_7 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %23 = call @_where(%22, %19, %cst_7) : (tensor<4xi1>, tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
    %cst_8 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %24 = stablehlo.reduce(%23 init: %cst_8) applies stablehlo.maximum across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
    %cst_9 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %25 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %26 = stablehlo.maximum %25, %24 : tensor<3xf32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [0] : (tensor<3xf32>) -> tensor<3x1xf32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [0, 1] : (tensor<3x1xf32>) -> tensor<3x4xf32>
    %29 = stablehlo.subtract %23, %28 : tensor<3x4xf32>
    %30 = stablehlo.exponential %29 : tensor<3x4xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %31 = stablehlo.reduce(%30 init: %cst_10) applies stablehlo.add across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
    %32 = stablehlo.broadcast_in_dim %31, dims = [0] : (tensor<3xf32>) -> tensor<3x1xf32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [0, 1] : (tensor<3x1xf32>) -> tensor<3x4xf32>
    %34 = stablehlo.divide %30, %33 : tensor<3x4xf32>
    %35 = stablehlo.dot_general %34, %18, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<3x4xf32>, tensor<3x4x6xf32>) -> tensor<3x6xf32>
    return %35, %9, %18 : tensor<3x6xf32>, tensor<3x4x6xf32>, tensor<3x4x6xf32>
  }
  func.func private @_where(%arg0: tensor<4xi1>, %arg1: tensor<3x4xf32>, %arg2: tensor<f32>) -> tensor<3x4xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<4xi1>) -> tensor<3x4xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<3x4xi1>, tensor<3x4xf32>
    return %3 : tensor<3x4xf32>
  }
}
