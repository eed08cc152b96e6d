module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<64x128xf32>, %arg1: tensor<128xf32>, %arg2: tensor<128x10xf32>, %arg3: tensor<64x128xf32>, %arg4: tensor<128xf32>, %arg5: tensor<128x10xf32>, %arg6: tensor<64x128xf32>, %arg7: tensor<128xf32>, %arg8: tensor<128x10xf32>, %arg9: tensor<16x64xf32>) -> (tensor<64x128xf32> {jax.result_info = "result[0]['a']"}, tensor<128xf32> {jax.result_info = "result[0]['b']"}, tensor<128x10xf32> {jax.result_info = "result[0]['c']"}, tensor<64x128xf32> {jax.result_info = "result[1][0].nu['a']"}, tensor<128xf32> {jax.result_info = "result[1][0].nu['b']"}, tensor<128x10xf32> {jax.result_info = "result[1][0].nu['c']"}, tensor<64x128xf32> {jax.result_info = "result[1][2].trace['a']"}, tensor<128xf32> {jax.result_info = "result[1][2].trace['b']"}, tensor<128x10xf32> {jax.result_info = "result[1][2].trace['c']"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %0 = stablehlo.dot_general %arg9, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x64xf32>, tensor<64x128xf32>) -> tensor<16x128xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<128xf32>) -> tensor<1x128xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x128xf32>) -> tensor<16x128xf32>
    %3 = stablehlo.add %0, %2 : tensor<16x128xf32>
    %4 = stablehlo.tanh %3 : tensor<16x128xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x128xf32>
    %6 = stablehlo.subtract %5, %4 : tensor<16x128xf32>
    %7 = stablehlo.dot_general %4, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x128xf32>, tensor<128x10xf32>) -> tensor<16x10xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %8:4 = call @_var(%7, %c) : (tensor<16x10xf32>, tensor<i32>) -> (tensor<f32>, tensor<16x10xf32>, tensor<f32>, tensor<i1>)
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %9 = call @_var_0(%8#1, %8#2, %8#3, %cst_0) : (tensor<16x10xf32>, tensor<f32>, tensor<i1>, tensor<f32>) -> tensor<16x10xf32>
    %10 = stablehlo.dot_general %9, %4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x10xf32>, tensor<16x128xf32>) -> tensor<10x128xf32>
    %11 = stablehlo.transpose %10, dims = [1, 0] : (tensor<10x128xf32>) -> tensor<128x10xf32>
    %12 = stablehlo.dot_general %9, %arg2, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x10xf32>, tensor<128x10xf32>) -> tensor<16x128xf32>
    %13 = stablehlo.multiply %12, %6 : tensor<16x128xf32>
    %14 = stablehlo.multiply %13, %4 : tensor<16x128xf32>
    %15 = stablehlo.add %13, %14 : tensor<16x128xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %16 = stablehlo.reduce(%15 init: %cst_1) applies stablehlo.add across dimensions = [0] : (tensor<16x128xf32>, tensor<f32>) -> tensor<128xf32>
    %17 = stablehlo.reshape %16 : (tensor<128xf32>) -> tensor<1x128xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %18 = stablehlo.reduce(%17 init: %cst_2) applies stablehlo.add across dimensions = [0] : (tensor<1x128xf32>, tensor<f32>) -> tensor<128xf32>
    %19 = stablehlo.dot_general %15, %arg9, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x128xf32>, tensor<16x64xf32>) -> tensor<128x64xf32>
    %20 = stablehlo.transpose %19, dims = [1, 0] : (tensor<128x64xf32>) -> tensor<64x128xf32>
    %21 = stablehlo.multiply %20, %20 : tensor<64x128xf32>
    %cst_3 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %22 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<64x128xf32>
    %23 = stablehlo.multiply %22, %21 : tensor<64x128xf32>
    %cst_4 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %24 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<64x128xf32>
    %25 = stablehlo.multiply %24, %arg3 : tensor<64x128xf32>
    %26 = stablehlo.add %23, %25 : tensor<64x128xf32>
    %27 = stablehlo.multiply %18, %18 : tensor<128xf32>
    %cst_5 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %28 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<128xf32>
    %29 = stablehlo.multiply %28, %27 : tensor<128xf32>
    %cst_6 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %30 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<128xf32>
    %31 = stablehlo.multiply %30, %arg4 : tensor<128xf32>
    %32 = stablehlo.add %29, %31 : tensor<128xf32>
    %33 = stablehlo.multiply %11, %11 : tensor<128x10xf32>
    %cst_7 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %34 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<128x10xf32>
    %35 = stablehlo.multiply %34, %33 : tensor<128x10xf32>
    %cst_8 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %36 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<128x10xf32>
    %37 = stablehlo.multiply %36, %arg5 : tensor<128x10xf32>
    %38 = stablehlo.add %35, %37 : tensor<128x10xf32>
    %cst_9 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %39 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<64x128xf32>
    %40 = stablehlo.add %26, %39 : tensor<64x128xf32>
    %41 = stablehlo.rsqrt %40 : tensor<64x128xf32>
    %cst_10 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %42 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<128xf32>
    %43 = stablehlo.add %32, %42 : tensor<128xf32>
    %44 = stablehlo.rsqrt %43 : tensor<128xf32>
    %cst_11 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %45 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<128x10xf32>
    %46 = stablehlo.add %38, %45 : tensor<128x10xf32>
    %47 = stablehlo.rsqrt %46 : tensor<128x10xf32>
    %48 = stablehlo.multiply %41, %20 : tensor<64x128xf32>
    %49 = stablehlo.multiply %44, %18 : tensor<128xf32>
    %50 = stablehlo.multiply %47, %11 : tensor<128x10xf32>
    %cst_12 = stablehlo.constant dense<-1.000000e-03> : tensor<f32>
    %51 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<64x128xf32>
    %52 = stablehlo.multiply %51, %48 : tensor<64x128xf32>
    %cst_13 = stablehlo.constant dense<-1.000000e-03> : tensor<f32>
    %53 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<128xf32>
    %54 = stablehlo.multiply %53, %49 : tensor<128xf32>
    %cst_14 = stablehlo.constant dense<-1.000000e-03> : tensor<f32>
    %55 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<128x10xf32>
    %56 = stablehlo.multiply %55, %50 : tensor<128x10xf32>
    %cst_15 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %57 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<64x128xf32>
    %58 = stablehlo.multiply %57, %arg6 : tensor<64x128xf32>
    %59 = stablehlo.add %52, %58 : tensor<64x128xf32>
    %cst_16 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %60 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<128xf32>
    %61 = stablehlo.multiply %60, %arg7 : tensor<128xf32>
    %62 = stablehlo.add %54, %61 : tensor<128xf32>
    %cst_17 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %63 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<128x10xf32>
    %64 = stablehlo.multiply %63, %arg8 : tensor<128x10xf32>
    %65 = stablehlo.add %56, %64 : tensor<128x10xf32>
    %66 = stablehlo.add %arg0, %59 : tensor<64x128xf32>
    %67 = stablehlo.add %arg1, %62 : tensor<128xf32>
    %68 = stablehlo.add %arg2, %65 : tensor<128x10xf32>
    return %66, %67, %68, %26, %32, %38, %59, %62, %65, %8#0 : tensor<64x128xf32>, tensor<128xf32>, tensor<128x10xf32>, tensor<64x128xf32>, tensor<128xf32>, tensor<128x10xf32>, tensor<64x128xf32>, tensor<128xf32>, tensor<128x10xf32>, tensor<f32>
  }
  func.func private @_var(%arg0: tensor<16x10xf32>, %arg1: tensor<i32>) -> (tensor<f32>, tensor<16x10xf32>, tensor<f32>, tensor<i1>) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x10xf32>, tensor<f32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %cst_0 = stablehlo.constant dense<1.600000e+02> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %3 = stablehlo.divide %1, %2 : tensor<1x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<16x10xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<16x10xf32>
    %6 = chlo.square %5 : tensor<16x10xf32> -> tensor<16x10xf32>
    %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<16x10xf32>
    %8 = stablehlo.multiply %7, %5 : tensor<16x10xf32>
    %9 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %cst_2 = stablehlo.constant dense<1.600000e+02> : tensor<f32>
    %10 = stablehlo.subtract %cst_2, %9 : tensor<f32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.reduce(%6 init: %cst_3) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x10xf32>, tensor<f32>) -> tensor<f32>
    %12 = stablehlo.divide %11, %10 : tensor<f32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %13 = stablehlo.compare GT, %10, %cst_4, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %cst_5 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %14 = call @_where(%13, %12, %cst_5) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    return %14, %8, %10, %13 : tensor<f32>, tensor<16x10xf32>, tensor<f32>, tensor<i1>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<i1>, tensor<f32>
    return %1 : tensor<f32>
  }
  func.func private @_var_0(%arg0: tensor<16x10xf32>, %arg1: tensor<f32>, %arg2: tensor<i1>, %arg3: tensor<f32>) -> tensor<16x10xf32> {
    %0 = call @_where_1(%arg2, %arg3) : (tensor<i1>, tensor<f32>) -> tensor<f32>
    %1 = stablehlo.divide %0, %arg1 : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<16x10xf32>
    %3 = stablehlo.multiply %2, %arg0 : tensor<16x10xf32>
    %4 = stablehlo.negate %3 : tensor<16x10xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.reduce(%4 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x10xf32>, tensor<f32>) -> tensor<f32>
    %6 = stablehlo.reshape %5 : (tensor<f32>) -> tensor<1x1xf32>
    %cst_0 = stablehlo.constant dense<1.600000e+02> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
    %8 = stablehlo.divide %6, %7 : tensor<1x1xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %9 = stablehlo.reduce(%8 init: %cst_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1xf32>, tensor<f32>) -> tensor<f32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<f32>) -> tensor<16x10xf32>
    %11 = stablehlo.add %3, %10 : tensor<16x10xf32>
    return %11 : tensor<16x10xf32>
  }
  func.func private @_where_1(%arg0: tensor<i1>, %arg1: tensor<f32>) -> tensor<f32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.select %arg0, %arg1, %cst : tensor<i1>, tensor<f32>
    return %0 : tensor<f32>
  }
}
