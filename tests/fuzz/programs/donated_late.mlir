module @jit_donated_late attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x7xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<7x7xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<5x7xf32> {jax.result_info = "result[0]"}, tensor<7x7xf32> {jax.result_info = "result[1]"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<5x7xf32>, tensor<7x7xf32>) -> tensor<5x7xf32>
    %1 = stablehlo.tanh %0 : tensor<5x7xf32>
    %2 = stablehlo.negate %1 : tensor<5x7xf32>
    %3 = stablehlo.exponential %2 : tensor<5x7xf32>
    %4 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<7x7xf32>) -> tensor<7x7xf32>
    %5 = stablehlo.dot_general %3, %4, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<5x7xf32>, tensor<7x7xf32>) -> tensor<5x7xf32>
    %6 = stablehlo.add %arg0, %5 : tensor<5x7xf32>
    %7 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<5x7xf32>) -> tensor<7x5xf32>
    %8 = stablehlo.dot_general %7, %5, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<7x5xf32>, tensor<5x7xf32>) -> tensor<7x7xf32>
    %9 = stablehlo.subtract %arg1, %8 : tensor<7x7xf32>
    %10 = stablehlo.multiply %1, %5 : tensor<5x7xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.reduce(%10 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<5x7xf32>, tensor<f32>) -> tensor<f32>
    return %6, %9, %11 : tensor<5x7xf32>, tensor<7x7xf32>, tensor<f32>
  }
}
