module @jit_reversed_scan attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<7x3xf32>, %arg1: tensor<3x5xf32>, %arg2: tensor<5x5xf32>) -> (tensor<5xf32> {jax.result_info = "result[0]"}, tensor<7x5xf32> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<7x5xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %2:6 = stablehlo.while(%iterArg = %arg0, %iterArg_1 = %arg1, %iterArg_2 = %arg2, %iterArg_3 = %c, %iterArg_4 = %0, %iterArg_5 = %1) : tensor<7x3xf32>, tensor<3x5xf32>, tensor<5x5xf32>, tensor<i32>, tensor<5xf32>, tensor<7x5xf32>
    cond {
      %c_6 = stablehlo.constant dense<7> : tensor<i32>
      %3 = stablehlo.compare LT, %iterArg_3, %c_6, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %c_6 = stablehlo.constant dense<7> : tensor<i32>
      %3 = stablehlo.subtract %c_6, %iterArg_3 : tensor<i32>
      %c_7 = stablehlo.constant dense<1> : tensor<i32>
      %4 = stablehlo.subtract %3, %c_7 : tensor<i32>
      %5 = func.call @dynamic_index_in_dim(%iterArg, %4) : (tensor<7x3xf32>, tensor<i32>) -> tensor<3xf32>
      %6:2 = func.call @closed_call(%iterArg_1, %iterArg_2, %iterArg_4, %5) : (tensor<3x5xf32>, tensor<5x5xf32>, tensor<5xf32>, tensor<3xf32>) -> (tensor<5xf32>, tensor<5xf32>)
      %7 = func.call @dynamic_update_index_in_dim(%iterArg_5, %6#1, %4) : (tensor<7x5xf32>, tensor<5xf32>, tensor<i32>) -> tensor<7x5xf32>
      %c_8 = stablehlo.constant dense<1> : tensor<i32>
      %8 = stablehlo.add %iterArg_3, %c_8 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_1, %iterArg_2, %8, %6#0, %7 : tensor<7x3xf32>, tensor<3x5xf32>, tensor<5x5xf32>, tensor<i32>, tensor<5xf32>, tensor<7x5xf32>
    }
    return %2#4, %2#5 : tensor<5xf32>, tensor<7x5xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<7x3xf32>, %arg1: tensor<i32>) -> tensor<3xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 3] : (tensor<7x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3xf32>) -> tensor<3xf32>
    return %1 : tensor<3xf32>
  }
  func.func private @closed_call(%arg0: tensor<3x5xf32>, %arg1: tensor<5x5xf32>, %arg2: tensor<5xf32>, %arg3: tensor<3xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
    %0 = stablehlo.dot_general %arg3, %arg0, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3xf32>, tensor<3x5xf32>) -> tensor<5xf32>
    %1 = stablehlo.dot_general %arg2, %arg1, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<5xf32>, tensor<5x5xf32>) -> tensor<5xf32>
    %2 = stablehlo.add %0, %1 : tensor<5xf32>
    %3 = stablehlo.tanh %2 : tensor<5xf32>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %5 = stablehlo.multiply %3, %4 : tensor<5xf32>
    return %3, %5 : tensor<5xf32>, tensor<5xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<7x5xf32>, %arg1: tensor<5xf32>, %arg2: tensor<i32>) -> tensor<7x5xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c : (tensor<7x5xf32>, tensor<1x5xf32>, tensor<i32>, tensor<i32>) -> tensor<7x5xf32>
    return %1 : tensor<7x5xf32>
  }
}
