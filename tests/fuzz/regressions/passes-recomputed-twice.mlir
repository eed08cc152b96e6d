// An operation that is computed again read what was computed again for its first time.
// passes: tgraph-rematerialize{budget=64},plan-pipeline
func.func @main(%0: tensor<3x5x3xf16>, %1: tensor<i32>) -> tensor<3x15x15xf16> {
  %2 = tgraph.bitcast_convert %1 : (tensor<i32>) -> tensor<ui32>
  %3 = tgraph.concatenate %0, %0, %0 {dimension = 1 : i64} : (tensor<3x5x3xf16>, tensor<3x5x3xf16>, tensor<3x5x3xf16>) -> tensor<3x15x3xf16>
  %4 = tgraph.constant<1.000000e+00 : f16> : tensor<1x7x3xf16>
  %5 = tgraph.select_and_scatter %3, %4 {kind = "minimum", window_dimensions = array<i64: 2, 2, 1>, window_strides = array<i64: 2, 2, 1>, padding_low = array<i64: 0, 0, 0>, padding_high = array<i64: 0, 0, 0>} : (tensor<3x15x3xf16>, tensor<1x7x3xf16>) -> tensor<3x15x3xf16>
  %6 = tgraph.dot_general %5, %5 {lhs_batching_dimensions = array<i64: 2>, rhs_batching_dimensions = array<i64: 0>, lhs_contracting_dimensions = array<i64: 0>, rhs_contracting_dimensions = array<i64: 2>} : (tensor<3x15x3xf16>, tensor<3x15x3xf16>) -> tensor<3x15x15xf16>
  %7 = tgraph.abs %6 : tensor<3x15x15xf16>
  %8 = tgraph.convert %3 : (tensor<3x15x3xf16>) -> tensor<3x15x3xbf16>
  %9 = tgraph.transpose %3 {permutation = array<i64: 1, 2, 0>} : (tensor<3x15x3xf16>) -> tensor<15x3x3xf16>
  %10 = tgraph.dot_general %7, %9 {lhs_batching_dimensions = array<i64: 0>, rhs_batching_dimensions = array<i64: 2>, lhs_contracting_dimensions = array<i64: 2>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<3x15x15xf16>, tensor<15x3x3xf16>) -> tensor<3x15x3xf16>
  %11, %12 = tgraph.while %1, %9, %2, %8 : (tensor<i32>, tensor<15x3x3xf16>, tensor<ui32>, tensor<3x15x3xbf16>) -> (tensor<i32>, tensor<15x3x3xf16>) {
  ^bb0(%13: !tgraph.variable<tensor<i32>>, %14: !tgraph.variable<tensor<15x3x3xf16>>, %15: tensor<ui32>, %16: tensor<3x15x3xbf16>):
    %17 = tgraph.read %13 : tensor<i32>
    %18 = tgraph.compare %17, %17 {direction = "LT"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tgraph.yield %18 : tensor<i1>
  } do {
  ^bb0(%19: !tgraph.variable<tensor<i32>>, %20: !tgraph.variable<tensor<15x3x3xf16>>, %21: tensor<ui32>, %22: tensor<3x15x3xbf16>):
    tgraph.yield
  }
  func.return %7 : tensor<3x15x15xf16>
}
