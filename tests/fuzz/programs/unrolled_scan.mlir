module @jit_unrolled_scan attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<7x5xf32>, %arg1: tensor<7x5x5xf32>) -> (tensor<7x5x5xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %1 = stablehlo.slice %arg1 [0:6, 0:5, 0:5] : (tensor<7x5x5xf32>) -> tensor<6x5x5xf32>
    %2 = stablehlo.slice %arg1 [6:7, 0:5, 0:5] : (tensor<7x5x5xf32>) -> tensor<1x5x5xf32>
    %3 = stablehlo.slice %arg0 [0:6, 0:5] : (tensor<7x5xf32>) -> tensor<6x5xf32>
    %4 = stablehlo.slice %arg0 [6:7, 0:5] : (tensor<7x5xf32>) -> tensor<1x5xf32>
    %5 = stablehlo.reshape %1 : (tensor<6x5x5xf32>) -> tensor<2x3x5x5xf32>
    %6 = stablehlo.reshape %3 : (tensor<6x5xf32>) -> tensor<2x3x5xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x3x5xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x3x5xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x3x5xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %11:8 = stablehlo.while(%iterArg = %5, %iterArg_12 = %6, %iterArg_13 = %c, %iterArg_14 = %0, %iterArg_15 = %7, %iterArg_16 = %8, %iterArg_17 = %9, %iterArg_18 = %10) : tensor<2x3x5x5xf32>, tensor<2x3x5xf32>, tensor<i32>, tensor<5xf32>, tensor<2x3xf32>, tensor<2x3x5xf32>, tensor<2x3x5xf32>, tensor<2x3x5xf32>
    cond {
      %c_19 = stablehlo.constant dense<2> : tensor<i32>
      %70 = stablehlo.compare LT, %iterArg_13, %c_19, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %70 : tensor<i1>
    } do {
      %70 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_13) : (tensor<2x3x5x5xf32>, tensor<i32>) -> tensor<3x5x5xf32>
      %71 = func.call @dynamic_index_in_dim_0(%iterArg_12, %iterArg_13) : (tensor<2x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %72 = stablehlo.slice %70 [0:1, 0:5, 0:5] : (tensor<3x5x5xf32>) -> tensor<1x5x5xf32>
      %73 = stablehlo.reshape %72 : (tensor<1x5x5xf32>) -> tensor<5x5xf32>
      %74 = stablehlo.slice %71 [0:1, 0:5] : (tensor<3x5xf32>) -> tensor<1x5xf32>
      %75 = stablehlo.reshape %74 : (tensor<1x5xf32>) -> tensor<5xf32>
      %76:5 = func.call @closed_call(%iterArg_14, %73, %75) : (tensor<5xf32>, tensor<5x5xf32>, tensor<5xf32>) -> (tensor<5xf32>, tensor<f32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>)
      %77 = stablehlo.slice %70 [1:2, 0:5, 0:5] : (tensor<3x5x5xf32>) -> tensor<1x5x5xf32>
      %78 = stablehlo.reshape %77 : (tensor<1x5x5xf32>) -> tensor<5x5xf32>
      %79 = stablehlo.slice %71 [1:2, 0:5] : (tensor<3x5xf32>) -> tensor<1x5xf32>
      %80 = stablehlo.reshape %79 : (tensor<1x5xf32>) -> tensor<5xf32>
      %81:5 = func.call @closed_call(%76#0, %78, %80) : (tensor<5xf32>, tensor<5x5xf32>, tensor<5xf32>) -> (tensor<5xf32>, tensor<f32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>)
      %82 = stablehlo.slice %70 [2:3, 0:5, 0:5] : (tensor<3x5x5xf32>) -> tensor<1x5x5xf32>
      %83 = stablehlo.reshape %82 : (tensor<1x5x5xf32>) -> tensor<5x5xf32>
      %84 = stablehlo.slice %71 [2:3, 0:5] : (tensor<3x5xf32>) -> tensor<1x5xf32>
      %85 = stablehlo.reshape %84 : (tensor<1x5xf32>) -> tensor<5xf32>
      %86:5 = func.call @closed_call(%81#0, %83, %85) : (tensor<5xf32>, tensor<5x5xf32>, tensor<5xf32>) -> (tensor<5xf32>, tensor<f32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>)
      %87 = stablehlo.broadcast_in_dim %76#1, dims = [] : (tensor<f32>) -> tensor<1xf32>
      %88 = stablehlo.broadcast_in_dim %81#1, dims = [] : (tensor<f32>) -> tensor<1xf32>
      %89 = stablehlo.broadcast_in_dim %86#1, dims = [] : (tensor<f32>) -> tensor<1xf32>
      %90 = stablehlo.concatenate %87, %88, %89, dim = 0 : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<3xf32>
      %91 = stablehlo.broadcast_in_dim %76#2, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
      %92 = stablehlo.broadcast_in_dim %81#2, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
      %93 = stablehlo.broadcast_in_dim %86#2, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
      %94 = stablehlo.concatenate %91, %92, %93, dim = 0 : (tensor<1x5xf32>, tensor<1x5xf32>, tensor<1x5xf32>) -> tensor<3x5xf32>
      %95 = stablehlo.broadcast_in_dim %76#3, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
      %96 = stablehlo.broadcast_in_dim %81#3, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
      %97 = stablehlo.broadcast_in_dim %86#3, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
      %98 = stablehlo.concatenate %95, %96, %97, dim = 0 : (tensor<1x5xf32>, tensor<1x5xf32>, tensor<1x5xf32>) -> tensor<3x5xf32>
      %99 = stablehlo.broadcast_in_dim %76#4, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
      %100 = stablehlo.broadcast_in_dim %81#4, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
      %101 = stablehlo.broadcast_in_dim %86#4, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
      %102 = stablehlo.concatenate %99, %100, %101, dim = 0 : (tensor<1x5xf32>, tensor<1x5xf32>, tensor<1x5xf32>) -> tensor<3x5xf32>
      %103 = func.call @dynamic_update_index_in_dim(%iterArg_15, %90, %iterArg_13) : (tensor<2x3xf32>, tensor<3xf32>, tensor<i32>) -> tensor<2x3xf32>
      %104 = func.call @dynamic_update_index_in_dim_1(%iterArg_16, %94, %iterArg_13) : (tensor<2x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<2x3x5xf32>
      %105 = func.call @dynamic_update_index_in_dim_1(%iterArg_17, %98, %iterArg_13) : (tensor<2x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<2x3x5xf32>
      %106 = func.call @dynamic_update_index_in_dim_1(%iterArg_18, %102, %iterArg_13) : (tensor<2x3x5xf32>, tensor<3x5xf32>, tensor<i32>) -> tensor<2x3x5xf32>
      %c_19 = stablehlo.constant dense<1> : tensor<i32>
      %107 = stablehlo.add %iterArg_13, %c_19 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_12, %107, %86#0, %103, %104, %105, %106 : tensor<2x3x5x5xf32>, tensor<2x3x5xf32>, tensor<i32>, tensor<5xf32>, tensor<2x3xf32>, tensor<2x3x5xf32>, tensor<2x3x5xf32>, tensor<2x3x5xf32>
    }
    %12 = stablehlo.reshape %11#4 : (tensor<2x3xf32>) -> tensor<6xf32>
    %13 = stablehlo.reshape %11#5 : (tensor<2x3x5xf32>) -> tensor<6x5xf32>
    %14 = stablehlo.reshape %11#6 : (tensor<2x3x5xf32>) -> tensor<6x5xf32>
    %15 = stablehlo.reshape %11#7 : (tensor<2x3x5xf32>) -> tensor<6x5xf32>
    %16 = stablehlo.slice %2 [0:1, 0:5, 0:5] : (tensor<1x5x5xf32>) -> tensor<1x5x5xf32>
    %17 = stablehlo.reshape %16 : (tensor<1x5x5xf32>) -> tensor<5x5xf32>
    %18 = stablehlo.slice %4 [0:1, 0:5] : (tensor<1x5xf32>) -> tensor<1x5xf32>
    %19 = stablehlo.reshape %18 : (tensor<1x5xf32>) -> tensor<5xf32>
    %20:5 = call @closed_call(%11#3, %17, %19) : (tensor<5xf32>, tensor<5x5xf32>, tensor<5xf32>) -> (tensor<5xf32>, tensor<f32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>)
    %21 = stablehlo.broadcast_in_dim %20#1, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %22 = stablehlo.broadcast_in_dim %20#2, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
    %23 = stablehlo.broadcast_in_dim %20#3, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
    %24 = stablehlo.broadcast_in_dim %20#4, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
    %25 = stablehlo.concatenate %12, %21, dim = 0 : (tensor<6xf32>, tensor<1xf32>) -> tensor<7xf32>
    %26 = stablehlo.concatenate %13, %22, dim = 0 : (tensor<6x5xf32>, tensor<1x5xf32>) -> tensor<7x5xf32>
    %27 = stablehlo.concatenate %14, %23, dim = 0 : (tensor<6x5xf32>, tensor<1x5xf32>) -> tensor<7x5xf32>
    %28 = stablehlo.concatenate %15, %24, dim = 0 : (tensor<6x5xf32>, tensor<1x5xf32>) -> tensor<7x5xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %29 = stablehlo.reduce(%20#0 init: %cst_4) applies stablehlo.add across dimensions = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
    %30 = stablehlo.multiply %25, %25 : tensor<7xf32>
    %cst_5 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %31 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<7xf32>
    %32 = stablehlo.multiply %31, %25 : tensor<7xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %33 = stablehlo.reduce(%30 init: %cst_6) applies stablehlo.add across dimensions = [0] : (tensor<7xf32>, tensor<f32>) -> tensor<f32>
    %34 = stablehlo.add %29, %33 : tensor<f32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %35 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %36 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<7xf32>
    %37 = stablehlo.multiply %36, %32 : tensor<7xf32>
    %cst_9 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %38 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %39 = stablehlo.slice %37 [0:1] : (tensor<7xf32>) -> tensor<1xf32>
    %40 = stablehlo.slice %37 [1:7] : (tensor<7xf32>) -> tensor<6xf32>
    %41 = stablehlo.slice %arg1 [0:1, 0:5, 0:5] : (tensor<7x5x5xf32>) -> tensor<1x5x5xf32>
    %42 = stablehlo.slice %arg1 [1:7, 0:5, 0:5] : (tensor<7x5x5xf32>) -> tensor<6x5x5xf32>
    %43 = stablehlo.slice %26 [0:1, 0:5] : (tensor<7x5xf32>) -> tensor<1x5xf32>
    %44 = stablehlo.slice %26 [1:7, 0:5] : (tensor<7x5xf32>) -> tensor<6x5xf32>
    %45 = stablehlo.slice %27 [0:1, 0:5] : (tensor<7x5xf32>) -> tensor<1x5xf32>
    %46 = stablehlo.slice %27 [1:7, 0:5] : (tensor<7x5xf32>) -> tensor<6x5xf32>
    %47 = stablehlo.slice %28 [0:1, 0:5] : (tensor<7x5xf32>) -> tensor<1x5xf32>
    %48 = stablehlo.slice %28 [1:7, 0:5] : (tensor<7x5xf32>) -> tensor<6x5xf32>
    %49 = stablehlo.reshape %40 : (tensor<6xf32>) -> tensor<2x3xf32>
    %50 = stablehlo.reshape %42 : (tensor<6x5x5xf32>) -> tensor<2x3x5x5xf32>
    %51 = stablehlo.reshape %44 : (tensor<6x5xf32>) -> tensor<2x3x5xf32>
    %52 = stablehlo.reshape %46 : (tensor<6x5xf32>) -> tensor<2x3x5xf32>
    %53 = stablehlo.reshape %48 : (tensor<6x5xf32>) -> tensor<2x3x5xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %54 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<2x3x5x5xf32>
    %c_11 = stablehlo.constant dense<0> : tensor<i32>
    %55:8 = stablehlo.while(%iterArg = %49, %iterArg_12 = %50, %iterArg_13 = %51, %iterArg_14 = %52, %iterArg_15 = %53, %iterArg_16 = %c_11, %iterArg_17 = %38, %iterArg_18 = %54) : tensor<2x3xf32>, tensor<2x3x5x5xf32>, tensor<2x3x5xf32>, tensor<2x3x5xf32>, tensor<2x3x5xf32>, tensor<i32>, tensor<5xf32>, tensor<2x3x5x5xf32>
    cond {
      %c_19 = stablehlo.constant dense<2> : tensor<i32>
      %70 = stablehlo.compare LT, %iterArg_16, %c_19, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %70 : tensor<i1>
    } do {
      %c_19 = stablehlo.constant dense<2> : tensor<i32>
      %70 = stablehlo.subtract %c_19, %iterArg_16 : tensor<i32>
      %c_20 = stablehlo.constant dense<1> : tensor<i32>
      %71 = stablehlo.subtract %70, %c_20 : tensor<i32>
      %72 = func.call @dynamic_index_in_dim_2(%iterArg, %71) : (tensor<2x3xf32>, tensor<i32>) -> tensor<3xf32>
      %73 = func.call @dynamic_index_in_dim(%iterArg_12, %71) : (tensor<2x3x5x5xf32>, tensor<i32>) -> tensor<3x5x5xf32>
      %74 = func.call @dynamic_index_in_dim_0(%iterArg_13, %71) : (tensor<2x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %75 = func.call @dynamic_index_in_dim_0(%iterArg_14, %71) : (tensor<2x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %76 = func.call @dynamic_index_in_dim_0(%iterArg_15, %71) : (tensor<2x3x5xf32>, tensor<i32>) -> tensor<3x5xf32>
      %77 = stablehlo.slice %72 [2:3] : (tensor<3xf32>) -> tensor<1xf32>
      %78 = stablehlo.reshape %77 : (tensor<1xf32>) -> tensor<f32>
      %79 = stablehlo.slice %73 [2:3, 0:5, 0:5] : (tensor<3x5x5xf32>) -> tensor<1x5x5xf32>
      %80 = stablehlo.reshape %79 : (tensor<1x5x5xf32>) -> tensor<5x5xf32>
      %81 = stablehlo.slice %74 [2:3, 0:5] : (tensor<3x5xf32>) -> tensor<1x5xf32>
      %82 = stablehlo.reshape %81 : (tensor<1x5xf32>) -> tensor<5xf32>
      %83 = stablehlo.slice %75 [2:3, 0:5] : (tensor<3x5xf32>) -> tensor<1x5xf32>
      %84 = stablehlo.reshape %83 : (tensor<1x5xf32>) -> tensor<5xf32>
      %85 = stablehlo.slice %76 [2:3, 0:5] : (tensor<3x5xf32>) -> tensor<1x5xf32>
      %86 = stablehlo.reshape %85 : (tensor<1x5xf32>) -> tensor<5xf32>
      %87:2 = func.call @closed_call_3(%iterArg_17, %78, %80, %82, %84, %86) : (tensor<5xf32>, tensor<f32>, tensor<5x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) -> (tensor<5xf32>, tensor<5x5xf32>)
      %88 = stablehlo.slice %72 [1:2] : (tensor<3xf32>) -> tensor<1xf32>
      %89 = stablehlo.reshape %88 : (tensor<1xf32>) -> tensor<f32>
      %90 = stablehlo.slice %73 [1:2, 0:5, 0:5] : (tensor<3x5x5xf32>) -> tensor<1x5x5xf32>
      %91 = stablehlo.reshape %90 : (tensor<1x5x5xf32>) -> tensor<5x5xf32>
      %92 = stablehlo.slice %74 [1:2, 0:5] : (tensor<3x5xf32>) -> tensor<1x5xf32>
      %93 = stablehlo.reshape %92 : (tensor<1x5xf32>) -> tensor<5xf32>
      %94 = stablehlo.slice %75 [1:2, 0:5] : (tensor<3x5xf32>) -> tensor<1x5xf32>
      %95 = stablehlo.reshape %94 : (tensor<1x5xf32>) -> tensor<5xf32>
      %96 = stablehlo.slice %76 [1:2, 0:5] : (tensor<3x5xf32>) -> tensor<1x5xf32>
      %97 = stablehlo.reshape %96 : (tensor<1x5xf32>) -> tensor<5xf32>
      %98:2 = func.call @closed_call_3(%87#0, %89, %91, %93, %95, %97) : (tensor<5xf32>, tensor<f32>, tensor<5x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) -> (tensor<5xf32>, tensor<5x5xf32>)
      %99 = stablehlo.slice %72 [0:1] : (tensor<3xf32>) -> tensor<1xf32>
      %100 = stablehlo.reshape %99 : (tensor<1xf32>) -> tensor<f32>
      %101 = stablehlo.slice %73 [0:1, 0:5, 0:5] : (tensor<3x5x5xf32>) -> tensor<1x5x5xf32>
      %102 = stablehlo.reshape %101 : (tensor<1x5x5xf32>) -> tensor<5x5xf32>
      %103 = stablehlo.slice %74 [0:1, 0:5] : (tensor<3x5xf32>) -> tensor<1x5xf32>
      %104 = stablehlo.reshape %103 : (tensor<1x5xf32>) -> tensor<5xf32>
      %105 = stablehlo.slice %75 [0:1, 0:5] : (tensor<3x5xf32>) -> tensor<1x5xf32>
      %106 = stablehlo.reshape %105 : (tensor<1x5xf32>) -> tensor<5xf32>
      %107 = stablehlo.slice %76 [0:1, 0:5] : (tensor<3x5xf32>) -> tensor<1x5xf32>
      %108 = stablehlo.reshape %107 : (tensor<1x5xf32>) -> tensor<5xf32>
      %109:2 = func.call @closed_call_3(%98#0, %100, %102, %104, %106, %108) : (tensor<5xf32>, tensor<f32>, tensor<5x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) -> (tensor<5xf32>, tensor<5x5xf32>)
      %110 = stablehlo.broadcast_in_dim %109#1, dims = [1, 2] : (tensor<5x5xf32>) -> tensor<1x5x5xf32>
      %111 = stablehlo.broadcast_in_dim %98#1, dims = [1, 2] : (tensor<5x5xf32>) -> tensor<1x5x5xf32>
      %112 = stablehlo.broadcast_in_dim %87#1, dims = [1, 2] : (tensor<5x5xf32>) -> tensor<1x5x5xf32>
      %113 = stablehlo.concatenate %110, %111, %112, dim = 0 : (tensor<1x5x5xf32>, tensor<1x5x5xf32>, tensor<1x5x5xf32>) -> tensor<3x5x5xf32>
      %114 = func.call @dynamic_update_index_in_dim_4(%iterArg_18, %113, %71) : (tensor<2x3x5x5xf32>, tensor<3x5x5xf32>, tensor<i32>) -> tensor<2x3x5x5xf32>
      %c_21 = stablehlo.constant dense<1> : tensor<i32>
      %115 = stablehlo.add %iterArg_16, %c_21 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_12, %iterArg_13, %iterArg_14, %iterArg_15, %115, %109#0, %114 : tensor<2x3xf32>, tensor<2x3x5x5xf32>, tensor<2x3x5xf32>, tensor<2x3x5xf32>, tensor<2x3x5xf32>, tensor<i32>, tensor<5xf32>, tensor<2x3x5x5xf32>
    }
    %56 = stablehlo.reshape %55#7 : (tensor<2x3x5x5xf32>) -> tensor<6x5x5xf32>
    %57 = stablehlo.slice %39 [0:1] : (tensor<1xf32>) -> tensor<1xf32>
    %58 = stablehlo.reshape %57 : (tensor<1xf32>) -> tensor<f32>
    %59 = stablehlo.slice %41 [0:1, 0:5, 0:5] : (tensor<1x5x5xf32>) -> tensor<1x5x5xf32>
    %60 = stablehlo.reshape %59 : (tensor<1x5x5xf32>) -> tensor<5x5xf32>
    %61 = stablehlo.slice %43 [0:1, 0:5] : (tensor<1x5xf32>) -> tensor<1x5xf32>
    %62 = stablehlo.reshape %61 : (tensor<1x5xf32>) -> tensor<5xf32>
    %63 = stablehlo.slice %45 [0:1, 0:5] : (tensor<1x5xf32>) -> tensor<1x5xf32>
    %64 = stablehlo.reshape %63 : (tensor<1x5xf32>) -> tensor<5xf32>
    %65 = stablehlo.slice %47 [0:1, 0:5] : (tensor<1x5xf32>) -> tensor<1x5xf32>
    %66 = stablehlo.reshape %65 : (tensor<1x5xf32>) -> tensor<5xf32>
    %67:2 = call @closed_call_3(%55#6, %58, %60, %62, %64, %66) : (tensor<5xf32>, tensor<f32>, tensor<5x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) -> (tensor<5xf32>, tensor<5x5xf32>)
    %68 = stablehlo.broadcast_in_dim %67#1, dims = [1, 2] : (tensor<5x5xf32>) -> tensor<1x5x5xf32>
    %69 = stablehlo.concatenate %68, %56, dim = 0 : (tensor<1x5x5xf32>, tensor<6x5x5xf32>) -> tensor<7x5x5xf32>
    return %69 : tensor<7x5x5xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<2x3x5x5xf32>, %arg1: tensor<i32>) -> tensor<3x5x5xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 3, 5, 5] : (tensor<2x3x5x5xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x5x5xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3x5x5xf32>) -> tensor<3x5x5xf32>
    return %1 : tensor<3x5x5xf32>
  }
  func.func private @dynamic_index_in_dim_0(%arg0: tensor<2x3x5xf32>, %arg1: tensor<i32>) -> tensor<3x5xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 3, 5] : (tensor<2x3x5xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x5xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3x5xf32>) -> tensor<3x5xf32>
    return %1 : tensor<3x5xf32>
  }
  func.func private @closed_call(%arg0: tensor<5xf32>, %arg1: tensor<5x5xf32>, %arg2: tensor<5xf32>) -> (tensor<5xf32>, tensor<f32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<5xf32>, tensor<5x5xf32>) -> tensor<5xf32>
    %1 = stablehlo.add %0, %arg2 : tensor<5xf32>
    %2 = stablehlo.tanh %1 : tensor<5xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %4 = stablehlo.subtract %3, %2 : tensor<5xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.reduce(%arg0 init: %cst_0) applies stablehlo.add across dimensions = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
    return %2, %5, %arg0, %2, %4 : tensor<5xf32>, tensor<f32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<2x3xf32>, %arg1: tensor<3xf32>, %arg2: tensor<i32>) -> tensor<2x3xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3xf32>) -> tensor<1x3xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c : (tensor<2x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
  func.func private @dynamic_update_index_in_dim_1(%arg0: tensor<2x3x5xf32>, %arg1: tensor<3x5xf32>, %arg2: tensor<i32>) -> tensor<2x3x5xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<3x5xf32>) -> tensor<1x3x5xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<2x3x5xf32>, tensor<1x3x5xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x3x5xf32>
    return %1 : tensor<2x3x5xf32>
  }
  func.func private @dynamic_index_in_dim_2(%arg0: tensor<2x3xf32>, %arg1: tensor<i32>) -> tensor<3xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 3] : (tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3xf32>) -> tensor<3xf32>
    return %1 : tensor<3xf32>
  }
  func.func private @closed_call_3(%arg0: tensor<5xf32>, %arg1: tensor<f32>, %arg2: tensor<5x5xf32>, %arg3: tensor<5xf32>, %arg4: tensor<5xf32>, %arg5: tensor<5xf32>) -> (tensor<5xf32>, tensor<5x5xf32>) {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %1 = stablehlo.multiply %arg0, %arg5 : tensor<5xf32>
    %2 = stablehlo.multiply %1, %arg4 : tensor<5xf32>
    %3 = stablehlo.add %1, %2 : tensor<5xf32>
    %4 = stablehlo.dot_general %3, %arg3, contracting_dims = [] x [], precision = [DEFAULT, DEFAULT] : (tensor<5xf32>, tensor<5xf32>) -> tensor<5x5xf32>
    %5 = stablehlo.transpose %4, dims = [1, 0] : (tensor<5x5xf32>) -> tensor<5x5xf32>
    %6 = stablehlo.dot_general %3, %arg2, contracting_dims = [0] x [1], precision = [DEFAULT, DEFAULT] : (tensor<5xf32>, tensor<5x5xf32>) -> tensor<5xf32>
    %7 = stablehlo.add %0, %6 : tensor<5xf32>
    return %7, %5 : tensor<5xf32>, tensor<5x5xf32>
  }
  func.func private @dynamic_update_index_in_dim_4(%arg0: tensor<2x3x5x5xf32>, %arg1: tensor<3x5x5xf32>, %arg2: tensor<i32>) -> tensor<2x3x5x5xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<3x5x5xf32>) -> tensor<1x3x5x5xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<2x3x5x5xf32>, tensor<1x3x5x5xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x3x5x5xf32>
    return %1 : tensor<2x3x5x5xf32>
  }
}
