module @jit_until_it_converges attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x4xf32>, %arg1: tensor<f32>) -> (tensor<4xf32> {jax.result_info = "result[0]"}, tensor<i32> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:4 = stablehlo.while(%iterArg = %arg1, %iterArg_0 = %arg0, %iterArg_1 = %0, %iterArg_2 = %c) : tensor<f32>, tensor<4x4xf32>, tensor<4xf32>, tensor<i32>
    cond {
      %2 = stablehlo.abs %iterArg_1 : tensor<4xf32>
      %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %3 = stablehlo.reduce(%2 init: %cst_3) applies stablehlo.maximum across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      %4 = stablehlo.compare GT, %3, %iterArg, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %c_4 = stablehlo.constant dense<9> : tensor<i32>
      %5 = stablehlo.compare LT, %iterArg_2, %c_4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_5 = stablehlo.constant dense<false> : tensor<i1>
      %6 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i1>) -> tensor<i1>
      %7 = stablehlo.compare NE, %5, %6, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %8 = stablehlo.convert %7 : tensor<i1>
      %9 = stablehlo.and %4, %8 : tensor<i1>
      stablehlo.return %9 : tensor<i1>
    } do {
      %2 = stablehlo.dot_general %iterArg_1, %iterArg_0, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
      %3 = stablehlo.tanh %2 : tensor<4xf32>
      %cst_3 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
      %4 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %5 = stablehlo.multiply %4, %3 : tensor<4xf32>
      %c_4 = stablehlo.constant dense<1> : tensor<i32>
      %6 = stablehlo.add %iterArg_2, %c_4 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_0, %5, %6 : tensor<f32>, tensor<4x4xf32>, tensor<4xf32>, tensor<i32>
    }
    return %1#2, %1#3 : tensor<4xf32>, tensor<i32>
  }
}
