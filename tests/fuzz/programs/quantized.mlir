module @jit_quantized attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x6xi32>, %arg1: tensor<6x5xi32>) -> (tensor<4x5xf32> {jax.result_info = "result[0]"}, tensor<4x5xi8> {jax.result_info = "result[1]"}, tensor<4x5xi8> {jax.result_info = "result[2]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x6xi32>, tensor<6x5xi32>) -> tensor<4x5xi32>
    %c = stablehlo.constant dense<3> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x5xi32>
    %2 = stablehlo.shift_right_arithmetic %0, %1 : tensor<4x5xi32>
    %c_0 = stablehlo.constant dense<-128> : tensor<i32>
    %c_1 = stablehlo.constant dense<127> : tensor<i32>
    %3 = call @clip(%2, %c_0, %c_1) : (tensor<4x5xi32>, tensor<i32>, tensor<i32>) -> tensor<4x5xi32>
    %4 = stablehlo.convert %3 : (tensor<4x5xi32>) -> tensor<4x5xi8>
    %c_2 = stablehlo.constant dense<3> : tensor<i8>
    %5 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i8>) -> tensor<4x5xi8>
    %6 = stablehlo.xor %4, %5 : tensor<4x5xi8>
    %c_3 = stablehlo.constant dense<15> : tensor<i8>
    %7 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i8>) -> tensor<4x5xi8>
    %8 = stablehlo.and %6, %7 : tensor<4x5xi8>
    %9 = stablehlo.convert %4 : (tensor<4x5xi8>) -> tensor<4x5xf32>
    %cst = stablehlo.constant dense<5.000000e-02> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %11 = stablehlo.multiply %9, %10 : tensor<4x5xf32>
    %12 = stablehlo.popcnt %8 : tensor<4x5xi8>
    return %11, %8, %12 : tensor<4x5xf32>, tensor<4x5xi8>, tensor<4x5xi8>
  }
  func.func private @clip(%arg0: tensor<4x5xi32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<4x5xi32> {
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<4x5xi32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<4x5xi32>
    %3 = stablehlo.convert %arg2 : tensor<i32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<i32>) -> tensor<4x5xi32>
    %5 = stablehlo.minimum %4, %2 : tensor<4x5xi32>
    return %5 : tensor<4x5xi32>
  }
}
