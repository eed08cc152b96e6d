module @jit_prefix_products attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x6xf32>) -> (tensor<5x6xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.cosine %arg0 : tensor<5x6xf32>
    %1 = stablehlo.slice %0 [0:4:2, 0:6] : (tensor<5x6xf32>) -> tensor<2x6xf32>
    %2 = stablehlo.slice %0 [1:5:2, 0:6] : (tensor<5x6xf32>) -> tensor<2x6xf32>
    %3 = stablehlo.multiply %1, %2 : tensor<2x6xf32>
    %4 = stablehlo.slice %3 [0:1:2, 0:6] : (tensor<2x6xf32>) -> tensor<1x6xf32>
    %5 = stablehlo.slice %3 [1:2:2, 0:6] : (tensor<2x6xf32>) -> tensor<1x6xf32>
    %6 = stablehlo.multiply %4, %5 : tensor<1x6xf32>
    %7 = stablehlo.slice %6 [0:0, 0:6] : (tensor<1x6xf32>) -> tensor<0x6xf32>
    %8 = stablehlo.slice %3 [2:2:2, 0:6] : (tensor<2x6xf32>) -> tensor<0x6xf32>
    %9 = stablehlo.multiply %7, %8 : tensor<0x6xf32>
    %10 = stablehlo.slice %3 [0:1, 0:6] : (tensor<2x6xf32>) -> tensor<1x6xf32>
    %11 = stablehlo.concatenate %10, %9, dim = 0 : (tensor<1x6xf32>, tensor<0x6xf32>) -> tensor<1x6xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %12 = stablehlo.pad %11, %cst, low = [0, 0], high = [1, 0], interior = [1, 0] : (tensor<1x6xf32>, tensor<f32>) -> tensor<2x6xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %13 = stablehlo.pad %6, %cst_0, low = [1, 0], high = [0, 0], interior = [1, 0] : (tensor<1x6xf32>, tensor<f32>) -> tensor<2x6xf32>
    %14 = stablehlo.add %12, %13 : tensor<2x6xf32>
    %15 = stablehlo.slice %0 [2:5:2, 0:6] : (tensor<5x6xf32>) -> tensor<2x6xf32>
    %16 = stablehlo.multiply %14, %15 : tensor<2x6xf32>
    %17 = stablehlo.slice %0 [0:1, 0:6] : (tensor<5x6xf32>) -> tensor<1x6xf32>
    %18 = stablehlo.concatenate %17, %16, dim = 0 : (tensor<1x6xf32>, tensor<2x6xf32>) -> tensor<3x6xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %19 = stablehlo.pad %18, %cst_1, low = [0, 0], high = [0, 0], interior = [1, 0] : (tensor<3x6xf32>, tensor<f32>) -> tensor<5x6xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %20 = stablehlo.pad %14, %cst_2, low = [1, 0], high = [1, 0], interior = [1, 0] : (tensor<2x6xf32>, tensor<f32>) -> tensor<5x6xf32>
    %21 = stablehlo.add %19, %20 : tensor<5x6xf32>
    return %21 : tensor<5x6xf32>
  }
}
