module @jit_batch_norm_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x4x5x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<6xf32>) -> (tensor<3x4x5x6xf32> {jax.result_info = "result[0]"}, tensor<6xf32> {jax.result_info = "result[1]"}, tensor<6xf32> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<3x4x5x6xf32>, tensor<f32>) -> tensor<6xf32>
    %cst_0 = stablehlo.constant dense<6.000000e+01> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %2 = stablehlo.divide %0, %1 : tensor<6xf32>
    %3 = stablehlo.multiply %arg0, %arg0 : tensor<3x4x5x6xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst_1) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<3x4x5x6xf32>, tensor<f32>) -> tensor<6xf32>
    %cst_2 = stablehlo.constant dense<6.000000e+01> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %6 = stablehlo.divide %4, %5 : tensor<6xf32>
    %7 = stablehlo.broadcast_in_dim %2, dims = [3] : (tensor<6xf32>) -> tensor<1x1x1x6xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2, 3] : (tensor<1x1x1x6xf32>) -> tensor<3x4x5x6xf32>
    %9 = stablehlo.subtract %arg0, %8 : tensor<3x4x5x6xf32>
    %10 = stablehlo.multiply %2, %2 : tensor<6xf32>
    %cst_3 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %12 = stablehlo.multiply %11, %2 : tensor<6xf32>
    %13 = stablehlo.subtract %6, %10 : tensor<6xf32>
    %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %15 = stablehlo.add %13, %14 : tensor<6xf32>
    %16 = stablehlo.rsqrt %15 : tensor<6xf32>
    %17 = stablehlo.divide %16, %15 : tensor<6xf32>
    %cst_5 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %18 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %19 = stablehlo.multiply %18, %17 : tensor<6xf32>
    %20 = stablehlo.broadcast_in_dim %16, dims = [3] : (tensor<6xf32>) -> tensor<1x1x1x6xf32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0, 1, 2, 3] : (tensor<1x1x1x6xf32>) -> tensor<3x4x5x6xf32>
    %22 = stablehlo.multiply %9, %21 : tensor<3x4x5x6xf32>
    %23 = stablehlo.broadcast_in_dim %arg1, dims = [3] : (tensor<6xf32>) -> tensor<1x1x1x6xf32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [0, 1, 2, 3] : (tensor<1x1x1x6xf32>) -> tensor<3x4x5x6xf32>
    %25 = stablehlo.multiply %22, %24 : tensor<3x4x5x6xf32>
    %26 = stablehlo.broadcast_in_dim %arg2, dims = [3] : (tensor<6xf32>) -> tensor<1x1x1x6xf32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [0, 1, 2, 3] : (tensor<1x1x1x6xf32>) -> tensor<3x4x5x6xf32>
    %28 = stablehlo.add %25, %27 : tensor<3x4x5x6xf32>
    %29:3 = call @silu(%28) : (tensor<3x4x5x6xf32>) -> (tensor<3x4x5x6xf32>, tensor<3x4x5x6xf32>, tensor<3x4x5x6xf32>)
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %30 = stablehlo.reduce(%29#0 init: %cst_6) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<3x4x5x6xf32>, tensor<f32>) -> tensor<f32>
    %cst_7 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %31 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x4x5x6xf32>
    %32 = call @silu_0(%29#1, %29#2, %28, %31) : (tensor<3x4x5x6xf32>, tensor<3x4x5x6xf32>, tensor<3x4x5x6xf32>, tensor<3x4x5x6xf32>) -> tensor<3x4x5x6xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %33 = stablehlo.reduce(%32 init: %cst_8) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<3x4x5x6xf32>, tensor<f32>) -> tensor<6xf32>
    %34 = stablehlo.reshape %33 : (tensor<6xf32>) -> tensor<1x1x1x6xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %35 = stablehlo.reduce(%34 init: %cst_9) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x1x1x6xf32>, tensor<f32>) -> tensor<6xf32>
    %36 = stablehlo.multiply %22, %32 : tensor<3x4x5x6xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %37 = stablehlo.reduce(%36 init: %cst_10) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<3x4x5x6xf32>, tensor<f32>) -> tensor<6xf32>
    %38 = stablehlo.reshape %37 : (tensor<6xf32>) -> tensor<1x1x1x6xf32>
    %39 = stablehlo.broadcast_in_dim %23, dims = [0, 1, 2, 3] : (tensor<1x1x1x6xf32>) -> tensor<3x4x5x6xf32>
    %40 = stablehlo.multiply %32, %39 : tensor<3x4x5x6xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %41 = stablehlo.reduce(%38 init: %cst_11) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x1x1x6xf32>, tensor<f32>) -> tensor<6xf32>
    %42 = stablehlo.multiply %9, %40 : tensor<3x4x5x6xf32>
    %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %43 = stablehlo.reduce(%42 init: %cst_12) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<3x4x5x6xf32>, tensor<f32>) -> tensor<6xf32>
    %44 = stablehlo.reshape %43 : (tensor<6xf32>) -> tensor<1x1x1x6xf32>
    %45 = stablehlo.broadcast_in_dim %20, dims = [0, 1, 2, 3] : (tensor<1x1x1x6xf32>) -> tensor<3x4x5x6xf32>
    %46 = stablehlo.multiply %40, %45 : tensor<3x4x5x6xf32>
    %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %47 = stablehlo.reduce(%44 init: %cst_13) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x1x1x6xf32>, tensor<f32>) -> tensor<6xf32>
    %48 = stablehlo.multiply %47, %19 : tensor<6xf32>
    %49 = stablehlo.negate %48 : tensor<6xf32>
    %50 = stablehlo.multiply %49, %12 : tensor<6xf32>
    %51 = stablehlo.negate %46 : tensor<3x4x5x6xf32>
    %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %52 = stablehlo.reduce(%51 init: %cst_14) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<3x4x5x6xf32>, tensor<f32>) -> tensor<6xf32>
    %53 = stablehlo.reshape %52 : (tensor<6xf32>) -> tensor<1x1x1x6xf32>
    %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %54 = stablehlo.reduce(%53 init: %cst_15) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x1x1x6xf32>, tensor<f32>) -> tensor<6xf32>
    %55 = stablehlo.add %50, %54 : tensor<6xf32>
    %cst_16 = stablehlo.constant dense<6.000000e+01> : tensor<f32>
    %56 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %57 = stablehlo.divide %48, %56 : tensor<6xf32>
    %58 = stablehlo.broadcast_in_dim %57, dims = [3] : (tensor<6xf32>) -> tensor<3x4x5x6xf32>
    %59 = stablehlo.multiply %arg0, %58 : tensor<3x4x5x6xf32>
    %60 = stablehlo.add %46, %59 : tensor<3x4x5x6xf32>
    %61 = stablehlo.multiply %58, %arg0 : tensor<3x4x5x6xf32>
    %62 = stablehlo.add %60, %61 : tensor<3x4x5x6xf32>
    %cst_17 = stablehlo.constant dense<6.000000e+01> : tensor<f32>
    %63 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %64 = stablehlo.divide %55, %63 : tensor<6xf32>
    %65 = stablehlo.broadcast_in_dim %64, dims = [3] : (tensor<6xf32>) -> tensor<3x4x5x6xf32>
    %66 = stablehlo.add %62, %65 : tensor<3x4x5x6xf32>
    return %66, %41, %35 : tensor<3x4x5x6xf32>, tensor<6xf32>, tensor<6xf32>
  }
  func.func private @silu(%arg0: tensor<3x4x5x6xf32>) -> (tensor<3x4x5x6xf32>, tensor<3x4x5x6xf32>, tensor<3x4x5x6xf32>) {
    %0 = stablehlo.negate %arg0 : tensor<3x4x5x6xf32>
    %1 = stablehlo.exponential %0 : tensor<3x4x5x6xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x4x5x6xf32>
    %3 = stablehlo.add %2, %1 : tensor<3x4x5x6xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x4x5x6xf32>
    %5 = stablehlo.divide %4, %3 : tensor<3x4x5x6xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<3x4x5x6xf32>
    %7 = stablehlo.subtract %6, %5 : tensor<3x4x5x6xf32>
    %8 = stablehlo.multiply %5, %7 : tensor<3x4x5x6xf32>
    %9 = stablehlo.multiply %arg0, %5 : tensor<3x4x5x6xf32>
    return %9, %8, %5 : tensor<3x4x5x6xf32>, tensor<3x4x5x6xf32>, tensor<3x4x5x6xf32>
  }
  func.func private @silu_0(%arg0: tensor<3x4x5x6xf32>, %arg1: tensor<3x4x5x6xf32>, %arg2: tensor<3x4x5x6xf32>, %arg3: tensor<3x4x5x6xf32>) -> tensor<3x4x5x6xf32> {
    %0 = stablehlo.multiply %arg2, %arg3 : tensor<3x4x5x6xf32>
    %1 = stablehlo.multiply %arg3, %arg1 : tensor<3x4x5x6xf32>
    %2 = stablehlo.multiply %0, %arg0 : tensor<3x4x5x6xf32>
    %3 = stablehlo.add %1, %2 : tensor<3x4x5x6xf32>
    return %3 : tensor<3x4x5x6xf32>
  }
}
