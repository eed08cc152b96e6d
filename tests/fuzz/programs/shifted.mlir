module @jit_shifted attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6x5xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<6x5xf32> {jax.result_info = "result[0]"}, tensor<6x6xf32> {jax.result_info = "result[1]"}) {
    %0 = call @_roll_static(%arg0) : (tensor<6x5xf32>) -> tensor<6x5xf32>
    %1 = stablehlo.slice %arg0 [1:6, 0:5] : (tensor<6x5xf32>) -> tensor<5x5xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %2 = call @_pad(%1, %c) : (tensor<5x5xf32>, tensor<i32>) -> tensor<6x5xf32>
    %3 = stablehlo.subtract %0, %2 : tensor<6x5xf32>
    %4 = stablehlo.slice %3 [0:6, 0:2] : (tensor<6x5xf32>) -> tensor<6x2xf32>
    %5 = stablehlo.slice %arg0 [0:6, 2:5] : (tensor<6x5xf32>) -> tensor<6x3xf32>
    %6 = stablehlo.reverse %5, dims = [1] : tensor<6x3xf32>
    %7 = stablehlo.concatenate %4, %6, dim = 1 : (tensor<6x2xf32>, tensor<6x3xf32>) -> tensor<6x5xf32>
    %8 = call @_flip(%arg0) : (tensor<6x5xf32>) -> tensor<6x5xf32>
    %9 = stablehlo.transpose %3, dims = [1, 0] : (tensor<6x5xf32>) -> tensor<5x6xf32>
    %10 = stablehlo.dot_general %8, %9, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<6x5xf32>, tensor<5x6xf32>) -> tensor<6x6xf32>
    return %7, %10 : tensor<6x5xf32>, tensor<6x6xf32>
  }
  func.func private @_roll_static(%arg0: tensor<6x5xf32>) -> tensor<6x5xf32> {
    %0 = stablehlo.slice %arg0 [5:6, 0:5] : (tensor<6x5xf32>) -> tensor<1x5xf32>
    %1 = stablehlo.slice %arg0 [0:5, 0:5] : (tensor<6x5xf32>) -> tensor<5x5xf32>
    %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<1x5xf32>, tensor<5x5xf32>) -> tensor<6x5xf32>
    return %2 : tensor<6x5xf32>
  }
  func.func private @_pad(%arg0: tensor<5x5xf32>, %arg1: tensor<i32>) -> tensor<6x5xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.pad %arg0, %0, low = [0, 0], high = [1, 0], interior = [0, 0] : (tensor<5x5xf32>, tensor<f32>) -> tensor<6x5xf32>
    return %1 : tensor<6x5xf32>
  }
  func.func private @_flip(%arg0: tensor<6x5xf32>) -> tensor<6x5xf32> {
    %0 = stablehlo.reverse %arg0, dims = [0] : tensor<6x5xf32>
    return %0 : tensor<6x5xf32>
  }
}
