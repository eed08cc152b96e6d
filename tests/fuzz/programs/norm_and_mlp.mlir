module @jit_norm_and_mlp attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<7x8xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<8x9xf32>, %arg4: tensor<9x8xf32>) -> (tensor<7x8xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<7x8xf32>, tensor<f32>) -> tensor<7xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<7xf32>) -> tensor<7x1xf32>
    %cst_0 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<7x1xf32>
    %3 = stablehlo.divide %1, %2 : tensor<7x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<7x1xf32>) -> tensor<7x8xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<7x8xf32>
    %6 = stablehlo.multiply %5, %5 : tensor<7x8xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<7x8xf32>, tensor<f32>) -> tensor<7xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<7xf32>) -> tensor<7x1xf32>
    %cst_2 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<7x1xf32>
    %10 = stablehlo.divide %8, %9 : tensor<7x1xf32>
    %cst_3 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<7x1xf32>
    %12 = stablehlo.add %10, %11 : tensor<7x1xf32>
    %13 = stablehlo.rsqrt %12 : tensor<7x1xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1] : (tensor<7x1xf32>) -> tensor<7x8xf32>
    %15 = stablehlo.multiply %5, %14 : tensor<7x8xf32>
    %16 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<7x8xf32>
    %18 = stablehlo.multiply %15, %17 : tensor<7x8xf32>
    %19 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<7x8xf32>
    %21 = stablehlo.add %18, %20 : tensor<7x8xf32>
    %22 = stablehlo.dot_general %21, %arg3, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<7x8xf32>, tensor<8x9xf32>) -> tensor<7x9xf32>
    %23 = stablehlo.multiply %22, %22 : tensor<7x9xf32>
    %24 = stablehlo.multiply %23, %22 : tensor<7x9xf32>
    %cst_4 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %25 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<7x9xf32>
    %26 = stablehlo.multiply %25, %24 : tensor<7x9xf32>
    %27 = stablehlo.add %22, %26 : tensor<7x9xf32>
    %cst_5 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %28 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<7x9xf32>
    %29 = stablehlo.multiply %28, %27 : tensor<7x9xf32>
    %30 = stablehlo.tanh %29 : tensor<7x9xf32>
    %cst_6 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %31 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<7x9xf32>
    %32 = stablehlo.add %31, %30 : tensor<7x9xf32>
    %cst_7 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %33 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7x9xf32>
    %34 = stablehlo.multiply %33, %32 : tensor<7x9xf32>
    %35 = stablehlo.multiply %22, %34 : tensor<7x9xf32>
    %36 = stablehlo.dot_general %35, %arg4, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<7x9xf32>, tensor<9x8xf32>) -> tensor<7x8xf32>
    %37 = stablehlo.add %arg0, %36 : tensor<7x8xf32>
    return %37 : tensor<7x8xf32>
  }
}
