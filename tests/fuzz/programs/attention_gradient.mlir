module @jit_attention_gradient attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6x4xf32>, %arg1: tensor<6x4xf32>, %arg2: tensor<6x5xf32>) -> (tensor<6x4xf32> {jax.result_info = "result[0]"}, tensor<6x4xf32> {jax.result_info = "result[1]"}, tensor<6x5xf32> {jax.result_info = "result[2]"}) {
    %0 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<6x4xf32>, tensor<4x6xf32>) -> tensor<6x6xf32>
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6x6xf32>
    %3 = stablehlo.multiply %1, %2 : tensor<6x6xf32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %4 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<6x6xi1>
    %5 = call @tril(%4) : (tensor<6x6xi1>) -> tensor<6x6xi1>
    %cst_0 = stablehlo.constant dense<-1.000000e+30> : tensor<f32>
    %6:2 = call @_where(%5, %3, %cst_0) : (tensor<6x6xi1>, tensor<6x6xf32>, tensor<f32>) -> (tensor<6x6xf32>, tensor<6x6xf32>)
    %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %7 = stablehlo.reduce(%6#0 init: %cst_1) applies stablehlo.maximum across dimensions = [1] : (tensor<6x6xf32>, tensor<f32>) -> tensor<6xf32>
    %8 = stablehlo.reshape %7 : (tensor<6xf32>) -> tensor<6x1xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<6x1xf32>) -> tensor<6x6xf32>
    %10 = stablehlo.compare EQ, %6#0, %9, FLOAT : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xi1>
    %11 = stablehlo.convert %10 : (tensor<6x6xi1>) -> tensor<6x6xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %12 = stablehlo.reduce(%11 init: %cst_2) applies stablehlo.add across dimensions = [1] : (tensor<6x6xf32>, tensor<f32>) -> tensor<6xf32>
    %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %14 = stablehlo.maximum %13, %7 : tensor<6xf32>
    %15 = stablehlo.compare EQ, %7, %14, FLOAT : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
    %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %18 = stablehlo.select %15, %16, %17 : tensor<6xi1>, tensor<6xf32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %20 = stablehlo.compare EQ, %19, %14, FLOAT : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
    %cst_7 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %21 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %22 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %23 = stablehlo.select %20, %21, %22 : tensor<6xi1>, tensor<6xf32>
    %24 = stablehlo.divide %18, %23 : tensor<6xf32>
    %25 = stablehlo.broadcast_in_dim %14, dims = [0] : (tensor<6xf32>) -> tensor<6x1xf32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [0, 1] : (tensor<6x1xf32>) -> tensor<6x6xf32>
    %27 = stablehlo.subtract %6#0, %26 : tensor<6x6xf32>
    %28 = stablehlo.exponential %27 : tensor<6x6xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %29 = stablehlo.reduce(%28 init: %cst_9) applies stablehlo.add across dimensions = [1] : (tensor<6x6xf32>, tensor<f32>) -> tensor<6xf32>
    %30 = stablehlo.broadcast_in_dim %29, dims = [0] : (tensor<6xf32>) -> tensor<6x1xf32>
    %31 = stablehlo.broadcast_in_dim %30, dims = [0, 1] : (tensor<6x1xf32>) -> tensor<6x6xf32>
    %32 = stablehlo.divide %28, %31 : tensor<6x6xf32>
    %33 = stablehlo.multiply %30, %30 : tensor<6x1xf32>
    %cst_10 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %34 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<6x1xf32>
    %35 = stablehlo.divide %34, %33 : tensor<6x1xf32>
    %36 = stablehlo.dot_general %32, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<6x6xf32>, tensor<6x5xf32>) -> tensor<6x5xf32>
    %37 = stablehlo.multiply %36, %36 : tensor<6x5xf32>
    %cst_11 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %38 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<6x5xf32>
    %39 = stablehlo.multiply %38, %36 : tensor<6x5xf32>
    %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %40 = stablehlo.reduce(%37 init: %cst_12) applies stablehlo.add across dimensions = [0, 1] : (tensor<6x5xf32>, tensor<f32>) -> tensor<f32>
    %cst_13 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %41 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<6x5xf32>
    %42 = stablehlo.multiply %41, %39 : tensor<6x5xf32>
    %43 = stablehlo.dot_general %42, %32, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<6x5xf32>, tensor<6x6xf32>) -> tensor<5x6xf32>
    %44 = stablehlo.transpose %43, dims = [1, 0] : (tensor<5x6xf32>) -> tensor<6x5xf32>
    %45 = stablehlo.dot_general %42, %arg2, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<6x5xf32>, tensor<6x5xf32>) -> tensor<6x6xf32>
    %46 = stablehlo.broadcast_in_dim %35, dims = [0, 1] : (tensor<6x1xf32>) -> tensor<6x6xf32>
    %47 = stablehlo.multiply %45, %46 : tensor<6x6xf32>
    %48 = stablehlo.multiply %47, %28 : tensor<6x6xf32>
    %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %49 = stablehlo.reduce(%48 init: %cst_14) applies stablehlo.add across dimensions = [1] : (tensor<6x6xf32>, tensor<f32>) -> tensor<6xf32>
    %50 = stablehlo.reshape %49 : (tensor<6xf32>) -> tensor<6x1xf32>
    %51 = stablehlo.negate %50 : tensor<6x1xf32>
    %52 = stablehlo.broadcast_in_dim %30, dims = [0, 1] : (tensor<6x1xf32>) -> tensor<6x6xf32>
    %53 = stablehlo.divide %45, %52 : tensor<6x6xf32>
    %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %54 = stablehlo.reduce(%51 init: %cst_15) applies stablehlo.add across dimensions = [1] : (tensor<6x1xf32>, tensor<f32>) -> tensor<6xf32>
    %55 = stablehlo.broadcast_in_dim %54, dims = [0] : (tensor<6xf32>) -> tensor<6x6xf32>
    %56 = stablehlo.add %53, %55 : tensor<6x6xf32>
    %57 = stablehlo.multiply %56, %28 : tensor<6x6xf32>
    %58 = call @_where_0(%5, %6#1, %57) : (tensor<6x6xi1>, tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
    %cst_16 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %59 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<6x6xf32>
    %60 = stablehlo.multiply %58, %59 : tensor<6x6xf32>
    %61 = stablehlo.dot_general %60, %arg0, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<6x6xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
    %62 = stablehlo.transpose %61, dims = [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
    %63 = stablehlo.dot_general %60, %0, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<6x6xf32>, tensor<4x6xf32>) -> tensor<6x4xf32>
    %64 = stablehlo.transpose %62, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
    return %63, %64, %44 : tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x5xf32>
  }
  func.func private @tril(%arg0: tensor<6x6xi1>) -> tensor<6x6xi1> {
    %0 = stablehlo.iota dim = 0 : tensor<6x6xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<6x6xi32>
    %2 = stablehlo.add %0, %1 : tensor<6x6xi32>
    %3 = stablehlo.iota dim = 1 : tensor<6x6xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<6x6xi32>, tensor<6x6xi32>) -> tensor<6x6xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<6x6xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<6x6xi1>, tensor<6x6xi1>
    return %6 : tensor<6x6xi1>
  }
  func.func private @_where(%arg0: tensor<6x6xi1>, %arg1: tensor<6x6xf32>, %arg2: tensor<f32>) -> (tensor<6x6xf32>, tensor<6x6xf32>) {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<6x6xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<6x6xi1>, tensor<6x6xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6x6xf32>
    return %2, %3 : tensor<6x6xf32>, tensor<6x6xf32>
  }
  func.func private @_where_0(%arg0: tensor<6x6xi1>, %arg1: tensor<6x6xf32>, %arg2: tensor<6x6xf32>) -> tensor<6x6xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6x6xf32>
    %1 = stablehlo.select %arg0, %arg2, %0 : tensor<6x6xi1>, tensor<6x6xf32>
    return %1 : tensor<6x6xf32>
  }
}
