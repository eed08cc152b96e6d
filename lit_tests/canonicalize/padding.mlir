// RUN: plan-opt %s -p canonicalize | filecheck %s

// The window's own padding replaces the pad, so the padded image is not stored.
// CHECK-LABEL: func.func @of_zeros
// CHECK-NEXT:    %0 = tgraph.convolution %x, %w {{.*}} padding_low = array<i64: 1, 2>, padding_high = array<i64: 1, 0>, {{.*}} : (tensor<1x8x8x4xf32>, tensor<3x3x4x2xf32>) -> tensor<1x8x8x2xf32>
// CHECK-NEXT:    func.return %0
func.func @of_zeros(%x: tensor<1x8x8x4xf32>, %w: tensor<3x3x4x2xf32>) -> tensor<1x8x8x2xf32> {
  %zero = tgraph.constant<0.0 : f32> : tensor<f32>
  %0 = tgraph.pad %x, %zero {low = array<i64: 0, 0, 2, 0>, high = array<i64: 0, 1, 0, 0>, interior = array<i64: 0, 0, 0, 0>} : (tensor<1x8x8x4xf32>, tensor<f32>) -> tensor<1x9x10x4xf32>
  %1 = tgraph.convolution %0, %w {dim_labels = "b01f_01io->b01f", window_strides = array<i64: 1, 1>, padding_low = array<i64: 1, 0>, padding_high = array<i64: 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x9x10x4xf32>, tensor<3x3x4x2xf32>) -> tensor<1x8x8x2xf32>
  func.return %1 : tensor<1x8x8x2xf32>
}

// A convolution cannot pad with ones, nor along features.
// CHECK-LABEL: func.func @of_something_else
// CHECK:         tgraph.pad
// CHECK:         tgraph.convolution
// CHECK:         tgraph.pad
// CHECK:         tgraph.convolution
func.func @of_something_else(%x: tensor<1x8x8x4xf32>, %y: tensor<1x8x8x3xf32>, %w: tensor<3x3x4x2xf32>) -> (tensor<1x8x8x2xf32>, tensor<1x6x6x2xf32>) {
  %one = tgraph.constant<1.0 : f32> : tensor<f32>
  %0 = tgraph.pad %x, %one {low = array<i64: 0, 1, 1, 0>, high = array<i64: 0, 1, 1, 0>, interior = array<i64: 0, 0, 0, 0>} : (tensor<1x8x8x4xf32>, tensor<f32>) -> tensor<1x10x10x4xf32>
  %1 = tgraph.convolution %0, %w {dim_labels = "b01f_01io->b01f", window_strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x10x10x4xf32>, tensor<3x3x4x2xf32>) -> tensor<1x8x8x2xf32>
  %zero = tgraph.constant<0.0 : f32> : tensor<f32>
  %2 = tgraph.pad %y, %zero {low = array<i64: 0, 0, 0, 0>, high = array<i64: 0, 0, 0, 1>, interior = array<i64: 0, 0, 0, 0>} : (tensor<1x8x8x3xf32>, tensor<f32>) -> tensor<1x8x8x4xf32>
  %3 = tgraph.convolution %2, %w {dim_labels = "b01f_01io->b01f", window_strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>} : (tensor<1x8x8x4xf32>, tensor<3x3x4x2xf32>) -> tensor<1x6x6x2xf32>
  func.return %1, %3 : tensor<1x8x8x2xf32>, tensor<1x6x6x2xf32>
}

// A causal convolution, as PyTorch programs write it.
// CHECK-LABEL: func.func @cropped
// CHECK-NEXT:    %0 = tgraph.convolution %x, %w {{.*}} padding_low = array<i64: 4>, padding_high = array<i64: 0>, {{.*}} -> tensor<1x4x16xf32>
// CHECK-NEXT:    func.return %0
func.func @cropped(%x: tensor<1x4x16xf32>, %w: tensor<4x4x3xf32>) -> tensor<1x4x16xf32> {
  %0 = tgraph.convolution %x, %w {dim_labels = "bf0_oi0->bf0", window_strides = array<i64: 1>, padding_low = array<i64: 4>, padding_high = array<i64: 4>, lhs_dilation = array<i64: 1>, rhs_dilation = array<i64: 2>} : (tensor<1x4x16xf32>, tensor<4x4x3xf32>) -> tensor<1x4x20xf32>
  %1 = tgraph.slice %0 {start_indices = array<i64: 0, 0, 0>, limit_indices = array<i64: 1, 4, 16>, strides = array<i64: 1, 1, 1>} : (tensor<1x4x20xf32>) -> tensor<1x4x16xf32>
  func.return %1 : tensor<1x4x16xf32>
}

// With a stride, a cropped position removes a stride's worth of padding. The gradient
// of padding is a pad with negative amounts.
// CHECK-LABEL: func.func @cropped_with_a_stride
// CHECK-NEXT:    %0 = tgraph.convolution %x, %w {{.*}} padding_low = array<i64: 1>, padding_high = array<i64: 0>, {{.*}} -> tensor<1x4x8xf32>
// CHECK-NEXT:    %1 = tgraph.convolution
// CHECK-NEXT:    %2 = tgraph.slice %1
// CHECK-NEXT:    func.return %0, %2
func.func @cropped_with_a_stride(%x: tensor<1x4x16xf32>, %w: tensor<4x4x3xf32>) -> (tensor<1x4x8xf32>, tensor<1x4x7xf32>) {
  %zero = tgraph.constant<0.0 : f32> : tensor<f32>
  %0 = tgraph.convolution %x, %w {dim_labels = "bf0_oi0->bf0", window_strides = array<i64: 2>, padding_low = array<i64: 3>, padding_high = array<i64: 2>, lhs_dilation = array<i64: 1>, rhs_dilation = array<i64: 1>} : (tensor<1x4x16xf32>, tensor<4x4x3xf32>) -> tensor<1x4x10xf32>
  %1 = tgraph.pad %0, %zero {low = array<i64: 0, 0, -1>, high = array<i64: 0, 0, -1>, interior = array<i64: 0, 0, 0>} : (tensor<1x4x10xf32>, tensor<f32>) -> tensor<1x4x8xf32>
  %2 = tgraph.convolution %x, %w {dim_labels = "bf0_oi0->bf0", window_strides = array<i64: 2>, padding_low = array<i64: 1>, padding_high = array<i64: 1>, lhs_dilation = array<i64: 1>, rhs_dilation = array<i64: 1>} : (tensor<1x4x16xf32>, tensor<4x4x3xf32>) -> tensor<1x4x8xf32>
  %3 = tgraph.pad %2, %zero {low = array<i64: 0, 0, -1>, high = array<i64: 0, 0, 0>, interior = array<i64: 0, 0, 0>} : (tensor<1x4x8xf32>, tensor<f32>) -> tensor<1x4x7xf32>
  func.return %1, %3 : tensor<1x4x8xf32>, tensor<1x4x7xf32>
}

// A maximum pads with the lowest value.
// CHECK-LABEL: func.func @maxima
// CHECK-NEXT:    %0 = tgraph.reduce_window %x {{.*}} padding_low = array<i64: 1, 0>, padding_high = array<i64: 1, 0>, {{.*}} : (tensor<8x8xf32>) -> tensor<4x7xf32>
// CHECK-NEXT:    %zero = tgraph.constant
// CHECK-NEXT:    %1 = tgraph.pad
// CHECK-NEXT:    %2 = tgraph.reduce_window %1
// CHECK-NEXT:    func.return %0, %2
func.func @maxima(%x: tensor<8x8xf32>) -> (tensor<4x7xf32>, tensor<4x7xf32>) {
  %least = tgraph.constant<0xFF800000 : f32> : tensor<f32>
  %0 = tgraph.pad %x, %least {low = array<i64: 1, 0>, high = array<i64: 1, 0>, interior = array<i64: 0, 0>} : (tensor<8x8xf32>, tensor<f32>) -> tensor<10x8xf32>
  %1 = tgraph.reduce_window %0 {kind = "maximum", window_dimensions = array<i64: 3, 2>, window_strides = array<i64: 2, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>} : (tensor<10x8xf32>) -> tensor<4x7xf32>
  %zero = tgraph.constant<0.0 : f32> : tensor<f32>
  %2 = tgraph.pad %x, %zero {low = array<i64: 1, 0>, high = array<i64: 1, 0>, interior = array<i64: 0, 0>} : (tensor<8x8xf32>, tensor<f32>) -> tensor<10x8xf32>
  %3 = tgraph.reduce_window %2 {kind = "maximum", window_dimensions = array<i64: 3, 2>, window_strides = array<i64: 2, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>} : (tensor<10x8xf32>) -> tensor<4x7xf32>
  func.return %1, %3 : tensor<4x7xf32>, tensor<4x7xf32>
}
