// A training step of LeNet-5 with 64 images, as JAX 0.10 exports it, in generic form.
"builtin.module"() <{sym_name = "jit_step"}> ({
  "func.func"() <{arg_attrs = [{tf.aliasing_output = 0 : i32}, {tf.aliasing_output = 1 : i32}, {tf.aliasing_output = 2 : i32}, {tf.aliasing_output = 3 : i32}, {tf.aliasing_output = 4 : i32}, {tf.aliasing_output = 5 : i32}, {tf.aliasing_output = 6 : i32}, {tf.aliasing_output = 7 : i32}, {tf.aliasing_output = 8 : i32}, {tf.aliasing_output = 9 : i32}, {tf.aliasing_output = 10 : i32}, {tf.aliasing_output = 11 : i32}, {tf.aliasing_output = 12 : i32}, {tf.aliasing_output = 13 : i32}, {tf.aliasing_output = 14 : i32}, {tf.aliasing_output = 15 : i32}, {tf.aliasing_output = 16 : i32}, {tf.aliasing_output = 17 : i32}, {tf.aliasing_output = 18 : i32}, {tf.aliasing_output = 19 : i32}, {}, {}], function_type = (tensor<6xf32>, tensor<5x5x1x6xf32>, tensor<16xf32>, tensor<5x5x6x16xf32>, tensor<120xf32>, tensor<400x120xf32>, tensor<84xf32>, tensor<120x84xf32>, tensor<10xf32>, tensor<84x10xf32>, tensor<6xf32>, tensor<5x5x1x6xf32>, tensor<16xf32>, tensor<5x5x6x16xf32>, tensor<120xf32>, tensor<400x120xf32>, tensor<84xf32>, tensor<120x84xf32>, tensor<10xf32>, tensor<84x10xf32>, tensor<64x28x28x1xf32>, tensor<64xi32>) -> (tensor<6xf32>, tensor<5x5x1x6xf32>, tensor<16xf32>, tensor<5x5x6x16xf32>, tensor<120xf32>, tensor<400x120xf32>, tensor<84xf32>, tensor<120x84xf32>, tensor<10xf32>, tensor<84x10xf32>, tensor<6xf32>, tensor<5x5x1x6xf32>, tensor<16xf32>, tensor<5x5x6x16xf32>, tensor<120xf32>, tensor<400x120xf32>, tensor<84xf32>, tensor<120x84xf32>, tensor<10xf32>, tensor<84x10xf32>, tensor<f32>), res_attrs = [{jax.result_info = "result[0]['Conv_0']['bias']"}, {jax.result_info = "result[0]['Conv_0']['kernel']"}, {jax.result_info = "result[0]['Conv_1']['bias']"}, {jax.result_info = "result[0]['Conv_1']['kernel']"}, {jax.result_info = "result[0]['Dense_0']['bias']"}, {jax.result_info = "result[0]['Dense_0']['kernel']"}, {jax.result_info = "result[0]['Dense_1']['bias']"}, {jax.result_info = "result[0]['Dense_1']['kernel']"}, {jax.result_info = "result[0]['Dense_2']['bias']"}, {jax.result_info = "result[0]['Dense_2']['kernel']"}, {jax.result_info = "result[1][0].trace['Conv_0']['bias']"}, {jax.result_info = "result[1][0].trace['Conv_0']['kernel']"}, {jax.result_info = "result[1][0].trace['Conv_1']['bias']"}, {jax.result_info = "result[1][0].trace['Conv_1']['kernel']"}, {jax.result_info = "result[1][0].trace['Dense_0']['bias']"}, {jax.result_info = "result[1][0].trace['Dense_0']['kernel']"}, {jax.result_info = "result[1][0].trace['Dense_1']['bias']"}, {jax.result_info = "result[1][0].trace['Dense_1']['kernel']"}, {jax.result_info = "result[1][0].trace['Dense_2']['bias']"}, {jax.result_info = "result[1][0].trace['Dense_2']['kernel']"}, {jax.result_info = "result[2]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg23: tensor<6xf32>, %arg24: tensor<5x5x1x6xf32>, %arg25: tensor<16xf32>, %arg26: tensor<5x5x6x16xf32>, %arg27: tensor<120xf32>, %arg28: tensor<400x120xf32>, %arg29: tensor<84xf32>, %arg30: tensor<120x84xf32>, %arg31: tensor<10xf32>, %arg32: tensor<84x10xf32>, %arg33: tensor<6xf32>, %arg34: tensor<5x5x1x6xf32>, %arg35: tensor<16xf32>, %arg36: tensor<5x5x6x16xf32>, %arg37: tensor<120xf32>, %arg38: tensor<400x120xf32>, %arg39: tensor<84xf32>, %arg40: tensor<120x84xf32>, %arg41: tensor<10xf32>, %arg42: tensor<84x10xf32>, %arg43: tensor<64x28x28x1xf32>, %arg44: tensor<64xi32>):
    %65 = "stablehlo.convolution"(%arg43, %arg24) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1, 1>, padding = dense<2> : tensor<2x2xi64>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, window_strides = array<i64: 1, 1>}> : (tensor<64x28x28x1xf32>, tensor<5x5x1x6xf32>) -> tensor<64x28x28x6xf32>
    %66 = "stablehlo.reshape"(%arg23) : (tensor<6xf32>) -> tensor<1x1x1x6xf32>
    %67 = "stablehlo.broadcast_in_dim"(%66) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x1x6xf32>) -> tensor<64x28x28x6xf32>
    %68 = "stablehlo.add"(%65, %67) : (tensor<64x28x28x6xf32>, tensor<64x28x28x6xf32>) -> tensor<64x28x28x6xf32>
    %69 = "func.call"(%68) <{callee = @relu}> : (tensor<64x28x28x6xf32>) -> tensor<64x28x28x6xf32>
    %70 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %71 = "stablehlo.broadcast_in_dim"(%70) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x28x28x6xf32>
    %72 = "stablehlo.compare"(%68, %71) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<64x28x28x6xf32>, tensor<64x28x28x6xf32>) -> tensor<64x28x28x6xi1>
    %73 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %74 = "stablehlo.broadcast_in_dim"(%73) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<f32>
    %75 = "stablehlo.reduce_window"(%69, %74) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg71: tensor<f32>, %arg72: tensor<f32>):
      %304 = "stablehlo.maximum"(%arg71, %arg72) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%304) : (tensor<f32>) -> ()
    }) : (tensor<64x28x28x6xf32>, tensor<f32>) -> tensor<64x14x14x6xf32>
    %76 = "stablehlo.convolution"(%75, %arg26) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1, 1>, padding = dense<0> : tensor<2x2xi64>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, window_strides = array<i64: 1, 1>}> : (tensor<64x14x14x6xf32>, tensor<5x5x6x16xf32>) -> tensor<64x10x10x16xf32>
    %77 = "stablehlo.reshape"(%arg25) : (tensor<16xf32>) -> tensor<1x1x1x16xf32>
    %78 = "stablehlo.broadcast_in_dim"(%77) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<1x1x1x16xf32>) -> tensor<64x10x10x16xf32>
    %79 = "stablehlo.add"(%76, %78) : (tensor<64x10x10x16xf32>, tensor<64x10x10x16xf32>) -> tensor<64x10x10x16xf32>
    %80 = "func.call"(%79) <{callee = @relu_0}> : (tensor<64x10x10x16xf32>) -> tensor<64x10x10x16xf32>
    %81 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %82 = "stablehlo.broadcast_in_dim"(%81) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x10x10x16xf32>
    %83 = "stablehlo.compare"(%79, %82) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<64x10x10x16xf32>, tensor<64x10x10x16xf32>) -> tensor<64x10x10x16xi1>
    %84 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %85 = "stablehlo.broadcast_in_dim"(%84) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<f32>
    %86 = "stablehlo.reduce_window"(%80, %85) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg69: tensor<f32>, %arg70: tensor<f32>):
      %303 = "stablehlo.maximum"(%arg69, %arg70) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%303) : (tensor<f32>) -> ()
    }) : (tensor<64x10x10x16xf32>, tensor<f32>) -> tensor<64x5x5x16xf32>
    %87 = "stablehlo.reshape"(%86) : (tensor<64x5x5x16xf32>) -> tensor<64x400xf32>
    %88 = "stablehlo.dot_general"(%87, %arg28) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<64x400xf32>, tensor<400x120xf32>) -> tensor<64x120xf32>
    %89 = "stablehlo.reshape"(%arg27) : (tensor<120xf32>) -> tensor<1x120xf32>
    %90 = "stablehlo.broadcast_in_dim"(%89) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x120xf32>) -> tensor<64x120xf32>
    %91 = "stablehlo.add"(%88, %90) : (tensor<64x120xf32>, tensor<64x120xf32>) -> tensor<64x120xf32>
    %92 = "func.call"(%91) <{callee = @relu_1}> : (tensor<64x120xf32>) -> tensor<64x120xf32>
    %93 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %94 = "stablehlo.broadcast_in_dim"(%93) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x120xf32>
    %95 = "stablehlo.compare"(%91, %94) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<64x120xf32>, tensor<64x120xf32>) -> tensor<64x120xi1>
    %96 = "stablehlo.dot_general"(%92, %arg30) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<64x120xf32>, tensor<120x84xf32>) -> tensor<64x84xf32>
    %97 = "stablehlo.reshape"(%arg29) : (tensor<84xf32>) -> tensor<1x84xf32>
    %98 = "stablehlo.broadcast_in_dim"(%97) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x84xf32>) -> tensor<64x84xf32>
    %99 = "stablehlo.add"(%96, %98) : (tensor<64x84xf32>, tensor<64x84xf32>) -> tensor<64x84xf32>
    %100 = "func.call"(%99) <{callee = @relu_2}> : (tensor<64x84xf32>) -> tensor<64x84xf32>
    %101 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %102 = "stablehlo.broadcast_in_dim"(%101) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x84xf32>
    %103 = "stablehlo.compare"(%99, %102) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<64x84xf32>, tensor<64x84xf32>) -> tensor<64x84xi1>
    %104 = "stablehlo.dot_general"(%100, %arg32) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<64x84xf32>, tensor<84x10xf32>) -> tensor<64x10xf32>
    %105 = "stablehlo.reshape"(%arg31) : (tensor<10xf32>) -> tensor<1x10xf32>
    %106 = "stablehlo.broadcast_in_dim"(%105) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x10xf32>) -> tensor<64x10xf32>
    %107 = "stablehlo.add"(%104, %106) : (tensor<64x10xf32>, tensor<64x10xf32>) -> tensor<64x10xf32>
    %108 = "stablehlo.broadcast_in_dim"(%arg44) <{broadcast_dimensions = array<i64: 0>}> : (tensor<64xi32>) -> tensor<64x1xi32>
    %109:2 = "func.call"(%107, %108) <{callee = @take_along_axis}> : (tensor<64x10xf32>, tensor<64x1xi32>) -> (tensor<64x1xf32>, tensor<64x1x1xi32>)
    %110 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %111:2 = "func.call"(%109#0, %110) <{callee = @_take}> : (tensor<64x1xf32>, tensor<i32>) -> (tensor<64xf32>, tensor<1xi32>)
    %112 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %113 = "stablehlo.reduce"(%107, %112) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg67: tensor<f32>, %arg68: tensor<f32>):
      %302 = "stablehlo.maximum"(%arg67, %arg68) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%302) : (tensor<f32>) -> ()
    }) : (tensor<64x10xf32>, tensor<f32>) -> tensor<64xf32>
    %114 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %115 = "stablehlo.broadcast_in_dim"(%114) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64xf32>
    %116 = "stablehlo.maximum"(%115, %113) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %117 = "stablehlo.is_finite"(%116) : (tensor<64xf32>) -> tensor<64xi1>
    %118 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %119 = "stablehlo.broadcast_in_dim"(%118) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64xf32>
    %120 = "stablehlo.select"(%117, %116, %119) : (tensor<64xi1>, tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %121 = "stablehlo.broadcast_in_dim"(%120) <{broadcast_dimensions = array<i64: 0>}> : (tensor<64xf32>) -> tensor<64x1xf32>
    %122 = "stablehlo.broadcast_in_dim"(%121) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<64x1xf32>) -> tensor<64x10xf32>
    %123 = "stablehlo.subtract"(%107, %122) : (tensor<64x10xf32>, tensor<64x10xf32>) -> tensor<64x10xf32>
    %124 = "stablehlo.exponential"(%123) : (tensor<64x10xf32>) -> tensor<64x10xf32>
    %125 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %126 = "stablehlo.reduce"(%124, %125) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg65: tensor<f32>, %arg66: tensor<f32>):
      %301 = "stablehlo.add"(%arg65, %arg66) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%301) : (tensor<f32>) -> ()
    }) : (tensor<64x10xf32>, tensor<f32>) -> tensor<64xf32>
    %127 = "stablehlo.abs"(%126) : (tensor<64xf32>) -> tensor<64xf32>
    %128 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %129 = "stablehlo.broadcast_in_dim"(%128) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64xf32>
    %130 = "stablehlo.compare"(%126, %129) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
    %131 = "stablehlo.log"(%127) : (tensor<64xf32>) -> tensor<64xf32>
    %132 = "stablehlo.add"(%131, %120) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %133 = "stablehlo.subtract"(%132, %111#0) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %134 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %135 = "stablehlo.reduce"(%133, %134) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg63: tensor<f32>, %arg64: tensor<f32>):
      %300 = "stablehlo.add"(%arg63, %arg64) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%300) : (tensor<f32>) -> ()
    }) : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
    %136 = "stablehlo.constant"() <{value = dense<6.400000e+01> : tensor<f32>}> : () -> tensor<f32>
    %137 = "stablehlo.divide"(%135, %136) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %138 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %139 = "stablehlo.constant"() <{value = dense<6.400000e+01> : tensor<f32>}> : () -> tensor<f32>
    %140 = "stablehlo.divide"(%138, %139) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %141 = "stablehlo.broadcast_in_dim"(%140) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64xf32>
    %142 = "stablehlo.negate"(%141) : (tensor<64xf32>) -> tensor<64xf32>
    %143 = "stablehlo.divide"(%141, %127) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %144 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %145 = "stablehlo.broadcast_in_dim"(%144) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64xf32>
    %146 = "stablehlo.select"(%130, %145, %143) : (tensor<64xi1>, tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %147 = "stablehlo.select"(%130, %143, %145) : (tensor<64xi1>, tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %148 = "stablehlo.negate"(%146) : (tensor<64xf32>) -> tensor<64xf32>
    %149 = "stablehlo.add"(%147, %148) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %150 = "stablehlo.broadcast_in_dim"(%149) <{broadcast_dimensions = array<i64: 0>}> : (tensor<64xf32>) -> tensor<64x10xf32>
    %151 = "stablehlo.multiply"(%150, %124) : (tensor<64x10xf32>, tensor<64x10xf32>) -> tensor<64x10xf32>
    %152 = "func.call"(%111#1, %142) <{callee = @_take_3}> : (tensor<1xi32>, tensor<64xf32>) -> tensor<64x1xf32>
    %153 = "func.call"(%109#1, %152) <{callee = @take_along_axis_4}> : (tensor<64x1x1xi32>, tensor<64x1xf32>) -> tensor<64x10xf32>
    %154 = "stablehlo.add"(%151, %153) : (tensor<64x10xf32>, tensor<64x10xf32>) -> tensor<64x10xf32>
    %155 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %156 = "stablehlo.reduce"(%154, %155) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg61: tensor<f32>, %arg62: tensor<f32>):
      %299 = "stablehlo.add"(%arg61, %arg62) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%299) : (tensor<f32>) -> ()
    }) : (tensor<64x10xf32>, tensor<f32>) -> tensor<10xf32>
    %157 = "stablehlo.reshape"(%156) : (tensor<10xf32>) -> tensor<1x10xf32>
    %158 = "stablehlo.reshape"(%157) : (tensor<1x10xf32>) -> tensor<10xf32>
    %159 = "stablehlo.dot_general"(%154, %100) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<64x10xf32>, tensor<64x84xf32>) -> tensor<10x84xf32>
    %160 = "stablehlo.transpose"(%159) <{permutation = array<i64: 1, 0>}> : (tensor<10x84xf32>) -> tensor<84x10xf32>
    %161 = "stablehlo.dot_general"(%154, %arg32) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<64x10xf32>, tensor<84x10xf32>) -> tensor<64x84xf32>
    %162 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %163 = "stablehlo.broadcast_in_dim"(%162) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x84xf32>
    %164 = "stablehlo.select"(%103, %161, %163) : (tensor<64x84xi1>, tensor<64x84xf32>, tensor<64x84xf32>) -> tensor<64x84xf32>
    %165 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %166 = "stablehlo.reduce"(%164, %165) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg59: tensor<f32>, %arg60: tensor<f32>):
      %298 = "stablehlo.add"(%arg59, %arg60) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%298) : (tensor<f32>) -> ()
    }) : (tensor<64x84xf32>, tensor<f32>) -> tensor<84xf32>
    %167 = "stablehlo.reshape"(%166) : (tensor<84xf32>) -> tensor<1x84xf32>
    %168 = "stablehlo.reshape"(%167) : (tensor<1x84xf32>) -> tensor<84xf32>
    %169 = "stablehlo.dot_general"(%164, %92) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<64x84xf32>, tensor<64x120xf32>) -> tensor<84x120xf32>
    %170 = "stablehlo.transpose"(%169) <{permutation = array<i64: 1, 0>}> : (tensor<84x120xf32>) -> tensor<120x84xf32>
    %171 = "stablehlo.dot_general"(%164, %arg30) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<64x84xf32>, tensor<120x84xf32>) -> tensor<64x120xf32>
    %172 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %173 = "stablehlo.broadcast_in_dim"(%172) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x120xf32>
    %174 = "stablehlo.select"(%95, %171, %173) : (tensor<64x120xi1>, tensor<64x120xf32>, tensor<64x120xf32>) -> tensor<64x120xf32>
    %175 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %176 = "stablehlo.reduce"(%174, %175) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg57: tensor<f32>, %arg58: tensor<f32>):
      %297 = "stablehlo.add"(%arg57, %arg58) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%297) : (tensor<f32>) -> ()
    }) : (tensor<64x120xf32>, tensor<f32>) -> tensor<120xf32>
    %177 = "stablehlo.reshape"(%176) : (tensor<120xf32>) -> tensor<1x120xf32>
    %178 = "stablehlo.reshape"(%177) : (tensor<1x120xf32>) -> tensor<120xf32>
    %179 = "stablehlo.dot_general"(%174, %87) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<64x120xf32>, tensor<64x400xf32>) -> tensor<120x400xf32>
    %180 = "stablehlo.transpose"(%179) <{permutation = array<i64: 1, 0>}> : (tensor<120x400xf32>) -> tensor<400x120xf32>
    %181 = "stablehlo.dot_general"(%174, %arg28) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<64x120xf32>, tensor<400x120xf32>) -> tensor<64x400xf32>
    %182 = "stablehlo.reshape"(%181) : (tensor<64x400xf32>) -> tensor<64x5x5x16xf32>
    %183 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %184 = "stablehlo.pad"(%80, %183) <{edge_padding_high = array<i64: 0, 0, 0, 0>, edge_padding_low = array<i64: 0, 0, 0, 0>, interior_padding = array<i64: 0, 0, 0, 0>}> : (tensor<64x10x10x16xf32>, tensor<f32>) -> tensor<64x10x10x16xf32>
    %185 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %186 = "stablehlo.select_and_scatter"(%184, %182, %185) <{padding = dense<0> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg55: tensor<f32>, %arg56: tensor<f32>):
      %296 = "stablehlo.compare"(%arg55, %arg56) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%296) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg53: tensor<f32>, %arg54: tensor<f32>):
      %295 = "stablehlo.add"(%arg53, %arg54) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%295) : (tensor<f32>) -> ()
    }) : (tensor<64x10x10x16xf32>, tensor<64x5x5x16xf32>, tensor<f32>) -> tensor<64x10x10x16xf32>
    %187 = "stablehlo.slice"(%186) <{limit_indices = array<i64: 64, 10, 10, 16>, start_indices = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<64x10x10x16xf32>) -> tensor<64x10x10x16xf32>
    %188 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %189 = "stablehlo.broadcast_in_dim"(%188) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x10x10x16xf32>
    %190 = "stablehlo.select"(%83, %187, %189) : (tensor<64x10x10x16xi1>, tensor<64x10x10x16xf32>, tensor<64x10x10x16xf32>) -> tensor<64x10x10x16xf32>
    %191 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %192 = "stablehlo.reduce"(%190, %191) <{dimensions = array<i64: 0, 1, 2>}> ({
    ^bb0(%arg51: tensor<f32>, %arg52: tensor<f32>):
      %294 = "stablehlo.add"(%arg51, %arg52) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%294) : (tensor<f32>) -> ()
    }) : (tensor<64x10x10x16xf32>, tensor<f32>) -> tensor<16xf32>
    %193 = "stablehlo.reshape"(%192) : (tensor<16xf32>) -> tensor<1x1x1x16xf32>
    %194 = "stablehlo.reshape"(%193) : (tensor<1x1x1x16xf32>) -> tensor<16xf32>
    %195 = "stablehlo.convolution"(%75, %190) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1, 1>, padding = dense<0> : tensor<2x2xi64>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, window_strides = array<i64: 1, 1>}> : (tensor<64x14x14x6xf32>, tensor<64x10x10x16xf32>) -> tensor<5x5x6x16xf32>
    %196 = "stablehlo.reverse"(%arg26) <{dimensions = array<i64: 0, 1>}> : (tensor<5x5x6x16xf32>) -> tensor<5x5x6x16xf32>
    %197 = "stablehlo.convolution"(%190, %196) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1, 1>, padding = dense<4> : tensor<2x2xi64>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, window_strides = array<i64: 1, 1>}> : (tensor<64x10x10x16xf32>, tensor<5x5x6x16xf32>) -> tensor<64x14x14x6xf32>
    %198 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %199 = "stablehlo.pad"(%69, %198) <{edge_padding_high = array<i64: 0, 0, 0, 0>, edge_padding_low = array<i64: 0, 0, 0, 0>, interior_padding = array<i64: 0, 0, 0, 0>}> : (tensor<64x28x28x6xf32>, tensor<f32>) -> tensor<64x28x28x6xf32>
    %200 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %201 = "stablehlo.select_and_scatter"(%199, %197, %200) <{padding = dense<0> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg49: tensor<f32>, %arg50: tensor<f32>):
      %293 = "stablehlo.compare"(%arg49, %arg50) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%293) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg47: tensor<f32>, %arg48: tensor<f32>):
      %292 = "stablehlo.add"(%arg47, %arg48) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%292) : (tensor<f32>) -> ()
    }) : (tensor<64x28x28x6xf32>, tensor<64x14x14x6xf32>, tensor<f32>) -> tensor<64x28x28x6xf32>
    %202 = "stablehlo.slice"(%201) <{limit_indices = array<i64: 64, 28, 28, 6>, start_indices = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<64x28x28x6xf32>) -> tensor<64x28x28x6xf32>
    %203 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %204 = "stablehlo.broadcast_in_dim"(%203) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x28x28x6xf32>
    %205 = "stablehlo.select"(%72, %202, %204) : (tensor<64x28x28x6xi1>, tensor<64x28x28x6xf32>, tensor<64x28x28x6xf32>) -> tensor<64x28x28x6xf32>
    %206 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %207 = "stablehlo.reduce"(%205, %206) <{dimensions = array<i64: 0, 1, 2>}> ({
    ^bb0(%arg45: tensor<f32>, %arg46: tensor<f32>):
      %291 = "stablehlo.add"(%arg45, %arg46) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%291) : (tensor<f32>) -> ()
    }) : (tensor<64x28x28x6xf32>, tensor<f32>) -> tensor<6xf32>
    %208 = "stablehlo.reshape"(%207) : (tensor<6xf32>) -> tensor<1x1x1x6xf32>
    %209 = "stablehlo.reshape"(%208) : (tensor<1x1x1x6xf32>) -> tensor<6xf32>
    %210 = "stablehlo.convolution"(%arg43, %205) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1, 1>, padding = dense<2> : tensor<2x2xi64>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, window_strides = array<i64: 1, 1>}> : (tensor<64x28x28x1xf32>, tensor<64x28x28x6xf32>) -> tensor<5x5x1x6xf32>
    %211 = "stablehlo.constant"() <{value = dense<0.899999976> : tensor<f32>}> : () -> tensor<f32>
    %212 = "stablehlo.broadcast_in_dim"(%211) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6xf32>
    %213 = "stablehlo.multiply"(%212, %arg33) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    %214 = "stablehlo.add"(%209, %213) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    %215 = "stablehlo.constant"() <{value = dense<0.899999976> : tensor<f32>}> : () -> tensor<f32>
    %216 = "stablehlo.broadcast_in_dim"(%215) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<5x5x1x6xf32>
    %217 = "stablehlo.multiply"(%216, %arg34) : (tensor<5x5x1x6xf32>, tensor<5x5x1x6xf32>) -> tensor<5x5x1x6xf32>
    %218 = "stablehlo.add"(%210, %217) : (tensor<5x5x1x6xf32>, tensor<5x5x1x6xf32>) -> tensor<5x5x1x6xf32>
    %219 = "stablehlo.constant"() <{value = dense<0.899999976> : tensor<f32>}> : () -> tensor<f32>
    %220 = "stablehlo.broadcast_in_dim"(%219) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16xf32>
    %221 = "stablehlo.multiply"(%220, %arg35) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %222 = "stablehlo.add"(%194, %221) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %223 = "stablehlo.constant"() <{value = dense<0.899999976> : tensor<f32>}> : () -> tensor<f32>
    %224 = "stablehlo.broadcast_in_dim"(%223) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<5x5x6x16xf32>
    %225 = "stablehlo.multiply"(%224, %arg36) : (tensor<5x5x6x16xf32>, tensor<5x5x6x16xf32>) -> tensor<5x5x6x16xf32>
    %226 = "stablehlo.add"(%195, %225) : (tensor<5x5x6x16xf32>, tensor<5x5x6x16xf32>) -> tensor<5x5x6x16xf32>
    %227 = "stablehlo.constant"() <{value = dense<0.899999976> : tensor<f32>}> : () -> tensor<f32>
    %228 = "stablehlo.broadcast_in_dim"(%227) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<120xf32>
    %229 = "stablehlo.multiply"(%228, %arg37) : (tensor<120xf32>, tensor<120xf32>) -> tensor<120xf32>
    %230 = "stablehlo.add"(%178, %229) : (tensor<120xf32>, tensor<120xf32>) -> tensor<120xf32>
    %231 = "stablehlo.constant"() <{value = dense<0.899999976> : tensor<f32>}> : () -> tensor<f32>
    %232 = "stablehlo.broadcast_in_dim"(%231) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<400x120xf32>
    %233 = "stablehlo.multiply"(%232, %arg38) : (tensor<400x120xf32>, tensor<400x120xf32>) -> tensor<400x120xf32>
    %234 = "stablehlo.add"(%180, %233) : (tensor<400x120xf32>, tensor<400x120xf32>) -> tensor<400x120xf32>
    %235 = "stablehlo.constant"() <{value = dense<0.899999976> : tensor<f32>}> : () -> tensor<f32>
    %236 = "stablehlo.broadcast_in_dim"(%235) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<84xf32>
    %237 = "stablehlo.multiply"(%236, %arg39) : (tensor<84xf32>, tensor<84xf32>) -> tensor<84xf32>
    %238 = "stablehlo.add"(%168, %237) : (tensor<84xf32>, tensor<84xf32>) -> tensor<84xf32>
    %239 = "stablehlo.constant"() <{value = dense<0.899999976> : tensor<f32>}> : () -> tensor<f32>
    %240 = "stablehlo.broadcast_in_dim"(%239) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<120x84xf32>
    %241 = "stablehlo.multiply"(%240, %arg40) : (tensor<120x84xf32>, tensor<120x84xf32>) -> tensor<120x84xf32>
    %242 = "stablehlo.add"(%170, %241) : (tensor<120x84xf32>, tensor<120x84xf32>) -> tensor<120x84xf32>
    %243 = "stablehlo.constant"() <{value = dense<0.899999976> : tensor<f32>}> : () -> tensor<f32>
    %244 = "stablehlo.broadcast_in_dim"(%243) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<10xf32>
    %245 = "stablehlo.multiply"(%244, %arg41) : (tensor<10xf32>, tensor<10xf32>) -> tensor<10xf32>
    %246 = "stablehlo.add"(%158, %245) : (tensor<10xf32>, tensor<10xf32>) -> tensor<10xf32>
    %247 = "stablehlo.constant"() <{value = dense<0.899999976> : tensor<f32>}> : () -> tensor<f32>
    %248 = "stablehlo.broadcast_in_dim"(%247) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<84x10xf32>
    %249 = "stablehlo.multiply"(%248, %arg42) : (tensor<84x10xf32>, tensor<84x10xf32>) -> tensor<84x10xf32>
    %250 = "stablehlo.add"(%160, %249) : (tensor<84x10xf32>, tensor<84x10xf32>) -> tensor<84x10xf32>
    %251 = "stablehlo.constant"() <{value = dense<-0.00999999977> : tensor<f32>}> : () -> tensor<f32>
    %252 = "stablehlo.broadcast_in_dim"(%251) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6xf32>
    %253 = "stablehlo.multiply"(%252, %214) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    %254 = "stablehlo.constant"() <{value = dense<-0.00999999977> : tensor<f32>}> : () -> tensor<f32>
    %255 = "stablehlo.broadcast_in_dim"(%254) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<5x5x1x6xf32>
    %256 = "stablehlo.multiply"(%255, %218) : (tensor<5x5x1x6xf32>, tensor<5x5x1x6xf32>) -> tensor<5x5x1x6xf32>
    %257 = "stablehlo.constant"() <{value = dense<-0.00999999977> : tensor<f32>}> : () -> tensor<f32>
    %258 = "stablehlo.broadcast_in_dim"(%257) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16xf32>
    %259 = "stablehlo.multiply"(%258, %222) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %260 = "stablehlo.constant"() <{value = dense<-0.00999999977> : tensor<f32>}> : () -> tensor<f32>
    %261 = "stablehlo.broadcast_in_dim"(%260) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<5x5x6x16xf32>
    %262 = "stablehlo.multiply"(%261, %226) : (tensor<5x5x6x16xf32>, tensor<5x5x6x16xf32>) -> tensor<5x5x6x16xf32>
    %263 = "stablehlo.constant"() <{value = dense<-0.00999999977> : tensor<f32>}> : () -> tensor<f32>
    %264 = "stablehlo.broadcast_in_dim"(%263) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<120xf32>
    %265 = "stablehlo.multiply"(%264, %230) : (tensor<120xf32>, tensor<120xf32>) -> tensor<120xf32>
    %266 = "stablehlo.constant"() <{value = dense<-0.00999999977> : tensor<f32>}> : () -> tensor<f32>
    %267 = "stablehlo.broadcast_in_dim"(%266) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<400x120xf32>
    %268 = "stablehlo.multiply"(%267, %234) : (tensor<400x120xf32>, tensor<400x120xf32>) -> tensor<400x120xf32>
    %269 = "stablehlo.constant"() <{value = dense<-0.00999999977> : tensor<f32>}> : () -> tensor<f32>
    %270 = "stablehlo.broadcast_in_dim"(%269) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<84xf32>
    %271 = "stablehlo.multiply"(%270, %238) : (tensor<84xf32>, tensor<84xf32>) -> tensor<84xf32>
    %272 = "stablehlo.constant"() <{value = dense<-0.00999999977> : tensor<f32>}> : () -> tensor<f32>
    %273 = "stablehlo.broadcast_in_dim"(%272) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<120x84xf32>
    %274 = "stablehlo.multiply"(%273, %242) : (tensor<120x84xf32>, tensor<120x84xf32>) -> tensor<120x84xf32>
    %275 = "stablehlo.constant"() <{value = dense<-0.00999999977> : tensor<f32>}> : () -> tensor<f32>
    %276 = "stablehlo.broadcast_in_dim"(%275) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<10xf32>
    %277 = "stablehlo.multiply"(%276, %246) : (tensor<10xf32>, tensor<10xf32>) -> tensor<10xf32>
    %278 = "stablehlo.constant"() <{value = dense<-0.00999999977> : tensor<f32>}> : () -> tensor<f32>
    %279 = "stablehlo.broadcast_in_dim"(%278) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<84x10xf32>
    %280 = "stablehlo.multiply"(%279, %250) : (tensor<84x10xf32>, tensor<84x10xf32>) -> tensor<84x10xf32>
    %281 = "stablehlo.add"(%arg23, %253) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    %282 = "stablehlo.add"(%arg24, %256) : (tensor<5x5x1x6xf32>, tensor<5x5x1x6xf32>) -> tensor<5x5x1x6xf32>
    %283 = "stablehlo.add"(%arg25, %259) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %284 = "stablehlo.add"(%arg26, %262) : (tensor<5x5x6x16xf32>, tensor<5x5x6x16xf32>) -> tensor<5x5x6x16xf32>
    %285 = "stablehlo.add"(%arg27, %265) : (tensor<120xf32>, tensor<120xf32>) -> tensor<120xf32>
    %286 = "stablehlo.add"(%arg28, %268) : (tensor<400x120xf32>, tensor<400x120xf32>) -> tensor<400x120xf32>
    %287 = "stablehlo.add"(%arg29, %271) : (tensor<84xf32>, tensor<84xf32>) -> tensor<84xf32>
    %288 = "stablehlo.add"(%arg30, %274) : (tensor<120x84xf32>, tensor<120x84xf32>) -> tensor<120x84xf32>
    %289 = "stablehlo.add"(%arg31, %277) : (tensor<10xf32>, tensor<10xf32>) -> tensor<10xf32>
    %290 = "stablehlo.add"(%arg32, %280) : (tensor<84x10xf32>, tensor<84x10xf32>) -> tensor<84x10xf32>
    "func.return"(%281, %282, %283, %284, %285, %286, %287, %288, %289, %290, %214, %218, %222, %226, %230, %234, %238, %242, %246, %250, %137) : (tensor<6xf32>, tensor<5x5x1x6xf32>, tensor<16xf32>, tensor<5x5x6x16xf32>, tensor<120xf32>, tensor<400x120xf32>, tensor<84xf32>, tensor<120x84xf32>, tensor<10xf32>, tensor<84x10xf32>, tensor<6xf32>, tensor<5x5x1x6xf32>, tensor<16xf32>, tensor<5x5x6x16xf32>, tensor<120xf32>, tensor<400x120xf32>, tensor<84xf32>, tensor<120x84xf32>, tensor<10xf32>, tensor<84x10xf32>, tensor<f32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<64x28x28x6xf32>) -> tensor<64x28x28x6xf32>, sym_name = "relu", sym_visibility = "private"}> ({
  ^bb0(%arg22: tensor<64x28x28x6xf32>):
    %62 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %63 = "stablehlo.broadcast_in_dim"(%62) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x28x28x6xf32>
    %64 = "stablehlo.maximum"(%arg22, %63) : (tensor<64x28x28x6xf32>, tensor<64x28x28x6xf32>) -> tensor<64x28x28x6xf32>
    "func.return"(%64) : (tensor<64x28x28x6xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<64x10x10x16xf32>) -> tensor<64x10x10x16xf32>, sym_name = "relu_0", sym_visibility = "private"}> ({
  ^bb0(%arg21: tensor<64x10x10x16xf32>):
    %59 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %60 = "stablehlo.broadcast_in_dim"(%59) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x10x10x16xf32>
    %61 = "stablehlo.maximum"(%arg21, %60) : (tensor<64x10x10x16xf32>, tensor<64x10x10x16xf32>) -> tensor<64x10x10x16xf32>
    "func.return"(%61) : (tensor<64x10x10x16xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<64x120xf32>) -> tensor<64x120xf32>, sym_name = "relu_1", sym_visibility = "private"}> ({
  ^bb0(%arg20: tensor<64x120xf32>):
    %56 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %57 = "stablehlo.broadcast_in_dim"(%56) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x120xf32>
    %58 = "stablehlo.maximum"(%arg20, %57) : (tensor<64x120xf32>, tensor<64x120xf32>) -> tensor<64x120xf32>
    "func.return"(%58) : (tensor<64x120xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<64x84xf32>) -> tensor<64x84xf32>, sym_name = "relu_2", sym_visibility = "private"}> ({
  ^bb0(%arg19: tensor<64x84xf32>):
    %53 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %54 = "stablehlo.broadcast_in_dim"(%53) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x84xf32>
    %55 = "stablehlo.maximum"(%arg19, %54) : (tensor<64x84xf32>, tensor<64x84xf32>) -> tensor<64x84xf32>
    "func.return"(%55) : (tensor<64x84xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<64x10xf32>, tensor<64x1xi32>) -> (tensor<64x1xf32>, tensor<64x1x1xi32>), sym_name = "take_along_axis", sym_visibility = "private"}> ({
  ^bb0(%arg15: tensor<64x10xf32>, %arg16: tensor<64x1xi32>):
    %30 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %31 = "stablehlo.broadcast_in_dim"(%30) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<64x1xi32>
    %32 = "stablehlo.compare"(%arg16, %31) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi1>
    %33 = "stablehlo.constant"() <{value = dense<10> : tensor<i32>}> : () -> tensor<i32>
    %34 = "stablehlo.broadcast_in_dim"(%33) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<64x1xi32>
    %35 = "stablehlo.add"(%arg16, %34) : (tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi32>
    %36 = "stablehlo.select"(%32, %35, %arg16) : (tensor<64x1xi1>, tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi32>
    %37 = "stablehlo.reshape"(%36) : (tensor<64x1xi32>) -> tensor<64x1x1xi32>
    %38 = "stablehlo.constant"() <{value = dense<9> : tensor<1xi32>}> : () -> tensor<1xi32>
    %39 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %40 = "stablehlo.broadcast_in_dim"(%39) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<64x1x1xi32>
    %41 = "stablehlo.compare"(%37, %40) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<64x1x1xi32>, tensor<64x1x1xi32>) -> tensor<64x1x1xi1>
    %42 = "stablehlo.broadcast_in_dim"(%38) <{broadcast_dimensions = array<i64: 2>}> : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %43 = "stablehlo.broadcast_in_dim"(%42) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<1x1x1xi32>) -> tensor<64x1x1xi32>
    %44 = "stablehlo.compare"(%37, %43) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<64x1x1xi32>, tensor<64x1x1xi32>) -> tensor<64x1x1xi1>
    %45 = "stablehlo.and"(%41, %44) : (tensor<64x1x1xi1>, tensor<64x1x1xi1>) -> tensor<64x1x1xi1>
    %46 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %47 = "stablehlo.reduce"(%45, %46) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg17: tensor<i1>, %arg18: tensor<i1>):
      %52 = "stablehlo.and"(%arg17, %arg18) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%52) : (tensor<i1>) -> ()
    }) : (tensor<64x1x1xi1>, tensor<i1>) -> tensor<64x1xi1>
    %48 = "stablehlo.gather"(%arg15, %37) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<64x10xf32>, tensor<64x1x1xi32>) -> tensor<64x1xf32>
    %49 = "stablehlo.constant"() <{value = dense<0x7FC00000> : tensor<f32>}> : () -> tensor<f32>
    %50 = "stablehlo.broadcast_in_dim"(%49) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x1xf32>
    %51 = "stablehlo.select"(%47, %48, %50) : (tensor<64x1xi1>, tensor<64x1xf32>, tensor<64x1xf32>) -> tensor<64x1xf32>
    "func.return"(%51, %37) : (tensor<64x1xf32>, tensor<64x1x1xi32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<64x1xf32>, tensor<i32>) -> (tensor<64xf32>, tensor<1xi32>), sym_name = "_take", sym_visibility = "private"}> ({
  ^bb0(%arg11: tensor<64x1xf32>, %arg12: tensor<i32>):
    %9 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %10 = "stablehlo.compare"(%arg12, %9) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %11 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %12 = "stablehlo.add"(%arg12, %11) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %13 = "func.call"(%10, %12, %arg12) <{callee = @_where}> : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %14 = "stablehlo.broadcast_in_dim"(%13) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<1xi32>
    %15 = "stablehlo.constant"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
    %16 = "stablehlo.convert"(%14) : (tensor<1xi32>) -> tensor<1xi32>
    %17 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %18 = "stablehlo.broadcast_in_dim"(%17) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<1xi32>
    %19 = "stablehlo.compare"(%16, %18) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %20 = "stablehlo.compare"(%16, %15) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %21 = "stablehlo.and"(%19, %20) : (tensor<1xi1>, tensor<1xi1>) -> tensor<1xi1>
    %22 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %23 = "stablehlo.reduce"(%21, %22) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg13: tensor<i1>, %arg14: tensor<i1>):
      %29 = "stablehlo.and"(%arg13, %arg14) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%29) : (tensor<i1>) -> ()
    }) : (tensor<1xi1>, tensor<i1>) -> tensor<i1>
    %24 = "stablehlo.gather"(%arg11, %16) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1]>, indices_are_sorted = false, slice_sizes = array<i64: 64, 1>}> : (tensor<64x1xf32>, tensor<1xi32>) -> tensor<64xf32>
    %25 = "stablehlo.broadcast_in_dim"(%23) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<64xi1>
    %26 = "stablehlo.constant"() <{value = dense<0x7FC00000> : tensor<f32>}> : () -> tensor<f32>
    %27 = "stablehlo.broadcast_in_dim"(%26) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64xf32>
    %28 = "stablehlo.select"(%25, %24, %27) : (tensor<64xi1>, tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    "func.return"(%28, %14) : (tensor<64xf32>, tensor<1xi32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>, sym_name = "_where", sym_visibility = "private"}> ({
  ^bb0(%arg8: tensor<i1>, %arg9: tensor<i32>, %arg10: tensor<i32>):
    %8 = "stablehlo.select"(%arg8, %arg9, %arg10) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    "func.return"(%8) : (tensor<i32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<1xi32>, tensor<64xf32>) -> tensor<64x1xf32>, sym_name = "_take_3", sym_visibility = "private"}> ({
  ^bb0(%arg4: tensor<1xi32>, %arg5: tensor<64xf32>):
    %4 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %5 = "stablehlo.broadcast_in_dim"(%4) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x1xf32>
    %6 = "stablehlo.scatter"(%5, %arg4, %arg5) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]>, unique_indices = false}> ({
    ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
      %7 = "stablehlo.add"(%arg6, %arg7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%7) : (tensor<f32>) -> ()
    }) : (tensor<64x1xf32>, tensor<1xi32>, tensor<64xf32>) -> tensor<64x1xf32>
    "func.return"(%6) : (tensor<64x1xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<64x1x1xi32>, tensor<64x1xf32>) -> tensor<64x10xf32>, sym_name = "take_along_axis_4", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<64x1x1xi32>, %arg1: tensor<64x1xf32>):
    %0 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x10xf32>
    %2 = "stablehlo.scatter"(%1, %arg0, %arg1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %3 = "stablehlo.add"(%arg2, %arg3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%3) : (tensor<f32>) -> ()
    }) : (tensor<64x10xf32>, tensor<64x1x1xi32>, tensor<64x1xf32>) -> tensor<64x10xf32>
    "func.return"(%2) : (tensor<64x10xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()

